# SPDX-License-Identifier: MIT
"""Methods: steps made of a rate, a function of fields that gives how fast each changes.

A rate has the parameters of a step and returns dict(u=...) for the fields that change.  What is
between the stages of a method is kept in temporary fields, `u_1` and `u_2`, which begin as `u`
itself and have its boundary.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, Union

from controllers.language.location import line_of
from controllers.language.step import Function, Method, Signature, Step, Steps, step
from controllers.program.scalars import TIME_STEP
from hitmap.argument import number, wrong

Fields = Mapping[str, Any]
TimeStep: TypeAlias = Union[float, Function, None]


@dataclass(frozen=True)
class _Stage:
    """What one stage gives: `own` u + `share` (the stage before + dt rate), `late` dt after u."""

    own: Fraction
    share: Fraction
    late: Fraction


_HEUN = (
    _Stage(Fraction(0), Fraction(1), Fraction(0)),
    _Stage(Fraction(1, 2), Fraction(1, 2), Fraction(1)),
)
_RK3 = (
    _Stage(Fraction(0), Fraction(1), Fraction(0)),
    _Stage(Fraction(3, 4), Fraction(1, 4), Fraction(1)),
    _Stage(Fraction(1, 3), Fraction(2, 3), Fraction(1, 2)),
)


def heun(rate: Function | Step, dt: TimeStep = None) -> Steps:
    """Heun's method, of second order: u1 = u + dt rate(u); u = 1/2 u + 1/2 (u1 + dt rate(u1)).

    dt: a number, or None for the time step of the computation; or a function of fields that gives
        it anew in each step, made of folds: `lambda u: 0.4 * grid.dx / ct.max(np.abs(u))`.

    >>> heun(lambda u: dict(u=-u), dt=0.1)
    <heun of step: u>
    """
    return _single(_runge_kutta("heun", [rate], dt, [_HEUN]))


def rk3(rate: Function | Step, dt: TimeStep = None) -> Steps:
    """The Runge-Kutta method of third order by Shu and Osher, in three stages.

    u1 = u + dt rate(u); u2 = 3/4 u + 1/4 (u1 + dt rate(u1)); u = 1/3 u + 2/3 (u2 + dt rate(u2)).
    dt: as for `heun`.
    """
    return _single(_runge_kutta("rk3", [rate], dt, [_RK3]))


def leapfrog(*rates: Function | Step, dt: TimeStep = None) -> Steps:
    """Rates in turn, each seeing what the ones before changed: v = v + dt a(u); u = u + dt b(v).

    Of second order for two fields of which each one's rate is the other's, taken as half a time
    step apart: `v` is then that of half a step earlier than `u`.
    dt: as for `heun`.

    >>> leapfrog(lambda v, u: dict(v=-u), lambda u, v: dict(u=v), dt=0.1)
    [<leapfrog of step: v, u>, <leapfrog of step: u, v>]
    """
    if not rates:
        raise ValueError("leapfrog needs at least one rate, got none; give functions of fields")
    late = [Fraction(0), *[Fraction(1, 2)] * (len(rates) - 1)]
    schemes = [(_Stage(Fraction(0), Fraction(1), begin),) for begin in late]
    return _runge_kutta("leapfrog", rates, dt, schemes)


def _runge_kutta(
    what: str,
    rates: Sequence[Function | Step],
    dt: TimeStep,
    schemes: Sequence[Sequence[_Stage]],
) -> list[Step | Method]:
    """The methods of some rates in turn, behind the step that computes `dt`, if one does."""
    steps: list[Step | Method] = []
    if callable(dt):
        steps.append(_of_time_step(dt, what))
        dt = None
    number = _time_step(dt, what)
    return steps + [_method(what, *one, number) for one in zip(rates, schemes)]


def _single(steps: list[Step | Method]) -> Steps:
    return steps if len(steps) > 1 else steps[0]


def _method(
    what: str, rate: Function | Step, scheme: Sequence[_Stage], dt: float | None
) -> Method:
    made = _rate(rate, what)

    def steps(changed: Sequence[str]) -> list[Step]:
        return [_stage(made, scheme, at, changed, dt) for at in range(len(scheme))]

    return Method(f"{what} of {made.name}", made, steps)


def _stage(
    rate: Step, scheme: Sequence[_Stage], at: int, changed: Sequence[str], dt: float | None
) -> Step:
    """One of the stages; it reads the temporaries of the stage before and writes its own."""
    part, last = scheme[at], at == len(scheme) - 1
    before = {name: f"{name}_{at}" if at else name for name in changed}
    after = {name: name if last else f"{name}_{at + 1}" for name in changed}
    own, share = float(part.own), float(part.share)
    more = tuple(before.values()) if at else ()

    def function(*values: Any, **scalars: Any) -> dict[str, Any]:
        fields = dict(zip((*rate.signature.fields, *more), values))
        now = fields | {name: fields[before[name]] for name in changed}
        rates = _rates(rate, now, scalars, part.late, dt)
        moved = {name: now[name] + _step_of(dt, scalars) * rates[name] for name in changed}
        if not own:
            return {after[name]: moved[name] for name in changed}
        return {after[name]: own * fields[name] + share * moved[name] for name in changed}

    kept = {f"{name}_{n}": name for name in changed for n in range(1, len(scheme))}
    name = rate.name if len(scheme) == 1 else f"{rate.name}_{at + 1}"
    return _step(rate, name, function, more, dt, kept)


def _rates(
    rate: Step, fields: Fields, scalars: Fields, late: Fraction, dt: float | None
) -> Mapping[str, Any]:
    """What the rate gives, so many time steps after the beginning of the step."""
    keywords = {name: scalars[name] for name in rate.signature.scalars}
    for name in rate.signature.times:
        time = scalars[name]
        keywords[name] = time + float(late) * _step_of(dt, scalars) if late else time
    return rate.function(  # type: ignore[no-any-return]
        *(fields[name] for name in rate.signature.fields), **keywords
    )


def _step_of(dt: float | None, scalars: Fields) -> Any:
    return scalars[TIME_STEP] if dt is None else dt


def _step(
    rate: Step,
    name: str,
    function: Function,
    more: tuple[str, ...],
    dt: float | None,
    temporaries: Mapping[str, str],
) -> Step:
    """A step of a method: that of the rate with more fields, and the time step."""
    asked = rate.signature
    scalars = dict(asked.scalars) | ({TIME_STEP: None} if dt is None else {})
    signature = Signature((*asked.fields, *more), scalars, asked.times)
    function.__wrapped__ = rate.function    # type: ignore[attr-defined]  # whose line is named
    return Step(function, name, signature, temporaries=temporaries)


def _of_time_step(dt: Function, what: str) -> Step:
    """A step that computes the time step and nothing else."""

    def function(*fields: Any, **scalars: Any) -> dict[str, Any]:
        return {TIME_STEP: dt(*fields, **scalars)}

    signature = Signature.of(dt, f"{what}: dt ({line_of(dt)})")
    function.__wrapped__ = dt   # type: ignore[attr-defined]  # whose line is named
    return Step(function, "time_step", signature)


def _rate(rate: Function | Step, what: str) -> Step:
    if isinstance(rate, Step) and rate.over is not None:
        raise ValueError(
            f"{what} takes a rate for all cells, got {rate!r}; choose by np.where in the rate"
        )
    if not callable(rate):
        raise wrong(f"{what}: rate", "a function of fields", rate, "give dict(u=du/dt)")
    return step(rate)


def _time_step(dt: float | None, what: str) -> float | None:
    return None if dt is None else float(number(dt, f"{what}: dt"))
