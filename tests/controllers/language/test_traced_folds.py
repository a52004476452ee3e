# SPDX-License-Identifier: MIT
"""Folds in steps against plain NumPy and math.fsum: what they are, and in which stages they lie."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sample import sample
from traced_by_reference import random

import controllers as ct
from controllers.language.traced import program_of
from controllers.program.program import Program
from controllers.program.reference import ReferenceState, reference_steps

Gas = np.dtype([("rho", "f8"), ("mx", "f8")])
GRID = ct.Grid(y=7, x=9, boundary="periodic")


def traced(*steps: Any, grid: ct.Grid = GRID, **options: Any) -> Program:
    return program_of([*steps], grid, **options).program


def last(program: Program, n_steps: int = 1, **start: Any) -> ReferenceState:
    (*_, state) = reference_steps(program, start, n_steps=n_steps)
    return state


def stages(program: Program) -> list[str]:
    return [stage.summary for stage in program.stages]


def field(name: str = "u", dtype: str = "float64") -> Any:
    return random((7, 9), name, dtype=dtype)[name]


ALL: list[tuple[Any, Any]] = [
    (lambda u: ct.sum(u), lambda u: math.fsum(u.ravel())),
    (lambda u: u.sum(), lambda u: math.fsum(u.ravel())),
    (lambda u: np.sum(u * u, axis=None), lambda u: math.fsum((u * u).ravel())),
    (lambda u: ct.sum(u > 0), lambda u: np.count_nonzero(u > 0)),
    (lambda u: ct.sum(u, where=u > 0), lambda u: math.fsum(u[u > 0])),
    (lambda u: ct.mean(u), lambda u: math.fsum(u.ravel()) / u.size),
    (lambda u: np.mean(u, where=u > 0), lambda u: math.fsum(u[u > 0]) / np.sum(u > 0)),
    (lambda u: ct.min(u), np.min),
    (lambda u: np.amax(np.abs(u[0, 1] - u)), lambda u: np.abs(np.roll(u, -1, 1) - u).max()),
    (lambda u: ct.argmin(u), np.argmin),
    (lambda u: u.argmax(), np.argmax),
    (lambda u: ct.argmax(u, where=u < 0.5), lambda u: np.where(u < 0.5, u, -1).argmax()),
    (lambda u: ct.any(u > 0.5), lambda u: (u > 0.5).any()),
    (lambda u: np.all(u), np.all),
    (lambda u: ct.all(u > 0.5, where=u > 0.5), lambda u: True),
    (lambda u: ct.norm(u), lambda u: math.sqrt(math.fsum((u * u).ravel()))),
    (lambda u: np.linalg.norm(u), lambda u: math.sqrt(math.fsum((u * u).ravel()))),
    (lambda u: np.dot(u, 2 * u), lambda u: math.fsum((u * (2 * u)).ravel())),
    (lambda u: ct.dot(u, u[1, 0]), lambda u: math.fsum((u * np.roll(u, -1, 0)).ravel())),
    (lambda u: ct.max(u) - ct.min(u), np.ptp),
    (lambda u: ct.max(u) > ct.mean(u), lambda u: True),
    (lambda u: ct.sum((u - ct.mean(u)) ** 2), lambda u: math.fsum(
        ((u - math.fsum(u.ravel()) / u.size) ** 2).ravel())),
]  # fmt: skip


def test_folds_are_what_numpy_says_of_whole_arrays() -> None:
    u = field()
    for made, right in ALL:
        now = last(traced(_returning(made)), u=u)
        assert now.results == {"found": right(u)}, made
        assert np.array_equal(now.fields["u"], u + 1)


def _returning(made: Any) -> ct.Step:
    return ct.step(lambda u: dict(u=u + 1, found=made(u)))


def test_sums_of_float32_are_exact_and_products_are_of_float64() -> None:
    u = field(dtype="float32")
    step = ct.step(lambda u: dict(s=ct.sum(u), n=ct.norm(u), d=ct.dot(u, u), top=ct.max(u)))
    now = last(traced(step, dtype="float32"), u=u)
    wide = u.astype(float)
    square = math.fsum((wide * wide).ravel())
    right = {"s": math.fsum(wide.ravel()), "n": math.sqrt(square), "d": square, "top": u.max()}
    assert now.results == right and np.array_equal(now.fields["u"], u)
    assert now.results["top"].dtype == np.float32


def test_a_result_is_folded_by_the_stage_that_updates() -> None:
    def relax(p: Any) -> Any:
        new = (p[-1, 0] + p[1, 0] + p[0, -1] + p[0, 1]) / 4
        return dict(p=new, residual=ct.max(np.abs(new - p)), mean=ct.mean(p))

    program, p = traced(ct.step(relax)), field("p")
    assert stages(program) == ["relax sets p and folds residual, sum_1, sum_2"]
    assert program.results == ("residual", "mean")
    new = (np.roll(p, 1, 0) + np.roll(p, -1, 0) + np.roll(p, 1, 1) + np.roll(p, -1, 1)) / 4
    right = {"residual": np.abs(new - p).max(), "mean": math.fsum(p.ravel()) / p.size}
    assert last(program, p=p).results == right


def test_a_fold_that_its_step_uses_is_done_before_it() -> None:
    def scaled(u: Any, *, share: float = 0.5) -> Any:
        top = ct.max(np.abs(u))
        step = share / top
        mean = ct.mean(u)
        return dict(u=u - step * (u - mean), spread=ct.norm(u - mean), top=top)

    program, u = traced(ct.step(scaled)), field()
    assert stages(program) == [
        "scaled_folds folds top, sum_1, sum_2", "scaled sets u and folds sum_3"
    ]  # fmt: skip
    mean, top = math.fsum(u.ravel()) / u.size, np.abs(u).max()
    now = last(program, u=u)
    assert np.array_equal(now.fields["u"], u - 0.5 / top * (u - mean))
    spread = math.sqrt(math.fsum(((u - mean) * (u - mean)).ravel()))
    assert now.results == {"spread": spread, "top": top}


def test_folds_that_wait_for_folds_come_after_them() -> None:
    def standard(u: Any) -> Any:
        around = u - ct.mean(u)
        return dict(u=around / ct.norm(around))

    program, u = traced(ct.step(standard)), field()
    assert stages(program) == [
        "standard_folds folds sum_1, sum_2", "standard_folds_2 folds sum_3", "standard sets u"
    ]  # fmt: skip
    around = u - math.fsum(u.ravel()) / u.size
    right = around / math.sqrt(math.fsum((around * around).ravel()))
    assert np.array_equal(last(program, u=u).fields["u"], right)


def test_the_cells_are_those_where_the_operand_is_defined() -> None:
    def smooth(u: Any) -> Any:
        new = (u[0, -1] + u[0, 1]) / 2
        return dict(u=new, change=ct.max(np.abs(new - u)), total=ct.sum(u), mean=u.mean())

    program, u = traced(ct.step(smooth), boundary=ct.keep(), grid=ct.Grid(y=7, x=9)), field()
    assert stages(program) == [
        "smooth_folds folds total, sum_1", "smooth sets u and folds change"
    ]  # fmt: skip
    new = (u[:, :-2] + u[:, 2:]) / 2
    total = math.fsum(u.ravel())
    right = {"change": np.abs(new - u[:, 1:-1]).max(), "total": total, "mean": total / u.size}
    assert last(program, u=u).results == right


def test_a_restricted_step_folds_its_own_cells() -> None:
    step = ct.step(
        lambda u: dict(u=u / ct.max(u), n=ct.sum(u == u), low=ct.min(u, where=u > 0)),
        over=np.s_[1:-1, 2:],
    )
    u = field()
    now, inner = last(traced(step), u=u), u[1:-1, 2:]
    right = u.copy()
    right[1:-1, 2:] = inner / inner.max()
    assert np.array_equal(now.fields["u"], right)
    assert now.results == {"n": inner.size, "low": inner[inner > 0].min()}


def test_a_step_is_restricted_to_cells_that_folds_of_all_choose() -> None:
    step = ct.step(
        lambda u: dict(u=u - ct.mean(u), n=ct.sum(u == u), top=ct.max(u)),
        over=lambda u: (u > ct.mean(u)) & (u < ct.max(u, where=u < ct.max(u))),
    )
    program, u = traced(step), field()
    assert stages(program) == [
        "step_folds folds sum_1, sum_2, max_1", "step_folds_2 folds max_2",
        "step_folds_3 folds sum_3, sum_4", "step sets u and folds n, top",
    ]  # fmt: skip
    now, mean = last(program, u=u), math.fsum(u.ravel()) / u.size
    inner = (u > mean) & (u < np.sort(u.ravel())[-2])
    right = u - math.fsum(u[inner]) / inner.sum()
    assert np.array_equal(now.fields["u"], np.where(inner, right, u))
    assert now.results == {"n": inner.sum(), "top": u[inner].max()}


def test_a_step_is_done_in_all_cells_or_in_none_as_a_fold_says() -> None:
    step = ct.step(lambda u: dict(u=u + 1), over=lambda u: ct.max(u) < 1.5)
    u = field()
    (*_, now) = reference_steps(traced(step), dict(u=u), n_steps=4)
    assert np.array_equal(now.fields["u"], u + 1)
    counting = ct.step(lambda u: dict(n=ct.sum(u == u)), over=lambda u: u > ct.mean(u))
    mean = math.fsum(u.ravel()) / u.size
    assert last(traced(counting), u=u).results == {"n": (u > mean).sum()}


def test_the_time_step_is_computed_in_the_step() -> None:
    grid = ct.Grid(x=16, upper=2.0, boundary="periodic")

    @ct.step
    def burgers(u: Any, *, cfl: float = 0.4) -> Any:
        dt = cfl * grid.dx / ct.max(np.abs(u))
        flux = u * u / 2
        return dict(u=u - dt / grid.dx * (flux - flux[-1]), dt=dt, used=dt)

    program = traced(burgers, grid=grid)
    u, time = 1.5 + np.sin(np.arange(16)), 0.0
    for now in reference_steps(program, {"u": u}, n_steps=4, scalars={"cfl": 0.3}):
        dt = 0.3 * grid.dx / np.abs(u).max()
        flux = u * u / 2
        u, time = u - dt / grid.dx * (flux - np.roll(flux, 1)), time + dt
        assert np.array_equal(now.fields["u"], u) and now.time == time
        assert now.results == {"used": dt}
    short = dt / 4      # the last step is so long, in the update, too
    (*_, then) = reference_steps(program, now.fields, until=short, scalars={"cfl": 0.3})
    flux = u * u / 2
    assert np.array_equal(then.fields["u"], u - short / grid.dx * (flux - np.roll(flux, 1)))
    assert then.time == short and then.step == 1


@pytest.mark.parametrize("method", [ct.heun, ct.rk3])
def test_methods_take_their_time_step_from_a_function_of_fields(method: Any) -> None:
    grid = ct.Grid(x=9, upper=1.0, boundary="periodic")

    def of_time_step(v: Any, *, cfl: float = 0.5) -> Any:
        return cfl / ct.max(np.abs(v))

    steps = method(lambda u, v: dict(u=-v * u), dt=of_time_step)
    program = traced(*steps, grid=grid)
    assert stages(program)[0] == "time_step_folds folds max_1"
    u, v = np.full(9, 2.0), np.linspace(-1, -2, 9)
    start = {name: v if name == "v" else u for name in program.dtypes}
    (now,) = reference_steps(program, start, n_steps=1)
    constant = traced(*[method(lambda u, v: dict(u=-v * u), dt=0.25)], grid=grid)
    (right,) = reference_steps(constant, start, n_steps=1)
    assert now.time == 0.25 and np.array_equal(now.fields["u"], right.fields["u"])
    push = ct.leapfrog(lambda v, u: dict(v=-u), lambda u, v: dict(u=v), dt=lambda u: 1 / ct.max(u))
    assert stages(traced(*push, grid=grid))[0] == "time_step_folds folds max_1"


def test_structs_are_folded_by_component_and_staggered_fields_at_their_points() -> None:
    def flow(q: Any) -> Any:
        return dict(q=q / 2, top=ct.max(q), sums=np.sum(q, where=q.rho > 0), n=ct.norm(q))

    program = traced(ct.step(flow), dtype=Gas)
    start = random((7, 9), "q_rho", "q_mx")
    now, rho, mx = last(program, **start), start["q_rho"], start["q_mx"]
    assert program.results == ("top_rho", "top_mx", "sums_rho", "sums_mx", "n_rho", "n_mx")
    assert now.results["top_mx"] == mx.max() and now.results["sums_mx"] == math.fsum(mx[rho > 0])
    assert now.results["n_rho"] == math.sqrt(math.fsum((rho * rho).ravel()))

    @ct.step
    def push(vx: Any, p: Any) -> Any:
        slope = p.at("x", 1 / 2) - p.at("x", -1 / 2)
        new = vx - slope
        return dict(vx=new, p=p / 2, fast=ct.argmax(new), top=ct.max(p), steep=ct.sum(slope))

    grid = ct.Grid(y=7, x=9)
    program = traced(push, grid=grid, location=dict(vx="x"), boundary=dict(p=ct.fixed(0)))
    assert stages(program) == ["push_folds folds top", "push sets vx, p and folds fast, steep"]
    p, vx = field("p"), np.zeros((7, 10))
    now = last(program, p=p, vx=vx)
    slope = np.diff(np.pad(p, ((0, 0), (1, 1))), axis=1)
    right = {"fast": int((-slope).argmax()), "top": p.max(), "steep": math.fsum(slope.ravel())}
    assert now.results == right


def test_a_later_step_takes_a_result_by_its_name() -> None:
    look = ct.step(lambda u: dict(top=ct.max(u), low=ct.min(u)))
    use = ct.step(lambda u, *, top, low: dict(u=(u - low) / (top - low)))
    program, u = traced(look, use), field()
    assert program.results == ("top", "low") and program.rules.parameters == {}
    assert np.array_equal(last(program, u=u).fields["u"], (u - u.min()) / (u.max() - u.min()))


def test_a_step_that_is_done_several_times_has_the_results_of_the_last() -> None:
    halve = ct.step(lambda u: dict(u=u / 2, top=ct.max(u)))
    program, u = traced(*ct.repeat(halve, 3)), field()
    assert stages(program)[-1].endswith("sets u and folds top") and len(program.folds) == 1
    assert last(program, u=u).results == {"top": u.max() / 4}


def test_repeats_end_where_a_result_says_so() -> None:
    rise = ct.step(lambda u: dict(u=u + 1))
    halve = ct.step(lambda u: dict(u=u / 2, top=ct.max(u)))
    solve = ct.repeat(halve, until=lambda now: now.top < 1, check_every=3, at_most=50)
    program = traced(rise, solve)
    (repeat,) = program.repeats
    assert (repeat.first, repeat.end, repeat.name) == (1, 2, "step")
    now = last(program, u=np.full((7, 9), 99.0))
    assert now.counts == {"step": 9} and now.results == {"top": 100 / 256}
    assert last(program, u=np.full((7, 9), 2.0**60)).counts == {"step": 50}
    other = ct.step(lambda u: dict(u=u / 2, peak=ct.max(u)))
    again = ct.repeat(other, until=lambda now: now.peak < 1, at_most=9)
    both = traced(solve, again)
    assert [(one.name, one.first, one.end) for one in both.repeats] == [
        ("step", 0, 1), ("step_2", 1, 2)
    ]  # fmt: skip


@pytest.mark.parametrize("boundary", ["periodic", ct.keep()], ids=str)
def test_beside_a_repeat_a_rename_is_a_copy(boundary: Any) -> None:
    @ct.step
    def wave(u, old):
        return dict(u=2 * u - old + 0.1 * (u[-1, 0] - 2 * u + u[1, 0]), old=u)

    @ct.step
    def damp(u, old):
        return dict(u=0.9 * u, old=u, top=ct.max(u))

    solve = ct.repeat(damp, until=lambda now: now.top < 1, at_most=3)
    grid = ct.Grid(y=7, x=9, boundary=boundary)
    program = traced(wave, solve, grid=grid)
    assert not program.renames
    u, old = field(), field()[::-1].copy()
    now = last(program, 2, u=u, old=old)
    for _ in range(2):
        up, down = np.roll(u, 1, 0), np.roll(u, -1, 0)
        new = 2 * u - old + 0.1 * (up - 2 * u + down)
        if boundary != "periodic":
            new[[0, -1]] = u[[0, -1]]
        u, old = new, u
        for _ in range(3):
            top, u, old = u.max(), 0.9 * u, u
            if top < 1:
                break
    assert np.array_equal(now.fields["u"], u) and np.array_equal(now.fields["old"], old)


def test_results_are_conditions_where_folds_are() -> None:
    step = ct.step(lambda u: dict(u=np.where(ct.any(u > 5), 0, u + 1), high=ct.max(u) > 5))
    program, u = traced(step), np.full((7, 9), 5.0)
    assert [now.results["high"] for now in reference_steps(program, {"u": u}, n_steps=3)] == [
        0.0, 1.0, 0.0
    ]  # fmt: skip
    assert last(program, 2, u=u).fields["u"].max() == 0


@pytest.mark.parametrize("device", sample(["reference", "cpu"], 2))
def test_it_runs_with_the_bits_of_the_reference(device: str) -> None:
    grid = ct.Grid(y=7, x=9, upper=1.0, boundary=ct.mirror())

    @ct.step
    def shallow(h: Any, hu: Any, *, cfl: float = 0.4) -> Any:
        dt = cfl * grid.dx / ct.max(np.sqrt(9.81 * h) + np.abs(hu / h))
        flux = hu * hu / h + 9.81 / 2 * h * h
        new = hu - dt / grid.dx / 2 * (flux[0, 1] - flux[0, -1])
        return dict(h=h - dt / grid.dx / 2 * (hu[0, 1] - hu[0, -1]), hu=new, dt=dt,
                    mass=ct.sum(h), change=ct.max(np.abs(new - hu)))  # fmt: skip

    calm = ct.step(lambda h: dict(h=h - 1e-3), over=lambda h: h > ct.mean(h))
    start = {"h": 1.5 + 0.1 * field("h"), "hu": 0.1 * field("hu")}
    given = dict(devices=device, places_per_controller=2, **start)
    with ct.Computation([shallow, calm], grid, **given) as run:
        run.run(until=0.1)
        (*_, right) = reference_steps(run.program, start, until=0.1)
        assert np.array_equal(run.h, right.fields["h"]) and run.step == right.step
        assert (run.time, run.mass, run.change) == (0.1, *right.results.values())
