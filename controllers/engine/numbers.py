# SPDX-License-Identifier: MIT
"""The scalars of each step: the same on all ranks, and known before a place opens the step.

What does not change between steps is computed once per run.  The rest is computed by each rank
itself where all hosts round alike; else, as of exp, by rank 0 for some steps in advance, which the
others come to know while they go on.  What is made of folds is known within its step, once these
are; where `dt` is, the next step begins then.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.engine.block import Block
from controllers.engine.task import Awaited
from controllers.program.expression import Application, walk
from controllers.program.functions import FUNCTIONS
from controllers.program.program import Program
from controllers.program.scalars import TIME_STEP, ScalarRules
from controllers.program.surroundings import Surroundings
from hitmap.comm import Communicator

BLOCK = 64      # steps that rank 0 computes at once
_KEPT = 64      # steps whose scalars are kept, at least
Vector: TypeAlias = "npt.NDArray[np.float64]"


class Numbers:
    """The parameters of a program as they are, its time, and the scalars of each step.

    Time is counted from when fields were set, or from the last change of `dt`: so many times `dt`
    as there were steps since, no running sum, unless steps compute their own `dt`.
    """

    def __init__(
        self, program: Program, comm: Communicator, stop: Callable[[int], None] = lambda step: None
    ) -> None:
        """`stop` is told the last step of a run that ends at a time."""
        self.parameters = program.rules.usual
        self._rules, self._names, self._comm = program.rules, program.changing, comm
        # those with which a step begins
        self._first_names = [name for name in self._names if not program.rules.needs([name])]
        self.by_rank_0 = comm.size > 1 and _is_rounded_by_hosts(program.rules)
        self._origin = (0, 0.0)     # a time step, and its time
        self._still: float | None = None    # the time of all steps
        self._longest = math.inf    # that a step may be, where steps compute `dt`
        self._begun = (0, 0)        # the step of the plan in which the run begins; its time step
        self._last = 0              # the step of the plan in which it ends, or earlier
        self._first: Mapping[str, float] = {}   # the scalars of that step
        self._latest: Mapping[str, float] = {}  # ... of the last one that was run
        self._blocks: list[Block] = []
        self._stop, self._until = stop, math.inf
        self._awaited: Sequence[Awaited] = ()   # what makes folds known
        self._times: dict[int, float] = {}      # of steps of the plan, where steps compute `dt`
        self._known: dict[int, Mapping[str, float]] = {}    # the scalars of steps with folds
        self._arounds: list[Surroundings] = []      # of the places that are told
        self._at: dict[Surroundings, int] = {}      # which step each of them is at

    @property
    def by_steps(self) -> bool:
        """Whether steps compute their own `dt`."""
        return self._rules.time_is_folded and self._still is None

    def watch(self, combining: Sequence[Awaited]) -> None:
        """These make known what folds came to: `folded` is called when they are complete."""
        self._awaited = combining

    def restart(self) -> None:
        """Steps and time count from 0."""
        self._origin = (0, 0.0)

    def go_on_from(self, other: Numbers) -> None:
        """With the parameters and the time of another engine."""
        self.parameters, self._origin = other.parameters, other._origin
        self._still, self._longest, self._latest = other._still, other._longest, other._latest

    @property
    def kept(self) -> dict[str, Any]:
        """What `go_on_with` takes: all that steps after this one need to know, in plain numbers."""
        return {
            "parameters": {**self.parameters}, "origin": [*self._origin], "latest": {**self._latest}
        }

    def go_on_with(self, kept: Mapping[str, Any]) -> None:
        """With the time, the parameters and the scalars that there were once."""
        step, time = kept["origin"]
        self.parameters = {**kept["parameters"]}
        self._origin, self._latest = (step, time), {**kept["latest"]}

    def go_back(self, n_steps: int, time: float) -> None:
        """To a step of this engine, at the time that it had."""
        if self.by_steps:
            self._origin = (n_steps, time)

    def change(self, parameters: Mapping[str, float], n_steps: int) -> None:
        """From the time step `n_steps` on these are the parameters; `dt` may be another one."""
        if parameters.get(TIME_STEP) != self.parameters.get(TIME_STEP):
            self._origin = (n_steps, self.time(n_steps))
        self.parameters = {**parameters}

    @property
    def step_time(self) -> float:
        """How long the last step was, where steps compute their own `dt`."""
        return self._latest.get(TIME_STEP, 0.0)

    def stand_still(self, other: Numbers, n_steps: int) -> None:
        """All steps are parts of one step, this one of another engine, with what it knows."""
        known = {n: other._latest[n] for n in self._rules.parameters if n in other._latest}
        self.parameters = {**self._rules.usual, **other.parameters, **known}
        self._still, self._longest = other.time(n_steps), other._longest

    def time(self, n_steps: int) -> float:
        """The time after so many time steps; 0 where there is no `dt`."""
        if self._still is not None:
            return self._still
        first, time = self._origin
        if self.by_steps:       # known of the newest step alone
            return time
        return time + (n_steps - first) * self.parameters.get(TIME_STEP, 0.0)

    def begin(
        self, step: int, last: int, n_steps: int, until: float = math.inf
    ) -> Mapping[str, float]:
        """The scalars of the steps `step` to `last` of the plan, as a run begins.

        n_steps: the time step of the first one.  until: the time at which the run ends, where steps
        compute their own.  Collective where rank 0 computes them.
        """
        self._until, self._times = until, {step: self.time(n_steps)}
        if self.by_steps:
            self._longest = until - self._times[step]
        self._known, self._at = {}, dict.fromkeys(self._arounds, step)
        self._begun, self._last = (step, n_steps), last
        self._first = self._rules.at(self.parameters, self.time(n_steps))
        if self.by_rank_0:
            self._first = self._comm.bcast(self._first)
            if self._first_names and not self.by_steps:
                self._begin_block()
        self._latest = self._first
        return self._first

    def telling(
        self, turns: Sequence[Surroundings]
    ) -> Callable[[int], Awaited | None] | None:
        """What tells a place the scalars of each step; None where they do not change in a run.

        turns: of the time steps that a step of the plan is, one for each; the steps of all other
        calls are these time steps.
        """
        if not self._names and not self.by_steps:
            return None
        self._arounds += turns
        if len(turns) == 1:
            return partial(self._tell, turns[0])

        def tell(step: int) -> Awaited | None:
            missing = (self._tell(one, step * len(turns) + n) for n, one in enumerate(turns))
            return next((one for one in missing if one is not None), None)

        return tell

    def folded(
        self, step: int, values: Mapping[str, float]
    ) -> tuple[Vector, Callable[[Vector], None]]:
        """These folds of a step are known: what is made of them, and what takes it from all ranks.

        The vector is to be rank 0's first where `by_rank_0`.
        """
        before, most = self._known[step], self._longest
        if self.by_steps:
            most = self._until - self._times[step]
        after = self._rules.after(before, values, most)
        names = [name for name in after if name not in before]
        vector = [after[name] for name in names]
        ends = self.by_steps and TIME_STEP in names
        later: dict[str, float] = {}
        if ends:
            dt = after[TIME_STEP]
            time = self._until if dt == most else self._times[step] + dt
            later = self._rules.later(self._first, time)
            vector += [time, *later.values()]

        def take(vector: Vector) -> None:
            found = vector.tolist()
            self._change(step, {**before, **dict(zip(names, found))})
            if ends:
                self._times[step + 1] = found[len(names)]
                self._known[step + 1] = dict(zip(later, found[len(names) + 1 :]))

        return np.array(vector), take

    def _change(self, step: int, numbers: Mapping[str, float]) -> None:
        """From now on these are the scalars of a step, and of the places that are at it."""
        self._known[step] = numbers
        for around, at in self._at.items():
            if at == step:
                around.change(numbers)

    def end(self, last: int) -> None:
        """All ranks have ended the run with this step of the plan."""
        for block in self._blocks:
            block.wait()
        self._blocks.clear()
        self.reach(last)

    def reach(self, last: int) -> None:
        """This step of the plan is the newest: time and scalars are as of it."""
        if self.by_steps:
            step = max(self._times)
            self._origin = (self._time_step(step), self._times[step])
        if self._known:
            self._latest = self._known[max(n for n in self._known if n <= last)]

    def latest(self, values: Mapping[str, float]) -> dict[str, float]:
        """The scalars of the last step, with these folds where that has not needed them."""
        new = {name: value for name, value in values.items() if name not in self._latest}
        return self._rules.after(self._latest, new, self._longest)

    def know(self, values: Mapping[str, float]) -> None:
        """These folds of the step are known, as rank 0 says.  Collective where `by_rank_0`."""
        found = self.latest(values)
        self._latest = self._comm.bcast(found) if self.by_rank_0 else found

    def pass_step(self, step: int) -> None:
        """All is known of a step, which is a run."""
        if self.by_steps:
            dt = self._latest[TIME_STEP]
            time = self._until if dt == self._longest else self._times[step] + dt
            self._times[step + 1] = time
        self.end(step)

    def _tell(self, around: Surroundings, step: int) -> Awaited | None:
        """Give `around` the scalars of a step of the plan, or say what that has to wait for."""
        if self.by_steps and step not in self._times:
            return next((one for one in self._awaited if not one.complete()), Awaited())
        if self._until < math.inf and self.is_over(step):
            self._stop(step - 1)
            return None
        numbers = self._known.get(step)     # another place has asked for it before
        if numbers is None:
            found = self._beginning(step)
            if isinstance(found, Awaited):
                return found
            numbers = self._known[step] = found
        self._at[around] = step
        if len(self._known) > _KEPT:
            least = min(self._at.values()) - 1
            self._known = {n: known for n, known in self._known.items() if n >= least}
            self._times = {n: time for n, time in self._times.items() if n >= least}
        around.change(numbers)
        return None

    def is_over(self, step: int) -> bool:
        """Whether the run ends before a step: it is the time, or the last step took none."""
        time = self._times[step]
        return time >= self._until or not time > self._times.get(step - 1, -math.inf)

    def _beginning(self, step: int) -> Mapping[str, float] | Awaited:
        """The scalars with which a step begins, or what that has to wait for."""
        if self.by_steps:
            return self._first if step == self._begun[0] else self._known[step]
        if not self.by_rank_0 or not self._first_names:
            return self._scalars(self._time_step(step))
        number, row = divmod(step - self._begun[0], BLOCK)
        if number + 1 == len(self._blocks):     # its first place is here: time for the next one
            self._begin_block()
        block = self._blocks[number]
        if not block.complete():
            return block
        return {**self._first, **dict(zip(self._first_names, block.values[row].tolist()))}

    def _time_step(self, step: int) -> int:
        first, n_steps = self._begun
        return n_steps + step - first

    def _scalars(self, n_steps: int) -> dict[str, float]:
        return self._rules.later(self._first, self.time(n_steps))

    def _begin_block(self) -> None:
        """Let the scalars of some more steps come, if there are more in the run."""
        first = self._begun[0] + len(self._blocks) * BLOCK
        values = np.empty((max(0, min(BLOCK, self._last + 1 - first)), len(self._first_names)))
        if not len(values):
            return
        if self._comm.rank == 0:
            for row in range(len(values)):
                now = self._scalars(self._time_step(first + row))
                values[row] = [now[name] for name in self._first_names]
        self._blocks.append(Block(self._comm, values))


def _is_rounded_by_hosts(rules: ScalarRules) -> bool:
    """Whether hosts may round some of what is computed differently."""
    nodes = walk(*rules.derived.values())
    return any(isinstance(n, Application) and not FUNCTIONS[n.symbol].strict for n in nodes)
