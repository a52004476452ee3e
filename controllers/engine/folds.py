# SPDX-License-Identifier: MIT
"""What folds came to in the newest step that has them: for the scalars of it, and for the host."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, Union

from controllers.engine.combination import Found, Vector
from controllers.engine.numbers import Numbers
from controllers.plan.folding import needed
from controllers.program.accumulator import Accumulator, Result
from controllers.program.program import Program
from hitmap.comm import Communicator

Results: TypeAlias = Mapping[str, Union[Result, None]]


class Folds:
    """The newest folds of a program, merged over all ranks; every rank has the same.

    comm: a communicator of their own, as other messages of all ranks come at other times.
    """

    def __init__(self, program: Program, comm: Communicator, numbers: Numbers) -> None:
        self.comm = comm.Dup() if program.folds else comm
        self._program, self._numbers = program, numbers
        self._needed = needed(program)
        self._newest: dict[str, Accumulator] = {}
        self.is_trial = False   # of cells that nobody has set: a fold of none is 1 then

    def take(self, step: int, found: Found) -> tuple[Vector, Callable[[Vector], None]] | None:
        """These were folded in a step; what rank 0 says of scalars, and who takes it."""
        self._newest.update(found)
        if self._needed.isdisjoint(found):
            return None
        values = {name: self._number(name, one) for name, one in found.items()}
        vector, take = self._numbers.folded(step, values)
        if self._numbers.by_rank_0:
            return vector, take
        take(vector)
        return None

    def _number(self, name: str, found: Accumulator) -> float:
        try:
            return float(_value(name, found))
        except ValueError:
            if self.is_trial:
                return 1.0
            raise

    @property
    def results(self) -> dict[str, Result]:
        """The results of the program by name, as of the last step; ValueError where one has none.

        Collective where rank 0 computes scalars for all.
        """
        folds = self._program.folds
        found = {n: _value(n, one) for n, one in self._newest.items() if n in self._program.results}
        made = [name for name in self._program.results if name not in folds]
        if made and self._newest:
            values = {name: float(_value(name, one)) for name, one in self._newest.items()}
            scalars = self._numbers.latest(values)
            if self._numbers.by_rank_0:
                scalars = self.comm.bcast(scalars)
            found |= {name: scalars[name] for name in made if name in scalars}
        return {name: found[name] for name in self._program.results if name in found}

    def absorb(self, other: Folds) -> None:
        """What those, of a part of a step, have found is the newest."""
        self._newest.update(other._newest)

    def know(self, other: Folds) -> None:
        """Those have found what parts of the step after them compute with.  Collective."""
        self.absorb(other)
        found = {name: one for name, one in other._newest.items() if name in self._needed}
        if found:
            self._numbers.know({name: self._number(name, one) for name, one in found.items()})

    def forget(self) -> None:
        """Fields have been set: nothing is known of them."""
        self._newest.clear()

    def close(self) -> None:
        """Give back what belongs to MPI."""
        if self._program.folds:
            self.comm.Free()


def _value(name: str, found: Accumulator) -> Result:
    try:
        return found.value
    except ValueError as error:
        raise ValueError(f"fold {name!r}: {error}") from None
