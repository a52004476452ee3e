# SPDX-License-Identifier: MIT
"""Digests of the fields of an engine, made where they are, on their devices.

By one launch each, or by those launches of the next step that read a field anyway.  Fields that
pass through their devices in chunks, those of the reference, and those of the checked mode are
looked at on the host.
"""
from __future__ import annotations

from collections.abc import Container, Hashable, Mapping
from functools import reduce

from controllers.device.event import Command
from controllers.engine import Engine, PacedEngine, RepeatingEngine
from controllers.executor.opencl import OpenCLExecutor
from controllers.fields.cells import pieces
from controllers.integrity.digest import Digest, digest_of_parts
from controllers.integrity.digest_kernel import DigestKernels
from controllers.integrity.launches import NONE, DigestingLaunches, Part
from controllers.placement.placement import failing_together
from controllers.plan import ChunkPlan, Plan
from hitmap.comm import Communicator

HOST = -1       # in place of a place: fields that are looked at on the host


class Digests:
    """Those of the fields of `engine`; what is needed for that is made once, and kept."""

    def __init__(self, engine: Engine, comm: Communicator) -> None:
        self.engine, self._comm = engine, comm
        self._kernels: dict[OpenCLExecutor, DigestKernels] = {}
        self._launches: Mapping[Hashable, DigestingLaunches] | None = None      # by phase
        self._has_all = False       # on all ranks, what is needed to take them at once
        executors = engine.executors.values()
        self._on_devices = (
            type(engine) in (Engine, PacedEngine, RepeatingEngine)
            and not isinstance(engine.plan, ChunkPlan)
            and all(isinstance(one, OpenCLExecutor) for one in executors)
        )

    def take(self) -> dict[str, Digest]:
        """Those of all fields as they are now, the same on all ranks.  Collective."""
        return self.of_ranks(self.of_this_rank(()))

    def begin(self) -> Underway:
        """Those of all fields as they are now, perhaps taken as the next step is launched.

        Nothing else may be under way.  The first time all is built and tried.  Collective.
        """
        if not self.waits:
            return Underway(self, NONE)
        if self._launches is not None:
            return Underway(self, self._launches[self.engine.phase])
        with failing_together(self._comm):
            self._launches = self._prepared()
        return Underway(self, NONE)

    def _prepared(self) -> Mapping[Hashable, DigestingLaunches]:
        """By phase the launches that take digests; those of the next step are tried."""
        engine = self.engine
        if not self._on_devices:
            return dict.fromkeys(range(engine.plan.n_phases), NONE)
        found: dict[Hashable, DigestingLaunches] = {
            phase: DigestingLaunches.of(engine, phase, lambda place: self._of_device(place).weights)
            for phase in range(engine.plan.n_phases)
        }
        for command in found[engine.phase].commands.values():
            command(None)       # it writes what the next step writes again
        engine.finish()
        return found

    @property
    def waits(self) -> bool:
        """Whether digests may wait for the next step, at places that can; on all ranks alike."""
        engine = self.engine
        alike = type(engine) is Engine and type(engine.plan) is Plan
        return alike and engine.plan.steps_per_launch > 1

    def of_ranks(self, mine: Mapping[Part, Digest]) -> dict[str, Digest]:
        """Of all ranks, by field.  Collective."""
        names = [field.name for field in self.engine.plan.program.fields]
        found = dict.fromkeys(names, Digest())
        for (name, _), one in mine.items():
            found[name] += one
        every = self._comm.allgather(found) if self._comm.size > 1 else [found]
        return {name: reduce(Digest.__add__, (rank[name] for rank in every)) for name in names}

    def of_this_rank(self, done: Container[Part]) -> dict[Part, Digest]:
        """Those of all parts but some, as they are now; the first time ranks fail together."""
        if self._has_all:
            return self._of_parts(done)
        with failing_together(self._comm):
            found = self._of_parts(done)
        self._has_all = True
        return found

    def _of_parts(self, done: Container[Part]) -> dict[Part, Digest]:
        engine, plan = self.engine, self.engine.plan
        names = [field.name for field in plan.program.fields]
        if not self._on_devices:
            return {
                (name, HOST): digest_of_parts(pieces(engine, name), plan.layout_of(name).domain)
                for name in names
            }
        begun = {
            (name, place): self._of_device(place).start(
                engine.newest(name, place), plan.owned(name, place), plan.layout_of(name).domain
            )
            for name in names for place in engine.executors
            if (name, place) not in done and not plan.owned(name, place).empty
        }  # fmt: skip
        return {part: wait() for part, wait in begun.items()}

    def _of_device(self, place: int) -> DigestKernels:
        executor = self.engine.executors[place]
        assert isinstance(executor, OpenCLExecutor)
        if executor not in self._kernels:
            self._kernels[executor] = DigestKernels(executor)
        return self._kernels[executor]


class Underway:
    """Digests of fields as they were when it was made; the launches of the next step take some.

    The engine asks for these as that step begins.
    """

    def __init__(self, digests: Digests, launches: DigestingLaunches) -> None:
        self._digests, self._launches, self.waits = digests, launches, digests.waits
        self._n_steps = digests.engine.n_steps
        self._mine = digests.of_this_rank(launches.digests)
        if launches.commands:
            digests.engine.next_launches = self

    def begin(self, *, whole: bool) -> Mapping[int, Command]:
        """The commands of the next step, by number of the operation; if it has others, none."""
        if not whole:
            self._miss()
        return self._launches.commands

    def _miss(self) -> None:
        """No launch has taken any: take them now."""
        taken, self._launches = self._mine, NONE
        self._mine = taken | self._digests.of_this_rank(taken)

    def arrive(self) -> None:
        """The run has come to a stop, wherever: take what is left."""
        if not self._launches.commands:
            return
        engine = self._digests.engine
        engine.next_launches = None
        if engine.n_steps == self._n_steps:
            self._miss()
        found, self._launches = self._launches.digests, NONE
        self._mine |= {part: Digest(*one.found) for part, one in found.items()}

    def all(self) -> dict[str, Digest]:
        """By field, the same on all ranks; it has arrived.  Collective."""
        return self._digests.of_ranks(self._mine)
