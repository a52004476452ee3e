# SPDX-License-Identifier: MIT
"""Programs of traced steps on devices, in one place and in several: the bits of the reference."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import controllers as ct

Gas = np.dtype([("rho", "f8"), ("m", "f8")])
Case = tuple[Any, ct.Grid, dict[str, Any], dict[str, Any]]


def curvature(f: Any) -> Any:
    return f[-1, 0] + f[1, 0] + f[0, -1] + f[0, 1] - 4 * f


def two_fields() -> Case:
    @ct.step
    def react(u: Any, v: Any, *, rate: float = 0.1, t: ct.Time) -> Any:
        return dict(u=u + rate * curvature(u) - np.sin(t) * v, v=v + rate * curvature(v) + u * v)

    grid = ct.Grid(y=23, x=30, boundary="periodic")
    return react, grid, {"dtype": "float32", "dt": 0.1}, {"u": lambda y, x: x / 30, "v": 0.25}


def a_wave() -> Case:
    grid = ct.Grid(y=25, x=31, spacing=0.5, boundary=ct.fixed(0))

    @ct.step
    def wave(u: Any, old: Any, c: Any, *, t: ct.Time, dt: Any) -> Any:
        source = dt * np.exp(-t) * ct.point(grid, (5.0, 9.0))
        return dict(u=2 * u - old + c * ct.laplacian(u, accuracy=4) + source, old=u)

    start = {"u": 0, "old": 0, "c": lambda y, x: np.where(y < 6, 0.01, 0.02)}
    return wave, grid, {"dtype": "float32", "dt": 0.2}, start


def structs() -> Case:
    grid = ct.Grid(y=21, x=16, upper=1)

    def rate(q: Any, *, x: Any) -> Any:
        flux = q * (q.m / q.rho) + ct.struct(Gas, rho=0, m=x * q.rho)
        return dict(q=-(flux.at("y", 1) - flux.at("y", -1)) / (2 * grid.dy))

    options = {"boundary": {"y": ct.mirror(m=-1), "x": "periodic"}, "dtype": Gas}
    start = {"q": lambda y, x: {"rho": 1 + 0.1 * y + 0 * x, "m": 0.1 * x + 0 * y}}
    return ct.heun(rate, dt=0.001), grid, options, start


def several_steps_over_some_cells() -> Case:
    grid = ct.Grid(y=20, x=27)
    warm = ct.step(lambda u, x: {"u": u + 0.1 * curvature(u)}, over=np.s_[2:-3, 5:])
    cool = ct.step(lambda u, x: {"u": u / 2}, over=lambda u, y: (u > 1) & (y > 4))
    boundary = {"u": {"y": ct.extrapolate(1), "x": (ct.keep(), ct.fixed(lambda y, t: y * t))}}
    start = {"u": lambda y, x: y + x, "x": 0}
    return [ct.repeat(warm, 2), cool], grid, {"boundary": boundary, "dt": 0.1}, start


@pytest.mark.whole
@pytest.mark.parametrize("n_places", [1, 3])
@pytest.mark.parametrize("make", [two_fields, a_wave, structs, several_steps_over_some_cells])
def test_a_program_has_the_bits_of_the_reference(make: Any, n_places: int) -> None:
    steps, grid, options, start = make()
    with ct.Computation(steps, grid, places_per_controller=n_places, **options, **start) as run:
        program = run.program
        before = {field.name: np.asarray(run[field.name]) for field in program.fields}
        run.run(7)
        after = {name: np.asarray(run[name]) for name in before}
    right = ct.reference_run(program, before, 7, dt=options.get("dt"))
    for name, values in right.items():
        np.testing.assert_array_equal(after[name], values, err_msg=name)
        assert program.field(name).name not in program.written or (values != before[name]).any()


@pytest.mark.parametrize("devices", ["reference", "cpu"])
def test_fields_of_unlike_dtypes_are_computed_as_numpy_does(devices: str) -> None:
    @ct.step
    def life(alive: Any, heat: Any, *, rate: float = 0.1) -> dict[str, Any]:
        n = alive.at("y", 1) + alive.at("y", -1) + alive.at("x", 1) + alive.at("x", -1)
        born = np.where((n == 3) | ((n & 2 == 2) & (alive == 1)), 1, 0)
        return {"alive": born.astype("uint8"), "heat": heat // 2 + rate * (n - 255 * alive)}

    rng = np.random.default_rng(6)
    alive, heat = rng.integers(0, 2, (9, 8)).astype("uint8"), rng.random((9, 8)).astype("float32")
    n = sum(np.roll(alive, step, axis) for step in (1, -1) for axis in (0, 1)).astype("uint8")
    warm = heat // np.float32(2) + 0.3 * (n - alive * np.uint8(255)).astype("float64")
    with ct.Computation(
        life, ct.Grid(y=9, x=8), alive=alive, heat=heat, boundary="periodic", devices=devices
    ) as run:
        run.run(1, rate=0.3)
        assert np.array_equal(run.heat[:], warm.astype("float32"))
        assert np.array_equal(run.alive[:], (n == 3) | ((n & 2 == 2) & (alive == 1)))
