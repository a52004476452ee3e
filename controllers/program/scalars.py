# SPDX-License-Identifier: MIT
"""The scalars of a program: parameters, `dt` and `t`, and what is computed of them on the host.

Arithmetic among scalars is done in float64 with NumPy, functions such as exp included, by one
processor for all devices.  What meets a field is rounded once, to the dtype of what it meets.
"""
from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias, Union

from controllers.program.expression import Application, Constant, Expression, Node, Scalar, walk
from controllers.program.host_work import computed, work_of
from controllers.program.host_work import scalars_in as scalars_in
from controllers.program.identifier import check_identifier, short
from hitmap.argument import number, wrong

TIME_STEP, TIME = "dt", "t"     # the names that every program may use
# Of `Computation.run`, which takes parameters beside them.
KEYWORDS = (
    "n_steps", "progress", "until", "check_every", "at_most", "stop_if", "output", "checkpoint",
    "restart", "restart_anyway", "plot",
)  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """A number that may change between runs, never within one; nothing is built again for it.

    Without a default it must be given before the first run.
    """

    default: float | None = None

    def __post_init__(self) -> None:
        if self.default is not None:
            object.__setattr__(self, "default", parameter_value("default", self.default))


@dataclass(frozen=True)
class Folded:
    """What a stage folds: known within a step, to the stages after it, and on the host then."""


ScalarRule: TypeAlias = Union[Parameter, Folded, Expression]


class ScalarRules(dict[str, ScalarRule]):
    """What each scalar is, by name; equal where expressions are the very same objects.

    Where `t` or `dt` is used, `dt` is a parameter unless it has a rule, which is made of folds.
    What is made of folds is not known as a step begins.  ValueError for what cannot be a rule.
    """

    def __init__(self, rules: Mapping[str, ScalarRule], used: Iterable[str] = ()) -> None:
        if not isinstance(rules, Mapping):
            raise wrong("scalars", "a mapping of names to parameters and expressions", rules)
        super().__init__(rules)
        for name, rule in self.items():
            _check_rule(name, rule)
        every = scalars_in(*self.derived.values()) | {*used}
        if every & {TIME, TIME_STEP}:
            self.setdefault(TIME_STEP, Parameter())
        self._check_known(every)
        work = work_of(self.derived)
        changing = {TIME}
        self._needs: dict[str, set[str]] = {name: {name} for name in self.folds}
        for name, _ in work:
            used = scalars_in(self.derived[name])
            changing |= {name} if used & changing else set()
            needs = [self._needs[one] for one in used if one in self._needs]
            if needs:
                self._needs[name] = set().union(*needs)
        if TIME_STEP in self.derived and TIME_STEP not in self._needs:
            raise ValueError(
                f"the scalar 'dt' is made of no fold: {self[TIME_STEP]}; make it a Parameter, and "
                f"compute others from it"
            )
        self._work = [(name, one) for name, one in work if name not in self._needs]
        self._changing_work = [(name, one) for name, one in self._work if name in changing]
        self._later_work = [(name, one) for name, one in work if name in self._needs]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScalarRules) and self._identity == other._identity

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __reduce__(self) -> tuple[type[ScalarRules], tuple[dict[str, ScalarRule]]]:
        return ScalarRules, (dict(self),)

    @property
    def _identity(self) -> dict[str, object]:
        return {n: id(rule) if isinstance(rule, Node) else rule for n, rule in self.items()}

    @property
    def parameters(self) -> dict[str, float | None]:
        """The defaults of the parameters, in order; None for one that must be given."""
        return {n: rule.default for n, rule in self.items() if isinstance(rule, Parameter)}

    @property
    def folds(self) -> tuple[str, ...]:
        """Those that stages fold."""
        return tuple(name for name, rule in self.items() if isinstance(rule, Folded))

    @property
    def time_is_folded(self) -> bool:
        """Whether `dt` is made of folds, so that `t` is the sum of all its values."""
        return TIME_STEP in self._needs

    def needs(self, names: Iterable[str]) -> set[str]:
        """The folds of which these scalars are made."""
        return set().union(*(self._needs.get(name, ()) for name in names))

    @property
    def usual(self) -> dict[str, float]:
        """The parameters as they are by default, and 1 where they have none."""
        return {n: 1.0 if value is None else value for n, value in self.parameters.items()}

    def given(self, values: Mapping[str, object]) -> dict[str, float]:
        """`values` for parameters, and `dt` for the steps of any program, checked.

        ValueError or TypeError for what is no parameter, or no number.

        >>> ScalarRules({"F": Parameter(0.5)}).given({"F": 1, "dt": 0.25})
        {'F': 1.0, 'dt': 0.25}
        """
        known = [*dict.fromkeys((*self.parameters, TIME_STEP))]
        for name in values:
            if name in self.folds:
                raise ValueError(f"the scalar {name!r} is what a stage folds; leave it out")
            if name in self.derived or name == TIME:
                raise ValueError(f"the scalar {name!r} is computed of others; give these")
            if name not in known:
                close = get_close_matches(str(name), known, 1)
                meant = f"; did you mean {close[0]}?" if close else ""
                raise ValueError(
                    f"there is no scalar {name!r}{meant} (there are {', '.join(known)})"
                )
        return {name: parameter_value(name, value) for name, value in values.items()}

    def complete(self, values: Mapping[str, float]) -> dict[str, float]:
        """`values` and the defaults of all other parameters; ValueError where one has none."""
        found = {**self.parameters, **values}
        missing = [name for name, value in found.items() if value is None]
        if missing:
            raise ValueError(
                f"the scalar {missing[0]!r} has no value and no default; give it, as "
                f"{missing[0]}=1.0"
            )
        return found  # type: ignore[return-value]

    @property
    def derived(self) -> dict[str, Expression]:
        """The rules of those that are computed of others."""
        return {n: rule for n, rule in self.items() if isinstance(rule, Node)}

    def changing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of `names` that change from step to step: of `t`, and of folds."""
        changing = {TIME, *self._needs, *(name for name, _ in self._changing_work)}
        return tuple(name for name in names if name in changing)

    def at(self, parameters: Mapping[str, float], time: float) -> dict[str, float]:
        """All scalars, in float64, given the parameters and `t`; NaN and inf as IEEE 754 says.

        Folds, and what is made of them, are left out: `after` adds them.

        >>> rules = ScalarRules({"a": Parameter(3.0), "b": Scalar("a") * Scalar("t")})
        >>> rules.at({"a": 2.0, "dt": 0.5}, time=1.5)
        {'a': 2.0, 'dt': 0.5, 't': 1.5, 'b': 3.0}
        """
        return computed(self._work, {**parameters, TIME: time})

    def later(self, known: Mapping[str, float], time: float) -> dict[str, float]:
        """All scalars at another time than `known` was: what does not change stays as it is."""
        return computed(self._changing_work, {**known, TIME: time})

    def after(
        self, known: Mapping[str, float], values: Mapping[str, Any], longest: float = math.inf
    ) -> dict[str, float]:
        """All scalars that `known` has, with these folds and what is made of those known by now.

        longest: `dt` is at most so long, if it is made of folds.

        >>> rules = ScalarRules({"fastest": Folded(), "dt": 0.5 / Scalar("fastest")})
        >>> rules.after(rules.at({}, time=0.0), {"fastest": 4.0})
        {'t': 0.0, 'fastest': 4.0, 'dt': 0.125}
        """
        found = {**known, **{name: float(value) for name, value in values.items()}}
        due = [
            (name, work) for name, work in self._later_work
            if self._needs[name] <= found.keys() and self._needs[name] & values.keys()
        ]
        return computed(due, found, {TIME_STEP: longest})

    def _check_known(self, used: Iterable[str]) -> None:
        known = {*self, TIME} if TIME_STEP in self else {*self}
        for name in sorted({*used} - known):
            raise ValueError(
                f"the scalar {name!r} is used, and the program has "
                f"{', '.join(sorted(known)) or 'none'}; say what it is in `scalars`, as "
                f"{{{name!r}: Parameter(1.0)}}"
            )


def parameter_value(name: str, value: object) -> float:
    """`value` as a float64; TypeError for what is no number, ValueError for what is not finite.

    >>> parameter_value("F", 1)
    1.0
    """
    found = float(number(value, f"the scalar {name!r}"))
    if not math.isfinite(found):
        raise ValueError(f"the scalar {name!r} must be a finite number, got {found}; replace it")
    return found


def _check_rule(name: str, rule: object) -> None:
    check_identifier(name, "scalar")
    if name == TIME:
        raise ValueError("the scalar 't' is the time, t0 + n dt, by itself; leave its rule out")
    if isinstance(rule, Folded):
        if name == TIME_STEP:
            raise ValueError("a fold cannot be called 'dt'; make the scalar 'dt' of it")
        return
    if isinstance(rule, Parameter):
        if name in KEYWORDS:
            raise ValueError(
                f"a parameter cannot be called {name!r}, as what `run` takes; choose another name"
            )
        return
    if not isinstance(rule, Node):
        raise wrong(f"scalar {name!r}", "a Parameter or an expression of scalars", rule)
    if rule.is_condition:
        raise ValueError(
            f"scalar {name!r} is a condition, {rule}, and a scalar is a number; choose it by "
            f"where(condition, 1, 0)"
        )
    for node in walk(rule):  # type: ignore[arg-type]
        if not isinstance(node, (Scalar, Constant, Application)):
            raise ValueError(
                f"scalar {name!r} is known on the host before a step, but has {node}, a value of "
                f"each cell; compute it in a stage"
            )
        if isinstance(node, Constant) and abs(node.value) > sys.float_info.max:
            raise ValueError(f"scalar {name!r}: {short(node.value)} is beyond float64; scale it")
