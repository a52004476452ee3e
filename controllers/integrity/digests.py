# SPDX-License-Identifier: MIT
"""Digests of the fields of an engine, made where they are: on their devices, by one launch each.

Fields that pass through their devices in chunks, those of the reference, and those of the checked
mode are looked at on the host.
"""
from __future__ import annotations

from functools import reduce

from controllers.engine import Engine, PacedEngine, RepeatingEngine
from controllers.executor.opencl import OpenCLExecutor
from controllers.fields.cells import pieces
from controllers.integrity.digest import Digest, digest_of_parts
from controllers.integrity.digest_kernel import DigestKernels
from controllers.placement.placement import failing_together
from controllers.plan import ChunkPlan
from hitmap.comm import Communicator


class Digests:
    """Those of the fields of `engine`; what is needed for that is made once, and kept."""

    def __init__(self, engine: Engine, comm: Communicator) -> None:
        self.engine, self._comm = engine, comm
        self._kernels: dict[OpenCLExecutor, DigestKernels] = {}
        self._has_all = False       # on all ranks, what is needed
        executors = engine.executors.values()
        self._on_devices = (
            type(engine) in (Engine, PacedEngine, RepeatingEngine)
            and not isinstance(engine.plan, ChunkPlan)
            and all(isinstance(one, OpenCLExecutor) for one in executors)
        )

    def take(self) -> dict[str, Digest]:
        """Those of all fields as they are now, the same on all ranks.  Collective."""
        names = [field.name for field in self.engine.plan.program.fields]
        if not self._has_all:
            with failing_together(self._comm):
                mine = self._of_this_rank(names)
            self._has_all = True
        else:
            mine = self._of_this_rank(names)
        every = self._comm.allgather(mine) if self._comm.size > 1 else [mine]
        return {name: reduce(Digest.__add__, (rank[name] for rank in every)) for name in names}

    def _of_this_rank(self, names: list[str]) -> dict[str, Digest]:
        engine, plan = self.engine, self.engine.plan
        if not self._on_devices:
            return {
                name: digest_of_parts(pieces(engine, name), plan.layout_of(name).domain)
                for name in names
            }
        begun = [
            (name, self._of_device(place).start(
                engine.newest(name, place), plan.owned(name, place), plan.layout_of(name).domain
            ))
            for name in names for place in engine.executors if not plan.owned(name, place).empty
        ]  # fmt: skip
        found = dict.fromkeys(names, Digest())
        for name, wait in begun:
            found[name] += wait()
        return found

    def _of_device(self, place: int) -> DigestKernels:
        executor = self.engine.executors[place]
        assert isinstance(executor, OpenCLExecutor)
        if executor not in self._kernels:
            self._kernels[executor] = DigestKernels(executor)
        return self._kernels[executor]
