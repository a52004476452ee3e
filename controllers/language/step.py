# SPDX-License-Identifier: MIT
"""Steps: Python functions that say what the fields of a cell become.

A step is called once, when a program is made of it, with values that stand for its fields and
scalars; what it does with them is written down (`controllers.language.traced`).
"""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, overload

import numpy as np

from controllers.language.location import line_of
from controllers.language.region import Over, Parity, region_of
from controllers.program.identifier import MAX_LENGTH
from controllers.program.repeat import Until
from controllers.program.scalars import TIME
from hitmap.argument import number, whole, wrong

Function: TypeAlias = Callable[..., Any]
Steps: TypeAlias = "Step | Method | Repeated | Sequence[Steps]"


class Time:
    """What annotates the keyword-only parameter of a step that is the time: `t: Time`."""


@dataclass(frozen=True, eq=False)
class Signature:
    """What a step's function asks for.

    fields: its positional parameters.  scalars: keyword-only ones, with their defaults, None where
    there is none.  times: those annotated `Time`, or called t.
    """

    fields: tuple[str, ...]
    scalars: Mapping[str, float | None]
    times: tuple[str, ...]

    @classmethod
    def of(cls, function: Function, what: str) -> Signature:
        """TypeError for parameters that no step has."""
        fields, scalars, times = [], {}, []
        for name, one in inspect.signature(function).parameters.items():
            if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
                raise TypeError(
                    f"{what} takes *{name}, but the fields of a step are its positional "
                    f"parameters by their names; name each"
                )
            if one.kind is not one.KEYWORD_ONLY:
                if one.default is not one.empty or _is_time(one.annotation):
                    raise TypeError(
                        f"{what}: {name!r} is positional, as fields are, but has a default or is "
                        f"the time; write a * before the scalars: def step(u, *, {name}=...)"
                    )
                fields.append(name)
            elif _is_time(one.annotation) or (name == TIME and one.default is one.empty):
                times.append(name)
            else:
                scalars[name] = _default(one, what)
        return cls(tuple(fields), scalars, tuple(times))


@dataclass(frozen=True, eq=False)
class Step:
    """A parallel update of fields, as a Python function says it; `step` makes them.

    signature: what it asks for.
    over: the cells that it computes, where that is not all; the others keep their values.
    temporaries: fields of its own, which begin as others do, by their names.
    It can be called from another step, as the plain function that it is.
    """

    function: Function
    name: str
    signature: Signature
    over: Over | None = None
    temporaries: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *fields: Any, **scalars: Any) -> Any:
        return self.function(*fields, **scalars)

    def __repr__(self) -> str:
        over = "" if self.over is None else f" over {self.over}"
        return f"<Step {self.name}{over}>"


@dataclass(frozen=True, eq=False, repr=False)
class Method:
    """Steps that follow from a rate as soon as it is known which fields it gives.

    steps: those, given the names of these fields.
    """

    name: str
    rate: Step
    steps: Callable[[Sequence[str]], list[Step]]

    def __repr__(self) -> str:
        return f"<{self.name}: {', '.join(self.rate.signature.fields)}>"


@dataclass(frozen=True, eq=False, repr=False)
class Repeated:
    """Steps that are done again and again within one time step; see `repeat`."""

    name: str
    steps: Sequence[Step | Method]
    at_most: int
    until: Until | None
    check_every: int

    def __repr__(self) -> str:
        return f"<{', '.join(map(str, self.steps))}, again and again, at most {self.at_most} times>"


@overload
def step(function: Function | Step, *, over: object = None) -> Step: ...
@overload
def step(function: None = None, *, over: object = None) -> Callable[[Function | Step], Step]: ...


def step(
    function: Function | Step | None = None, *, over: object = None
) -> Step | Callable[[Function | Step], Step]:
    """A decorator: the function says what fields become, once for all cells.

    Its positional parameters are fields, which all have the values of before the step; keyword-only
    ones are scalars, which may change between runs.  Of these, without a default, `t` (or what is
    annotated `Time`) is the time, `dt` the time step, and one called like an axis of the grid the
    coordinate of the cell.  It returns the new values by the names of fields, `dict(u=...)`; a
    field that is not in it keeps its values, and one that gets another field itself,
    `dict(old=u)`, is a new name for what that was before the step.
    over: the cells that are computed, all by default: a box, as slices, one per axis or by name;
        `parity(0)`; or a function of fields and coordinates, by their names, that gives a
        condition.  The other cells keep their values.

    >>> @step
    ... def decay(u, *, rate=0.5):
    ...     return dict(u=u - rate * u)
    >>> decay
    <Step decay>
    """
    if function is None:
        return lambda later: step(later, over=over)
    if isinstance(function, Step):
        return function if over is None else replace(function, over=region_of(over))
    if not callable(function):
        raise wrong("step", "a function", function, "write @step above its def")
    name = re.sub(r"\W|^[\d_]+", "", getattr(function, "__name__", "")).strip("_")
    name = re.sub("__+", "_", name)[: MAX_LENGTH - 8].strip("_") or "step"
    name = "step" if name == "lambda" else name
    signature = Signature.of(function, f"step {name!r} ({line_of(function)})")
    return Step(function, name, signature, region_of(over))


@overload
def repeat(steps: Steps, n: int) -> list[Step | Method]: ...
@overload
def repeat(
    steps: Steps, n: None = None, *, until: Until, check_every: int = 1, at_most: int
) -> Repeated: ...


def repeat(
    steps: Steps,
    n: int | None = None,
    *,
    until: Until | None = None,
    check_every: int = 1,
    at_most: int | None = None,
) -> list[Step | Method] | Repeated:
    """The steps so many times in a row, all within one time step; or until something holds.

    until: a function of what there is then, `lambda now: now.residual < 1e-4`: the results that the
        steps return by name, `step` and `time`, as the time step began, and `count`, how often the
        steps were done.  It is asked on one rank, every `check_every` times and in the end.
    at_most: how often the steps are done where it never holds.

    >>> halve = step(lambda u: dict(u=u / 2))
    >>> repeat(halve, 2)
    [<Step step>, <Step step>]
    >>> repeat(halve, until=lambda now: now.top < 1, check_every=10, at_most=500)
    <<Step step>, again and again, at most 500 times>
    """
    if until is None:
        if n is None or at_most is not None or check_every != 1:
            raise ValueError(
                "repeat: give how often, repeat(step, 3), or until=, check_every= and at_most="
            )
        return plain_steps(steps, "repeat") * whole(n, "repeat: n", 1)
    if n is not None or at_most is None:
        raise ValueError(
            "repeat: with until= it is at_most= that says how often the steps are done if that "
            "never holds, and nothing else; give at_most="
        )
    if not callable(until):
        raise wrong("repeat: until", "a function", until, "as lambda now: now.residual < 1e-4")
    found = plain_steps(steps, "repeat")
    first = found[0]
    name = first.name if isinstance(first, Step) else first.rate.name
    return Repeated(
        name, found, whole(at_most, "repeat: at_most", 1), until,
        whole(check_every, "repeat: check_every", 1),
    )  # fmt: skip


def parity(n: int) -> Parity:
    """Cells whose indices add up to an even number (0) or an odd one (1): red or black."""
    return Parity(whole(n, "parity", 0) % 2)


def plain_steps(steps: object, what: str) -> list[Step | Method]:
    """The same, none of which is repeated until something holds."""
    found = []
    for one in steps_of(steps):
        if isinstance(one, Repeated):
            raise ValueError(
                f"{what}: {one!r} cannot be repeated in turn; let the run do that, or write one "
                f"repeat after another"
            )
        found.append(one)
    return found


def called(steps: object) -> list[Step]:
    """The steps that users wrote: rates in place of methods, and those that are repeated."""
    found: list[Step] = []
    for one in steps_of(steps):
        if isinstance(one, Repeated):
            found += called(one.steps)
        else:
            found.append(one if isinstance(one, Step) else one.rate)
    return found


def steps_of(steps: object) -> list[Step | Method | Repeated]:
    """One step or several, in lists of lists, in their order."""
    if isinstance(steps, (Step, Method, Repeated)):
        return [steps]
    if isinstance(steps, Sequence) and not isinstance(steps, str):
        found = [one for part in steps for one in steps_of(part)]
        if found:
            return found
        raise ValueError("a program needs at least one step, got none; decorate one by @ct.step")
    raise wrong("steps", "a step, or a list of steps,", steps, "decorate a function by @ct.step")


def _is_time(annotation: object) -> bool:
    if isinstance(annotation, str):     # from __future__ import annotations
        return annotation.rpartition(".")[2] == "Time"
    return annotation is Time


def _default(parameter: inspect.Parameter, what: str) -> float | None:
    if parameter.default is parameter.empty:
        return None
    if isinstance(parameter.default, (bool, np.bool_)) or not isinstance(
        parameter.default, (int, float, np.integer, np.floating)
    ):
        raise TypeError(
            f"{what}: the keyword-only {parameter.name!r} is a scalar, but its default is no "
            f"number: {parameter.default!r}; take what never changes from outside the function"
        )
    return float(number(parameter.default, parameter.name))
