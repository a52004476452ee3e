# SPDX-License-Identifier: MIT
"""Runs whose state is kept in files as they go, and that go on from there."""
# docs/decisions/0073-checkpoints-are-blocks-and-a-manifest.md
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from controllers.balance.balancer import cells_on
from controllers.calls.call import collective
from controllers.checkpoint.error import CheckpointError, Damaged
from controllers.checkpoint.folder import newest_first, step_of
from controllers.checkpoint.manifest import FORMAT, Manifest
from controllers.checkpoint.matching import PROCESS, differences, facts_of, told
from controllers.checkpoint.reading import array, load
from controllers.checkpoint.writing import Cells, field_cells, prepare_together, write
from controllers.engine import Progress
from controllers.engine.decision import decided
from controllers.integrity.digest import Digest
from controllers.process.errand import errand
from controllers.run.digesting import digests_of_plain, plain_digests
from controllers.run.ending import Ending
from controllers.run.listening import Listening, Stopped
from controllers.run.outputting import Outputting
from controllers.run.parameters import Parameters
from controllers.run.results import Results
from controllers.settings.checkpoints import Checkpoints
from controllers.settings.outputs import Output
from hitmap.agreement import is_on_all_ranks, on_all_ranks
from hitmap.shape import Shape

Scalars: TypeAlias = "dict[str, float]"
Go: TypeAlias = Callable[[Ending, "Progress | None", Scalars], "Results | None"]


class Keeping(Outputting):
    """Writes checkpoints of runs, and restores them."""

    _parameters: Parameters
    _results: Results | None
    _listening: Listening | None = None
    _n_kept = 0         # runs with checkpoints that have begun
    _kept_step = -1     # of the newest checkpoint of this run
    _damaged: frozenset[str] = frozenset()      # checkpoints of this run
    _stopped = False    # a condition has ended the last part of a run

    def _run_kept(
        self, kept: Checkpoints, ending: Ending, told: Progress | None, scalars: Scalars, go: Go,
        output: Output | None,
    ) -> Results | None:
        """Run by `go`, a part at a time, from the newest checkpoint on, if there is one."""
        begun = self._restore(kept, scalars)
        done = self.step - begun
        found = self._results if done and self._results is not None else None
        over = self._is_over(ending, begun) or self._held(ending, done, found)
        goes_on = self._kept_step >= 0
        with self._writing(output, goes_on=goes_on), self._keeping(kept, begun):
            while not over:
                done = self.step - begun
                part = ending.part(begun, done, kept.left(done))
                tell = _further(told, done, ending.n_steps)
                found, scalars = go(part, tell, scalars) or found, {}
                over = self._stopped or self._is_over(ending, begun)
                self._keep(kept, begun)
        return found

    @contextmanager
    def _keeping(self, kept: Checkpoints | None, begun: int) -> Iterator[None]:
        """In here signals and the clock ask for checkpoints of a run, if there are to be any."""
        if kept is None:
            yield
            return
        with Listening(self.comm, kept.every.seconds) as self._listening:
            try:
                yield
            except (KeyboardInterrupt, Stopped) as error:
                if is_on_all_ranks(error) and not self._engine.torn:
                    self._keep(kept, begun)
                raise
            finally:
                self._listening = None

    def _is_over(self, ending: Ending, begun: int) -> bool:
        enough = ending.n_steps is not None and self.step - begun >= ending.n_steps
        return enough or ending.reached(self._engine)

    def _held(self, ending: Ending, done: int, found: Results | None) -> bool:
        """Whether the run that was kept has ended by its condition.  Collective."""
        holds = ending.holds
        if holds is None or found is None or done % ending.check_every:
            return False
        return decided(self.comm, lambda: holds(found), "until=")

    @collective("kept", use="reads", beside="reads")
    def _keep(self, kept: Checkpoints, begun: int) -> None:
        """Write a checkpoint, unless there is one of this step."""
        if self._listening is not None:
            self._listening.rest()
        if self.step == self._kept_step:
            return
        self._flush_outputs()
        folder = kept.folder / f"run-{self._n_kept}"
        samples = [one.get() if one.of_fields else None for one in self.records]
        with errand(f"the writing of a checkpoint in {folder}"):
            write(
                folder, self.step, self._state_to_keep(begun), self._cells(samples), self.comm,
                self._damaged,
            )  # fmt: skip
        self._kept_step = self.step

    def _state_to_keep(self, begun: int) -> dict[str, Any]:
        """All but cells; the same on all ranks."""
        found = self._results
        known = found is not None and found.step == self.step
        return {
            "process": PROCESS, "step": self.step, "time": self.time, "begun": begun,
            "facts": facts_of(self.program, self.plan),
            "numbers": self._engine.numbers.kept, "repeats": self.repeats,
            "results": {**found} if found is not None and known else None,
            "records": [
                {"said": one.said, "steps": one.steps, "times": one.times, "values": one.values}
                for one in self.records
            ],
            "devices": self._devices_in_use, "ranks": self.comm.size,
            "cells": [*cells_on(self.plan, self._assembly.devices)],
            "digests": plain_digests(self._digest()),
            "digested": [] if self._digested is None else self._digested.plain,
        }  # fmt: skip

    def _cells(self, samples: list[Any]) -> Iterator[Cells]:
        yield from field_cells(self._engine)
        for number, whole in enumerate(samples, 1):
            if whole is not None:       # on rank 0
                yield f"record {number}", Shape.of_extent(whole.shape), whole

    @collective("kept", "scalars", use="sets")
    def _restore(self, kept: Checkpoints, scalars: Scalars) -> int:
        """A run begins: from its newest checkpoint that is whole.  At which step it has begun."""
        self._n_kept += 1
        self._parameters.change(self._engine, scalars)
        folder, now = kept.folder / f"run-{self._n_kept}", self.step
        self._kept_step, self._damaged = -1, frozenset()
        paths = [] if kept.restart == "no" else self._listed(folder)
        if not paths and kept.restart == "require":
            raise on_all_ranks(CheckpointError(
                f"{folder}: there is no checkpoint, and restart is 'require'; name another folder, "
                f"or leave restart out"
            ))  # fmt: skip
        prepare_together(folder, self.comm)
        for path in paths:
            try:
                return self._restored(path, kept, now)
            except Damaged as error:
                self._damaged |= {path.name}
                if self.comm.rank == 0:
                    warnings.warn(f"{path} is damaged: {error}", RuntimeWarning, stacklevel=2)
        if paths:
            raise on_all_ranks(CheckpointError(
                f"{folder}: all checkpoints are damaged ({', '.join(p.name for p in paths)}); "
                f"give restart='no' to begin anew"
            ))  # fmt: skip
        return now

    def _listed(self, folder: Path) -> list[Path]:
        """The checkpoints that there are, the same on all ranks."""
        found: list[Path] | str = []
        if self.comm.rank == 0:
            try:
                found = newest_first(folder)
            except OSError as error:
                found = f"{folder}: {error.strerror}"
        found = self.comm.bcast(found)
        if isinstance(found, str):
            raise on_all_ranks(CheckpointError(f"{found}; checkpoints cannot be looked for"))
        return found

    def _restored(self, path: Path, kept: Checkpoints, now: int) -> int:
        """Become what was kept; `Damaged` on all ranks.  At which step the run has begun."""
        found = self._together(lambda: Manifest.of(path) if self.comm.rank == 0 else None)
        manifest: Manifest = self.comm.bcast(found)
        state = manifest.state
        if manifest.format != FORMAT:
            raise on_all_ranks(CheckpointError(
                f"{path}: has the format {manifest.format}, this version reads {FORMAT}; go on "
                f"with the version that has written it, or name another folder"
            ))  # fmt: skip
        self._refuse(path, state, kept, now)
        if kept.restart == "auto" and self.comm.bcast(state["process"] == PROCESS):
            raise on_all_ranks(CheckpointError(
                f"{path}: another computation of this process has written it; give each one a "
                f"folder of its own, or restart='require' to go on from this one"
            ))  # fmt: skip
        fields = self.program.fields
        extents = {one.name: self.plan.layout_of(one.name).domain.extent for one in fields}
        sizes = {one.name: np.dtype(one.dtype).itemsize for one in fields}
        for number, (then, record) in enumerate(zip(state["records"], self.records), 1):
            if record.of_fields and then["said"] == record.said:
                extents[f"record {number}"] = (len(then["steps"]), *record.shape)
                sizes[f"record {number}"] = record.dtype.itemsize
        self._together(lambda: manifest.check(extents, sizes))
        self._share_as(state)
        names = [one.name for one in fields]
        self._arrays.settle(names, views=True)
        with self.state.setting("restart", names), errand(f"the reading of {path}"):
            self._together(lambda: load(self._engine, path, manifest))
            self._verify(digests_of_plain(state["digests"]))
            samples = self._together(lambda: {
                name: array(path, manifest, name, np.dtype(self.records[n - 1].dtype))
                for n, name in ((int(name.split()[1]), name) for name in extents if " " in name)
            } if self.comm.rank == 0 else {})
        self._take(state, samples or {})
        self._kept_step = step_of(path)
        return int(state["begun"])

    def _verify(self, then: Mapping[str, Digest]) -> None:
        """`Damaged` on all ranks where fields are not what they were.  Collective."""
        now = self._digest()
        wrong = [f"{name} has the digest {now[name]}, not {then[name]}"
                 for name in now if now[name] != then.get(name)]  # fmt: skip
        if wrong:
            raise Damaged("; ".join(wrong))

    def _refuse(self, path: Path, state: Any, kept: Checkpoints, now: int) -> None:
        """CheckpointError where it is of something else."""
        found = differences(state["facts"], facts_of(self.program, self.plan))
        found += differences({"the step at which the run begins": state["begun"]},
                             {"the step at which the run begins": now})  # fmt: skip
        remedy = "run the same program, name another folder, or give restart='no' to begin anew"
        if not found and not kept.anyway:
            found = differences(state["numbers"]["parameters"], self._engine.numbers.parameters)
            said = {f"record {n}": one["said"] for n, one in enumerate(state["records"], 1)}
            found += differences(
                said, {f"record {n}": one.said for n, one in enumerate(self.records, 1)}
            )
            remedy = "give restart_anyway to go on with those of now, or restart='no'"
        if found:
            raise on_all_ranks(CheckpointError(
                f"{path}: the run cannot go on from it: {told(found)}; {remedy}"
            ))  # fmt: skip

    def _take(self, state: Any, samples: dict[str, Any]) -> None:
        """Step, time, scalars, results and records, once the cells are there."""
        engine, step = self._engine, state["step"]
        parameters = engine.numbers.parameters
        engine.loaded(step)
        self._restored_step = step
        engine.numbers.go_on_with(state["numbers"])
        engine.numbers.change(parameters, step)
        engine.counts.update(state["repeats"])
        if self._digested is not None:
            self._digested.go_on(state["digested"])
        found = state["results"]
        self._results = found and Results(step, self.time, found, state["repeats"])
        for number, (then, record) in enumerate(zip(state["records"], self.records), 1):
            if then["said"] == record.said:
                values = then["values"] or samples.get(f"record {number}", [])
                record.go_on(then["steps"], then["times"], values)

    def _share_as(self, state: Any) -> None:
        """With the shares that were found to be good, where the devices are the same."""
        if self._balancer is None or state["devices"] != self._devices_in_use:
            return
        cells, self._is_calibrated = state["cells"], True
        if cells != [*cells_on(self.plan, self._assembly.devices)]:
            self._move([count / sum(cells) for count in cells])

    @property
    def _devices_in_use(self) -> list[str]:
        return [where.device for where in self._assembly.terms.controllers.locations]

    def _together(self, work: Callable[[], Any]) -> Any:
        """What `work` returns; `Damaged` on all ranks where it is on one.  Collective."""
        found, problem = None, None
        try:
            found = work()
        except Damaged as error:
            problem = str(error)
        problems = [one for one in self.comm.allgather(problem) if one is not None]
        if problems:
            raise Damaged(problems[0])
        return found


def _further(told: Progress | None, before: int, n_steps: int | None) -> Progress | None:
    """Who is told, of steps that come after others of a run of `n_steps`, if that is known."""
    if told is None:
        return None
    return lambda done, total: told(before + done, n_steps or before + total)
