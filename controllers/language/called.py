# SPDX-License-Identifier: MIT
"""Steps that were called: what each computes, and which results all of them have together."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from controllers.language.half_points import Half
from controllers.language.location import line_of
from controllers.language.reduced import Reduced, folds_in
from controllers.language.step import Repeated, Step
from controllers.program.expression import Expression, walk
from controllers.program.scalars import TIME_STEP

Restriction = Callable[[Half], "Expression | None"]     # of the cells of fields that lie there


@dataclass
class Called:
    """A step that was called.

    updates: what fields become.  numbers: results, and `dt`, which are made of folds.
    over: the cells that it computes, where that is not all.  within: what repeats it.
    copies: the updates that give a field all of another one, as a rename does.
    """

    step: Step
    updates: dict[str, Expression]
    numbers: dict[str, Expression]
    over: Restriction | None = None
    within: Repeated | None = None
    copies: tuple[str, ...] = ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All that it computes."""
        return *self.updates.values(), *self.numbers.values()

    @property
    def folds(self) -> list[Reduced]:
        """The folds in that, each after those of which it is made."""
        found: dict[Reduced, None] = {}
        for one in folds_in(self.expressions):
            found |= dict.fromkeys(folds_in(self.parts(one)))
            found[one] = None
        return [*found]

    def parts(self, fold: Reduced) -> tuple[Expression, ...]:
        """What a fold of the step is made of: the operand, then conditions of its cells."""
        over = None if self.over is None or fold.everywhere else self.over(fold.half)
        operand, *conditions = fold.expressions
        return (operand, *conditions) if over is None else (operand, over, *conditions)

    @property
    def nodes(self) -> list[Expression]:
        """All nodes of that, of what folds are made, too."""
        return walk(*self.expressions, *(part for one in self.folds for part in self.parts(one)))


def results_of(
    steps: Sequence[Called], parameters: Mapping[str, float | None], dt: float | None
) -> tuple[str, ...]:
    """The names of all results; of a step that is done several times the last ones count.

    parameters: what steps ask for, by name, with its default.  dt: what the computation gives.
    """
    found: dict[str, Called] = {}
    for called in steps:
        what = f"{line_of(called.step.function)}, step {called.step.name!r}"
        for name in called.numbers:
            before = found.setdefault(name, called)
            if before.step is not called.step or (name == TIME_STEP and before is not called):
                raise ValueError(
                    f"{what} returns {name!r}, and {before.step.name!r} before it does, too; "
                    f"rename one of them"
                )
            if before is not called:
                del before.numbers[name]
                found[name] = called
            if parameters.get(name) is not None:
                raise ValueError(
                    f"{what} returns {name!r}, which is a scalar with a default elsewhere; leave "
                    f"the default out where the result is meant, or rename it"
                )
        if TIME_STEP in called.numbers and dt is not None:
            raise ValueError(
                f"{what} returns dt, and the computation is given dt={dt}; leave one of them out"
            )
        if TIME_STEP in called.numbers and TIME_STEP in called.step.signature.scalars:
            raise ValueError(
                f"{what} takes dt and returns it; use the one that it computes, and leave the "
                f"parameter out"
            )
    _check_repeats(steps)
    return tuple(name for name in found if name != TIME_STEP)


def _check_repeats(steps: Sequence[Called]) -> None:
    """ValueError where `until` of a repeat could not see what the repeat changes."""
    seeing = [one.within for one in steps if {*one.numbers} - {TIME_STEP}]
    for called in steps:
        if called.within is not None and called.within not in seeing:
            raise ValueError(
                f"{line_of(called.step.function)}, repeat of {called.within.name!r}: its steps "
                f"return no result of their own, so until= sees nothing that changes; return one, "
                f"as residual=ct.max(np.abs(new - u))"
            )
