# SPDX-License-Identifier: MIT
"""Steps become programs that compute what the same formulas in plain NumPy do, bit for bit.

The other side is written by hand in each test: np.roll, np.pad and slices, none of the project.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from traced_by_reference import equal, random, run

import controllers as ct
from controllers.kgt import generate
from controllers.kgt.choice import config_of
from controllers.kgt.strategies.table import STRATEGIES
from controllers.language.traced import program_of
from controllers.program.functions import FUNCTIONS

Gas = np.dtype([("rho", "f8"), ("my", "f8"), ("mx", "f8")])


def around(f: Any) -> Any:
    return f[-1, 0] + f[1, 0] + f[0, -1] + f[0, 1]


def rolled(f: Any) -> Any:
    return np.roll(f, 1, 0) + np.roll(f, -1, 0) + np.roll(f, 1, 1) + np.roll(f, -1, 1)


@ct.step
def gray_scott(
    u: Any, v: Any, *, Du: float = 0.16, Dv: float = 0.08, F: float = 0.037, k: float = 0.06
) -> Any:
    uvv = u * v * v
    return dict(
        u=u + Du * (around(u) - 4 * u) - uvv + F * (1 - u),
        v=v + Dv * (around(v) - 4 * v) + uvv - (F + k) * v,
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_fields_and_scalars_that_change_without_another_program(dtype: str) -> None:
    traced = program_of(gray_scott, ct.Grid(y=12, x=17, boundary="periodic"), dtype=dtype)
    start = random((12, 17), "u", "v", dtype=dtype)
    for F, k in ((0.037, 0.06), (0.03, 0.062)):
        u, v = start["u"], start["v"]
        for _ in range(5):
            uvv = u * v * v
            u, v = (
                u + 0.16 * (rolled(u) - 4 * u) - uvv + F * (1 - u),
                v + 0.08 * (rolled(v) - 4 * v) + uvv - (F + k) * v,
            )
        equal(run(traced, start, 5, F=F, k=k), {"u": u, "v": v})


def test_a_renamed_field_a_source_in_time_and_wide_derivatives() -> None:
    grid = ct.Grid(y=14, x=19, spacing=5.0, boundary=ct.fixed(0))
    dt, f0, source = 5e-4, 15.0, (33.0, 50.0)

    @ct.step
    def wave(u: Any, old: Any, c: Any, damp: Any, *, t: ct.Time) -> Any:
        ricker = (np.pi * f0 * (t - 0.1)) ** 2
        pulse = dt**2 * 1e6 * (1 - 2 * ricker) * np.exp(-ricker) * ct.point(grid, source)
        new = 2 * u - (1 - damp) * old + (dt * c) ** 2 * ct.laplacian(u, accuracy=8)
        return dict(u=new / (1 + damp) + pulse, old=u)

    traced = program_of(wave, grid, dtype="float32", dt=dt)
    assert traced.program.renames == {"old": "u"} and len(traced.program.stages) == 1
    start = random((14, 19), "u", "old", "c", "damp", dtype="float32")
    u, old, c, damp = start.values()
    weights = [-1 / 560, 8 / 315, -1 / 5, 8 / 5]
    n, m = u.shape
    mark = np.zeros((14, 19), np.float32)
    mark[6, 10] = 1
    for number in range(4):
        wide = np.pad(u, 4)
        terms = [(k, w) for k, w in zip(range(-4, 0), weights)]
        every = [((k, 0), w) for k, w in terms] + [((0, k), w) for k, w in terms]
        every += [((0, 0), -205 / 36)] + [((0, -k), w) for k, w in reversed(terms)]
        every += [((-k, 0), w) for k, w in reversed(terms)]
        total = None
        for (i, j), w in every:
            term = np.float32(w / 25) * wide[4 + i : 4 + i + n, 4 + j : 4 + j + m]
            total = term if total is None else total + term
        ricker = (np.pi * f0 * (number * dt - 0.1)) * (np.pi * f0 * (number * dt - 0.1))
        pulse = dt**2 * 1e6 * (1 - 2 * ricker) * np.exp(-ricker)
        dtc = np.float32(dt) * c
        new = (2 * u - (1 - damp) * old + dtc * dtc * total) / (1 + damp)
        u, old = new + np.float32(pulse) * mark, u
    equal(run(traced, start, 4), {"u": u, "old": old})


def test_coordinates_named_axes_and_a_choice() -> None:
    grid = ct.Grid(y=9, x=11, lower=(-1, 0), upper=(1, 2), boundary=ct.keep())

    @ct.step
    def turn(q: Any, *, y: Any, x: Any, speed: float = 0.5) -> Any:
        vy, vx = -speed * (x - 1), speed * y
        dy = np.where(vy > 0, q - q.at("y", -1), q.at("y", 1) - q) / grid.dy
        dx = np.where(vx > 0, q - q.at("x", -1), q.at("x", 1) - q) / grid.dx
        return dict(q=q - 0.05 * (vy * dy + vx * dx))

    start = random((9, 11), "q")
    q = start["q"].copy()
    y = (-1 + (np.arange(9) + 0.5) * (2 / 9))[1:-1, None]
    x = (0 + (np.arange(11) + 0.5) * (2 / 11))[None, 1:-1]
    vy, vx = -0.25 * (x - 1), 0.25 * y
    for _ in range(3):
        here, low, high = q[1:-1, 1:-1], q[:-2, 1:-1], q[2:, 1:-1]
        dy = np.where(vy > 0, here - low, high - here) / (2 / 9)
        left, right = q[1:-1, :-2], q[1:-1, 2:]
        dx = np.where(vx > 0, here - left, right - here) / (2 / 11)
        inner = here - 0.05 * (vy * dy + vx * dx)
        q = q.copy()
        q[1:-1, 1:-1] = inner
    equal(run(program_of(turn, grid), start, 3, speed=0.25), {"q": q})


def test_steps_in_a_row_see_what_the_ones_before_wrote() -> None:
    grid = ct.Grid(x=13)

    @ct.step
    def predict(v: Any, p: Any) -> Any:
        return dict(v=v - (p[1] - p[-1]))

    @ct.step
    def project(v: Any, p: Any) -> Any:
        return dict(p=p - (v[1] - v[-1]) / 4, v=v / 2)

    traced = program_of([predict, project], grid, boundary=dict(v=ct.mirror(-1), p=ct.mirror()))
    assert [stage.name for stage in traced.program.stages] == ["predict", "project"]
    assert traced.program.name == "predict_project"
    start = random(13, "v", "p")
    v, p = start["v"], start["p"]
    for _ in range(3):
        wide = np.pad(p, 1, "symmetric")
        v = v - (wide[2:] - wide[:-2])
        wide = np.concatenate([[-v[0]], v, [-v[-1]]])
        v, p = v / 2, p - (wide[2:] - wide[:-2]) / 4
    equal(run(traced, start, 3), {"v": v, "p": p})


def test_a_step_repeated_is_several_stages_of_one_step() -> None:
    smooth = ct.step(lambda u: dict(u=(u[-1] + u[1]) / 2))
    traced = program_of(
        ct.repeat(smooth, 3), ct.Grid(x=10), boundary=(ct.extrapolate(1), ct.fixed(2)),
    )  # fmt: skip
    assert [stage.name for stage in traced.program.stages] == ["step", "step", "step"]
    assert len({*traced.program.stages}) == 1, "so one kernel computes all of them"
    other = ct.step(lambda u: dict(u=u / 2))
    stages = program_of([smooth, other, smooth], ct.Grid(x=3, boundary=ct.keep())).program.stages
    assert [stage.name for stage in stages] == ["step", "step_2", "step"]
    u = random(10, "u")["u"]
    start = {"u": u}
    for _ in range(6):
        wide = np.concatenate([[2 * u[0] - u[1]], u, [2]])
        u = (wide[:-2] + wide[2:]) / 2
    equal(run(traced, start, 2), {"u": u})


def test_a_field_of_structs_by_heun_between_walls() -> None:
    grid = ct.Grid(y=8, x=7, lower=0, upper=(2, 1))

    def flux(q: Any, axis: str) -> Any:
        v = (q.my if axis == "y" else q.mx) / q.rho
        push = ct.struct(Gas, rho=0, my=q.rho * (axis == "y"), mx=q.rho * (axis == "x"))
        return q * v + push

    def rate(q: Any) -> Any:
        out: Any = 0
        for axis in grid.axes:
            f = flux(q, axis)
            out = out + (f.at(axis, 1) - f.at(axis, -1)) / (2 * getattr(grid, f"d{axis}"))
        return dict(q=-out)

    walls = dict(y=ct.mirror(my=-1), x="periodic")
    traced = program_of(ct.heun(rate, dt=0.01), grid, boundary=walls, dtype=Gas)
    assert [f.name for f in traced.program.fields][:3] == ["q_rho", "q_my", "q_mx"]
    assert traced.program.periodic == (False, True) and traced.alike == {"q_1": "q"}
    parts = random((8, 7), "rho", "my", "mx")
    q = np.zeros((8, 7), Gas)
    for name, values in parts.items():
        q[name] = values + (name == "rho")

    def change(q: Any) -> Any:
        wide = {n: np.pad(np.pad(q[n], ((1, 1), (0, 0)), "symmetric"), ((0, 0), (1, 1)), "wrap")
                for n in Gas.names}  # fmt: skip
        wide["my"][0], wide["my"][-1] = -wide["my"][0], -wide["my"][-1]
        vy, vx = wide["my"] / wide["rho"], wide["mx"] / wide["rho"]
        result = {}
        for n in Gas.names:
            fy, fx = wide[n] * vy, wide[n] * vx
            fy = fy + (0 if n == "rho" else wide["rho"] * (n == "my"))
            fx = fx + (0 if n == "rho" else wide["rho"] * (n == "mx"))
            dy = (fy[2:, 1:-1] - fy[:-2, 1:-1]) / (2 * 0.25)
            result[n] = -(0 + dy + (fx[1:-1, 2:] - fx[1:-1, :-2]) / (2 * (1 / 7)))
        return result

    now = {n: q[n] for n in Gas.names}
    for _ in range(3):
        first = change(now)
        between = {n: now[n] + 0.01 * first[n] for n in now}
        second = change(between)
        now = {n: 0.5 * now[n] + 0.5 * (between[n] + 0.01 * second[n]) for n in now}
    equal(run(traced, {"q": q}, 3), {f"q_{name}": values for name, values in now.items()})


def test_rk3_of_a_rate_in_time() -> None:
    def rate(u: Any, w: Any, *, t: ct.Time, a: float = 2.0) -> Any:
        return dict(u=w * (u[1] - u[-1]) + a * t)

    def change(u: Any, t: float) -> Any:
        return w * (np.roll(u, -1) - np.roll(u, 1)) + 2.0 * t

    grid, dt = ct.Grid(x=9, boundary="periodic"), 0.125
    start = random(9, "u", "w")
    u, w = start.values()
    for step in range(3):
        t = step * dt
        u1 = u + dt * change(u, t)
        u2 = 0.75 * u + 0.25 * (u1 + dt * change(u1, t + dt))
        u = float(1 / 3) * u + float(2 / 3) * (u2 + dt * change(u2, t + dt / 2))
    for given in (dt, None):
        traced = program_of(ct.rk3(rate, given), grid, dt=dt)
        assert traced.alike == {"u_1": "u", "u_2": "u"}
        equal(run(traced, start, 3), {"u": u})


def test_leapfrog_takes_rates_in_turn() -> None:
    def push(v: Any, u: Any) -> Any:
        return dict(v=u[1] - 2 * u + u[-1])

    def move(u: Any, v: Any, *, t: Any) -> Any:
        return dict(u=v + t)

    traced = program_of(ct.leapfrog(push, move), ct.Grid(x=9, boundary="periodic"), dt=0.25)
    assert [stage.name for stage in traced.program.stages] == ["push", "move"]
    start = random(9, "v", "u")
    v, u = start.values()
    for step in range(3):
        v = v + 0.25 * (np.roll(u, -1) - 2 * u + np.roll(u, 1))
        u = u + 0.25 * (v + (step * 0.25 + 0.5 * 0.25))
    equal(run(traced, start, 3), {"u": u, "v": v})


def test_three_axes_with_unlike_spacings() -> None:
    grid = ct.Grid(z=7, y=8, x=9, spacing=(0.5, 0.25, 1), boundary="periodic")

    @ct.step
    def diffuse(u: Any, k: Any) -> Any:
        flow = {axis: k * slope for axis, slope in ct.gradient(u, accuracy=4).items()}
        return dict(u=u + 0.01 * sum(ct.derivative(f, axis) for axis, f in flow.items()))

    def slope(f: Any, axis: int, spacing: float) -> Any:
        parts = [(2, 1 / 12), (1, -8 / 12), (-1, 8 / 12), (-2, -1 / 12)]
        terms = [np.float64(weight / spacing) * np.roll(f, shift, axis) for shift, weight in parts]
        return terms[0] + terms[1] + terms[2] + terms[3]

    start = random((7, 8, 9), "u", "k")
    u, k = start.values()
    for _ in range(2):
        total: Any = 0
        for axis, spacing in enumerate(grid.spacing):
            flow = k * slope(u, axis, spacing)
            total = total + (
                np.float64(-0.5 / spacing) * np.roll(flow, 1, axis)
                + np.float64(0.5 / spacing) * np.roll(flow, -1, axis)
            )
        u = u + 0.01 * total
    equal(run(program_of(diffuse, grid), start, 2), {"u": u})


def test_integers_and_conditions() -> None:
    @ct.step
    def life(u: Any) -> Any:
        n = around(u) + u[-1, -1] + u[-1, 1] + u[1, -1] + u[1, 1]
        return dict(u=np.where((n == 3) | ((n == 2) & (u == 1)), 1, 0))

    start = {"u": (random((9, 8), "u")["u"] < 0.4).astype(np.int32)}
    u = start["u"]
    for _ in range(4):
        n = sum(np.roll(u, s, (0, 1)) for s in np.ndindex(3, 3) if s != (1, 1))
        n = np.roll(n, (-1, -1), (0, 1))
        u = np.where((n == 3) | ((n == 2) & (u == 1)), 1, 0).astype(np.int32)
    grid = ct.Grid(y=9, x=8, boundary="periodic")
    equal(run(program_of(life, grid, fields={"u": u.dtype}), start, 4), {"u": u})


def test_only_some_cells_are_computed() -> None:
    grid = ct.Grid(y=7, x=8, boundary=ct.fixed(1))
    start = random((7, 8), "u", "mask")
    mean = ct.step(lambda u: dict(u=around(u) / 4))
    inside = np.zeros((7, 8), bool)
    inside[2:-1, 3] = True
    for over, cells in (
        (np.s_[2:-1, 3:4], inside), (dict(y=slice(2, -1), x=slice(3, 4)), inside),
        (lambda mask: mask > 0.5, start["mask"] > 0.5), (np.s_[:, :], np.ones((7, 8), bool)),
        (lambda x, u: (x > 3) & (u < 0.5), None),
    ):  # fmt: skip
        u = start["u"]
        for _ in range(2):
            wide = np.pad(u, 1, constant_values=1)
            where = (np.arange(8) + 0.5 > 3)[None] & (u < 0.5) if cells is None else cells
            new = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
            u = np.where(where, new / 4, u)
        steps = [ct.step(mean, over=over), ct.step(lambda mask: dict(mask=mask * 1))]
        equal(run(program_of(steps, grid), start, 2), {"u": u, "mask": start["mask"]})


@pytest.mark.skipif("remainder" not in FUNCTIONS, reason="a parity is a remainder of indices")
def test_red_and_black_cells_in_turn() -> None:
    sweep = ct.step(lambda u, f: dict(u=(around(u) - f) / 4))
    steps = [ct.step(sweep, over=ct.parity(n)) for n in (0, 1)]
    traced = program_of(steps, ct.Grid(y=7, x=8, boundary=ct.fixed(0)))
    start = random((7, 8), "u", "f")
    u, f = start["u"].copy(), start["f"]
    for _ in range(2):
        for n in (0, 1):
            for i, j in np.argwhere(np.indices((7, 8)).sum(0) % 2 == n):
                near = [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]
                a, b, c, d = (u[at] if 0 <= at[0] < 7 and 0 <= at[1] < 8 else 0 for at in near)
                u[i, j] = (a + b + c + d - f[i, j]) / 4
    equal(run(traced, start, 2), {"u": u})


def test_what_lies_outside_is_a_function_of_coordinates_and_time() -> None:
    mean = ct.step(lambda u: dict(u=around(u) / 4))
    left = ct.fixed(lambda y, t, speed: np.where(y < 2, np.sin(speed * t) * y, 1))
    boundary = dict(y="periodic", x=(left, ct.fixed(lambda: 0.5)))
    rate = ct.step(lambda w, *, speed=3.0: dict(w=w * speed))
    traced = program_of([mean, rate], ct.Grid(y=4, x=5, boundary=boundary), dt=0.25)
    start = random((4, 5), "u", "w")
    u, y = start["u"], (np.arange(4) + 0.5)[:, None]
    for step in range(3):
        first = np.where(y < 2, np.sin(2.0 * (step * 0.25)) * y, 1)
        wide = np.concatenate([first, u, np.full((4, 1), 0.5)], axis=1)
        u = rolled(wide)[:, 1:-1] / 4
    equal(run(traced, start, 3, speed=2.0), {"u": u})
    with pytest.raises(TypeError, match=r"test_traced.py:\d+.*a value of coordinates and scalars"):
        program_of(mean, ct.Grid(y=4, x=5, boundary=ct.fixed(lambda x: x > 0)))
    with pytest.raises(ValueError, match=r"test_traced.py:\d+.*for programs of steps"):
        boundary = {"u": ct.Boundary.of(left, 2)}
        ct.reference_run(traced.program.with_boundaries(boundary), start, 1)


def test_fields_that_swap_names() -> None:
    traced = program_of(
        [ct.step(lambda u, v, w: dict(u=v, v=u, w=w + u))], ct.Grid(x=5)
    )
    start = random(5, "u", "v", "w")
    u, v, w = start.values()
    for _ in range(3):
        u, v, w = v, u, w + u
    equal(run(traced, start, 3), {"u": u, "v": v, "w": w})


def test_scalars_are_decided_on_the_host() -> None:
    @ct.step
    def pulse(u: Any, *, t: ct.Time, stop: float = 0.25, dt: Any) -> Any:
        return dict(u=np.where(t < stop, u + np.sin(2 * t) * dt, u))

    traced = program_of(pulse, ct.Grid(x=4), dt=0.125, dtype="float32")
    start = random(4, "u", dtype="float32")
    u = start["u"]
    for step in range(4):
        if step * 0.125 < 0.3:
            u = u + np.float32(np.sin(2 * (step * 0.125)) * 0.125)
    equal(run(traced, start, 4, stop=0.3), {"u": u})


def test_small_powers_are_products_and_expressions_have_neighbours() -> None:
    traced = program_of(
        ct.step(lambda u: dict(u=(u**3 - u**0 + (u**-2)[1]).at("x", 1) + u**2.0)),
        ct.Grid(x=9, boundary="periodic"),
    )
    start = random(9, "u")
    u = start["u"]
    cube = u * u * u
    expected = np.roll(cube - 1 + np.roll(1 / (u * u), -1), -1) + u * u
    equal(run(traced, start, 1), {"u": expected})


def test_dtypes_are_as_given_else_as_initial_values_are_else_float64() -> None:
    step = ct.step(lambda u, v: dict(u=u + v))
    grid = ct.Grid(x=5)

    def dtypes(**options: Any) -> list[str]:
        return [field.dtype for field in program_of(step, grid, **options).program.fields]

    assert dtypes() == ["float64", "float64"]
    assert dtypes(dtype="f4", fields={"u": "f8"}) == ["float32", "float32"]
    assert dtypes(fields={"u": np.dtype("i4"), "v": "int32"}) == ["int32", "int32"]
    assert dtypes(dtype={"u": "f4", "v": np.float32}) == ["float32", "float32"]


OF_CELLS = sorted(STRATEGIES.keys() - {"items", "items_on_cpu"})


@pytest.mark.parametrize("strategy", OF_CELLS)
def test_a_step_and_a_pattern_of_weights_are_one_kernel(strategy: str) -> None:
    stencil = ct.Stencil.of("heat", pattern=[[0, 1, 0], [1, 4, 1], [0, 1, 0]], factor=8)
    curved = ct.Stencil.of("heat", pattern=[[0, 1, 0], [1, -4, 1], [0, 1, 0]])

    @ct.step
    def heat(u: Any) -> Any:
        return dict(u=(u[-1, 0] + u[0, -1] + 4 * u[0, 0] + u[0, 1] + u[1, 0]) / 8)

    laplacian = replace(heat, function=lambda u: dict(u=ct.laplacian(u)))
    for pattern, step in ((stencil, heat), (curved, laplacian)):
        texts = []
        grid = ct.Grid(y=9, x=9, boundary=ct.keep())
        traced = program_of(step, grid, dtype="float32").program
        for program in (pattern.program("float32"), traced):
            config = config_of(strategy, program, program.stages[0])
            texts.append(generate(program, program.stages[0], config).source)
        assert texts[0] == texts[1]


@pytest.mark.parametrize("strategy", OF_CELLS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_and_wide_patterns_of_volumes_are_one_kernel(strategy: str, dtype: str) -> None:
    line, weights = [-1 / 12, 4 / 3, -5 / 2, 4 / 3, -1 / 12], np.zeros((5, 5, 5))
    weights[:, 2, 2] = weights[2, :, 2] = weights[2, 2, :] = line
    weights[2, 2, 2] = -15 / 2
    pattern = ct.Stencil.of("wide", [(-2, 2)] * 3, weights.ravel().tolist()).program(dtype)
    wide = ct.step(lambda u: dict(u=ct.laplacian(u, accuracy=4)))
    grid = ct.Grid(z=9, y=9, x=9, boundary=ct.keep())
    traced = program_of(replace(wide, name="wide"), grid, dtype=dtype).program
    sources = [
        generate(program, program.stages[0], config_of(strategy, program, program.stages[0])).source
        for program in (pattern, traced)
    ]
    assert sources[0] == sources[1]
