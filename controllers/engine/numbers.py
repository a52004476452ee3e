# SPDX-License-Identifier: MIT
"""The scalars of each step: the same on all ranks, and known before a place opens the step.

What does not change between steps is computed once per run.  The rest is computed by each rank
itself where all hosts round alike; else, as of exp, by rank 0 for some steps in advance, which the
others come to know while they go on.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from controllers.device.event import COMPLETE, HostEvent, Profile
from controllers.engine.task import Awaited
from controllers.program.expression import Application, walk
from controllers.program.functions import FUNCTIONS
from controllers.program.program import Program
from controllers.program.scalars import TIME_STEP, ScalarRules
from controllers.program.surroundings import Surroundings
from hitmap.comm import Communicator

if TYPE_CHECKING:
    from mpi4py import MPI

BLOCK = 64      # steps that rank 0 computes at once
_UNDER_WAY = 1


class Numbers:
    """The parameters of a program as they are, its time, and the scalars of each step.

    Time is counted from when fields were set, or from the last change of `dt`: so many times `dt`
    as there were steps since, no running sum.
    """

    def __init__(self, program: Program, comm: Communicator) -> None:
        self.parameters = program.rules.usual
        self._rules, self._names, self._comm = program.rules, program.changing, comm
        self._by_rank_0 = comm.size > 1 and _is_rounded_by_hosts(program.rules)
        self._origin = (0, 0.0)     # a time step, and its time
        self._begun = (0, 0)        # the step of the plan in which the run begins; its time step
        self._last = 0              # the step of the plan in which it ends, or earlier
        self._first: Mapping[str, float] = {}   # the scalars of that step
        self._blocks: list[_Block] = []
        self._newest: tuple[int, Mapping[str, float]] = (-1, {})

    def restart(self) -> None:
        """Steps and time count from 0."""
        self._origin = (0, 0.0)

    def go_on_from(self, other: Numbers) -> None:
        """With the parameters and the time of another engine."""
        self.parameters, self._origin = other.parameters, other._origin

    def change(self, parameters: Mapping[str, float], n_steps: int) -> None:
        """From the time step `n_steps` on these are the parameters; `dt` may be another one."""
        if parameters.get(TIME_STEP) != self.parameters.get(TIME_STEP):
            self._origin = (n_steps, self.time(n_steps))
        self.parameters = {**parameters}

    def time(self, n_steps: int) -> float:
        """The time after so many time steps; 0 where there is no `dt`."""
        first, time = self._origin
        return time + (n_steps - first) * self.parameters.get(TIME_STEP, 0.0)

    def begin(self, step: int, last: int, n_steps: int) -> Mapping[str, float]:
        """The scalars as a run begins: of the steps `step` to `last` of the plan.

        n_steps: the time step of the first one.  Collective where rank 0 computes them.
        """
        self._begun, self._last, self._newest = (step, n_steps), last, (-1, {})
        self._first = self._rules.at(self.parameters, self.time(n_steps))
        if self._by_rank_0:
            self._first = self._comm.bcast(self._first)
            if self._names:
                self._begin_block()
        return self._first

    def telling(self, around: Surroundings) -> Callable[[int], Awaited | None] | None:
        """What tells a place the scalars of each step; None where they do not change in a run."""
        return partial(self._tell, around) if self._names else None

    def end(self) -> None:
        """All ranks have ended the run."""
        for block in self._blocks:
            block.wait()
        self._blocks.clear()

    def _tell(self, around: Surroundings, step: int) -> Awaited | None:
        """Give `around` the scalars of a step of the plan, or say what that has to wait for."""
        if not self._by_rank_0:
            if self._newest[0] != step:     # another place has not asked for it just now
                self._newest = (step, self._at(self._time_step(step)))
            around.change(self._newest[1])
            return None
        number, row = divmod(step - self._begun[0], BLOCK)
        if number + 1 == len(self._blocks):     # its first place is here: time for the next one
            self._begin_block()
        block = self._blocks[number]
        if not block.complete():
            return block
        around.change({**self._first, **dict(zip(self._names, block.values[row].tolist()))})
        return None

    def _time_step(self, step: int) -> int:
        first, n_steps = self._begun
        return n_steps + step - first

    def _at(self, n_steps: int) -> dict[str, float]:
        return self._rules.later(self._first, self.time(n_steps))

    def _begin_block(self) -> None:
        """Let the scalars of some more steps come, if there are more in the run."""
        first = self._begun[0] + len(self._blocks) * BLOCK
        values = np.empty((max(0, min(BLOCK, self._last + 1 - first)), len(self._names)))
        if not len(values):
            return
        if self._comm.rank == 0:
            for row in range(len(values)):
                now = self._at(self._time_step(first + row))
                values[row] = [now[name] for name in self._names]
        self._blocks.append(_Block(self._comm, values))


class _Block(Awaited):
    """The scalars of some steps, which rank 0 sends to all; its event is what it is asked by."""

    __slots__ = ("values", "_request")

    def __init__(self, comm: Communicator, values: npt.NDArray[np.float64]) -> None:
        super().__init__(blocks=False)
        self.values = values
        self._request = cast("MPI.Intracomm", comm).Ibcast(values)
        self.event = self

    @property
    def command_execution_status(self) -> int:
        return COMPLETE if self._request.Test() else _UNDER_WAY

    @property
    def profile(self) -> Profile:
        return HostEvent(0, 0)

    def wait(self) -> None:
        """Block until they are here."""
        self._request.Wait()


def _is_rounded_by_hosts(rules: ScalarRules) -> bool:
    """Whether hosts may round some of what is computed differently."""
    nodes = walk(*rules.derived.values())
    return any(isinstance(n, Application) and not FUNCTIONS[n.symbol].strict for n in nodes)
