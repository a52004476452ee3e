# SPDX-License-Identifier: MIT
"""The interpreter against programs that a person wrote in plain NumPy: np.roll, np.pad, slices.

None of the other side uses the project.  Where the order of operations is not the subject, all
numbers are small multiples of powers of two, so that every order gives the same bits.
"""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from traced_by_reference import Arrays, equal, random, run

import controllers as ct
from controllers.language.traced import program_of

Flow = np.dtype([("h", "f8"), ("m", "f8")])


def dyadic(shape: Any, *names: str, dtype: str = "float64") -> Arrays:
    """Multiples of 1/16 between -2 and 2, whose sums and products with such weights are exact."""
    rng = np.random.default_rng(5)
    return {name: (rng.integers(-32, 33, shape) / 16).astype(dtype) for name in names}


def test_corners_where_four_unlike_rules_meet() -> None:
    half = ct.custom(lambda inside, distance: (inside(0) + inside(distance - 1)) / 2)
    walls = dict(y=(ct.mirror(-1), ct.extrapolate(1)), x=(ct.fixed(0.5), half))
    box = [*product((-2, -1, 0, 1, 2), repeat=2)]
    weights = {at: (1 + 3 * at[0] - at[1] * at[1]) / 16 for at in box}
    mix = ct.step(lambda u: dict(u=sum(w * u[at] for at, w in weights.items())))
    start = dyadic((5, 6), "u")
    u = start["u"]
    for _ in range(3):
        rise = u[-1] - u[-2]
        tall = np.concatenate([-u[1:2], -u[0:1], u, [u[-1] + rise, u[-1] + 2 * rise]])
        left = np.full((9, 2), 0.5)
        right = np.stack([tall[:, -1], (tall[:, -1] + tall[:, -2]) / 2], axis=1)
        wide = np.concatenate([left, tall, right], axis=1)      # over the new rows: corners
        u = sum(w * wide[2 + i : 7 + i, 2 + j : 8 + j] for (i, j), w in weights.items())
    equal(run(program_of(mix, ct.Grid(y=5, x=6), boundary=walls), start, 3), {"u": u})


def test_edges_and_corners_of_a_volume() -> None:
    walls = dict(z=ct.mirror(), y=(ct.fixed(1), ct.extrapolate(0)), x="periodic")
    mean = ct.step(lambda u: dict(u=sum(u[at] for at in product((-1, 0, 1), repeat=3)) / 32))
    start = dyadic((3, 4, 5), "u")
    u = start["u"]
    for _ in range(3):
        wide = np.pad(u, ((1, 1), (0, 0), (0, 0)), "symmetric")
        wide = np.pad(wide, ((0, 0), (1, 1), (0, 0)), "edge")
        wide[:, 0] = 1
        wide = np.pad(wide, ((0, 0), (0, 0), (1, 1)), "wrap")
        u = sum(wide[i : i + 3, j : j + 4, k : k + 5] for i, j, k in np.ndindex(3, 3, 3)) / 32
    equal(run(program_of(mean, ct.Grid(z=3, y=4, x=5), boundary=walls), start, 3), {"u": u})


def test_cells_that_keep_their_values_and_two_earlier_levels() -> None:
    @ct.step
    def leap(u: Any, old: Any, older: Any, *, rate: float = 0.25) -> Any:
        new = old + rate * (u[-1, 1] - 2 * u[0, 0] + u[1, -2]) - older / 8
        return dict(u=new, old=u, older=old)

    start = dyadic((6, 7), "u", "old", "older")
    u, old, older = start.values()
    for _ in range(4):
        inner = old[1:-1, 2:-1] + 0.5 * (u[:-2, 3:] - 2 * u[1:-1, 2:-1] + u[2:, :-3])
        new = u.copy()                              # u[1, -2]: two cells on the left, one else
        new[1:-1, 2:-1] = inner - older[1:-1, 2:-1] / 8
        u, old, older = new, u, old
    traced = program_of(leap, ct.Grid(y=6, x=7, boundary=ct.keep()))
    equal(run(traced, start, 4, rate=0.5), {"u": u, "old": old, "older": older})


def test_whole_numbers_wrap_in_dtypes_of_their_own() -> None:
    @ct.step
    def carry(low: Any, high: Any, seed: Any, mean: Any) -> Any:
        total = low + low[1]                        # uint8, wraps
        carried = np.where(total < low, 1, 0)
        seed = seed * 1664525 + 1013904223          # int32, wraps
        high = high + carried - (low.astype("int16") << 7)
        return dict(
            low=total ^ (seed >> 24).astype("uint8"), high=high, seed=seed,
            mean=mean / 2 + (high // 3) % 5 + low,
        )  # fmt: skip

    rng = np.random.default_rng(7)
    start: Arrays = {
        "low": rng.integers(0, 256, 40).astype("uint8"),
        "high": rng.integers(-(2**15), 2**15, 40).astype("int16"),
        "seed": rng.integers(-(2**31), 2**31, 40).astype("int32"),
        "mean": rng.random(40).astype("float32"),
    }
    low, high, seed, mean = start.values()
    for _ in range(6):
        total = low + np.roll(low, -1)
        seed = (seed.astype("int64") * 1664525 + 1013904223).astype("int32")
        carried = (total < low).astype("int16")
        high = high + carried - (low.astype("int16") << np.int16(7))
        rest = (high // np.int16(3)) % np.int16(5)
        mean = mean / np.float32(2) + rest.astype("float32") + low.astype("float32")
        low = total ^ (seed >> np.int32(24)).astype("uint8")
    traced = program_of(
        carry, ct.Grid(x=40, boundary="periodic"), dtype={n: a.dtype for n, a in start.items()}
    )
    expected = {"low": low, "high": high, "seed": seed, "mean": mean}
    assert all(expected[name].dtype == array.dtype for name, array in start.items())
    equal(run(traced, start, 6), expected)


@pytest.mark.parametrize("boundary", ["mirror", "keep"])
def test_fluxes_that_are_stored_and_limited(boundary: str) -> None:
    def limited(a: Any, b: Any) -> Any:
        return np.where(a * b > 0, np.where(abs(a) < abs(b), a, b), 0)

    @ct.step
    def carry(q: Any, v: Any) -> Any:
        slope = ct.stored(limited(q - q[-1], q[1] - q))
        flux = ct.stored(np.maximum(v, 0) * (q + slope / 2))    # through the upper face
        return dict(q=q - (flux - flux[-1]) / 4)

    rules: Any = {"mirror": dict(q=ct.mirror(), v=ct.mirror(-1)), "keep": ct.keep()}[boundary]
    start = dyadic(12, "q", "v")
    q, v = start.values()
    for _ in range(2):
        if boundary == "mirror":
            wide, push = np.pad(q, 2, "symmetric"), np.concatenate([[-v[0]], v])
        else:
            wide, push = q, v[1:-1]
        steps = np.diff(wide)
        slope = np.where(
            steps[:-1] * steps[1:] > 0,
            np.where(abs(steps[:-1]) < abs(steps[1:]), steps[:-1], steps[1:]), 0,
        )  # fmt: skip
        if boundary == "mirror":        # of cells -1 to 12; the fluxes are those of -1 to 11
            flux = np.maximum(push, 0) * (wide[1:-2] + slope[:-1] / 2)
            q = q - np.diff(flux) / 4
        else:                           # of cells 1 to 10, where both neighbours are
            flux = np.maximum(push, 0) * (q[1:-1] + slope / 2)
            q = np.concatenate([q[:2], q[2:-1] - np.diff(flux) / 4, q[-1:]])
    equal(run(program_of(carry, ct.Grid(x=12), boundary=rules), start, 2), {"q": q, "v": v})


def test_masks_of_every_kind_in_one_program() -> None:
    @ct.step(over=ct.parity(1))
    def odd(u: Any, w: Any) -> Any:
        return dict(u=(u[-1, 0, 0] + u[1, 0, 0] + u[0, 0, 1]) / 4 + w)

    @ct.step(over=dict(y=slice(1, -1), x=slice(None, 3)))
    def inside(u: Any, w: Any) -> Any:
        return dict(w=u[0, -1, 0] - u[0, 1, 0], u=u / 2)

    high = ct.step(lambda u, w: dict(u=-u, w=w + u), over=lambda w, z: (w > 0.5) | (z < 1))
    start = dyadic((4, 5, 6), "u", "w")
    u, w = start.values()
    z, y, x = np.indices(u.shape)
    for _ in range(3):
        tall = np.pad(u, ((1, 1), (0, 0), (0, 0)))
        mean = (tall[:-2] + tall[2:] + np.pad(u, ((0, 0), (0, 0), (0, 1)))[:, :, 1:]) / 4 + w
        u = np.where((x + y + z) % 2 == 1, mean, u)
        box = (y >= 1) & (y < 4) & (x < 3)
        deep = np.pad(u, ((0, 0), (1, 1), (0, 0)))
        u, w = np.where(box, u / 2, u), np.where(box, deep[:, :-2] - deep[:, 2:], w)
        chosen = (w > 0.5) | (z + 0.5 < 1)
        u, w = np.where(chosen, -u, u), np.where(chosen, w + u, w)
    traced = program_of([odd, inside, high], ct.Grid(z=4, y=5, x=6, boundary=ct.fixed(0)))
    equal(run(traced, start, 3), {"u": u, "w": w})


def test_red_and_black_cells_of_a_volume_in_place() -> None:
    sweep = ct.step(lambda u, f: dict(
        u=u / 4 + (u.at("z", 1) + u.at("z", -1) + u.at("y", 1) + u.at("x", -1)) / 8 - f
    ))  # fmt: skip
    steps = [ct.step(sweep, over=ct.parity(n)) for n in (0, 1)]
    start = dyadic((3, 5, 4), "u", "f")
    u, f = start["u"].copy(), start["f"]
    colour = np.indices(u.shape).sum(0) % 2
    for _ in range(2):
        for n in (0, 1):
            wide = np.pad(u, 1, constant_values=0.25)
            near = wide[2:, 1:-1, 1:-1] + wide[:-2, 1:-1, 1:-1]
            near = near + wide[1:-1, 2:, 1:-1] + wide[1:-1, 1:-1, :-2]
            u[colour == n] = (u / 4 + near / 8 - f)[colour == n]
    traced = program_of(steps, ct.Grid(z=3, y=5, x=4, boundary=ct.fixed(0.25)))
    equal(run(traced, start, 2), {"u": u})


def test_structs_of_two_levels_that_choose_by_component() -> None:
    @ct.step
    def shallow(q: Any, old: Any, *, g: float = 0.5) -> Any:
        flux = ct.struct(Flow, h=q.m, m=q.m * q.m + g * q.h)
        new = old - (flux.at("x", 1) - flux.at("x", -1)) / 4
        return dict(q=np.where(abs(new) > 4, 0, new), old=q)

    rng = np.random.default_rng(4)
    q, old = (np.zeros((3, 9), Flow) for _ in range(2))
    for array, name in product((q, old), Flow.names or ()):
        array[name] = rng.random((3, 9)) * 4 - 2
    start = {"q": q, "old": old}
    walls = dict(y=ct.keep(), x=ct.mirror(m=-1))
    for _ in range(4):
        h, m = (np.pad(q[name], ((0, 0), (1, 1)), "symmetric") for name in ("h", "m"))
        m[:, 0], m[:, -1] = -m[:, 0], -m[:, -1]
        new = np.zeros((3, 9), Flow)
        for name, flux in (("h", m), ("m", m * m + 0.5 * h)):
            value = old[name] - (flux[:, 2:] - flux[:, :-2]) / 4
            new[name] = np.where(abs(value) > 4, 0, value)
        q, old = new, q
    got = run(program_of(shallow, ct.Grid(y=3, x=9), dtype=Flow, boundary=walls), start, 4)
    equal(got, {f"{name}_{part}": array[part] for name, array in (("q", q), ("old", old))
                for part in ("h", "m")})  # fmt: skip


def test_heun_in_a_volume_with_coordinates_time_and_parameters() -> None:
    grid = ct.Grid(z=3, y=4, x=5, lower=-1, upper=(1, 2, 1), boundary="periodic")

    def rate(u: Any, k: Any, *, y: Any, t: ct.Time, push: float = 1.0, dt: Any) -> Any:
        around = u.at("z", 1) + u.at("y", 1) + u.at("x", 1) - 3 * u
        return dict(u=k * around + y * (push * np.cos(t) + dt))

    start = random((3, 4, 5), "u", "k")
    u, k = start.values()
    y = (-1 + (np.arange(4) + 0.5) * (3 / 4))[:, None]

    def change(u: Any, t: float) -> Any:
        around = np.roll(u, -1, 0) + np.roll(u, -1, 1) + np.roll(u, -1, 2) - 3 * u
        return k * around + y * (3.0 * np.cos(t) + 0.25)

    for step in range(3):
        t = step * 0.25
        first = u + 0.25 * change(u, t)
        u = 0.5 * u + 0.5 * (first + 0.25 * change(first, t + 0.25))
    equal(run(program_of(ct.heun(rate), grid, dt=0.25), start, 3, push=3.0), {"u": u})


def test_rk3_of_structs_beside_a_field_that_only_one_stage_reads() -> None:
    def rate(q: Any, w: Any) -> Any:
        return dict(q=q[1] - q[-1] + ct.struct(Flow, h=w, m=0))

    @ct.step
    def damp(q: Any, w: Any) -> Any:
        return dict(w=w - q.h / 8, q=q * ct.struct(Flow, h=1, m=0.5))

    start = {"q": np.zeros(11, Flow), **dyadic(11, "w")}
    start["q"]["h"], start["q"]["m"] = dyadic(11, "h", "m").values()
    now, w = {name: start["q"][name] for name in ("h", "m")}, start["w"]

    def change(f: Any, name: str) -> Any:
        wide = np.pad(f, 1)
        return wide[2:] - wide[:-2] + (w if name == "h" else 0)

    for _ in range(2):
        for name, f in now.items():
            f1 = f + 0.5 * change(f, name)
            f2 = 0.75 * f + 0.25 * (f1 + 0.5 * change(f1, name))
            now[name] = float(1 / 3) * f + float(2 / 3) * (f2 + 0.5 * change(f2, name))
        w = w - now["h"] / 8
        now["m"] = now["m"] * 0.5
    steps = [ct.rk3(rate, dt=0.5), damp]
    traced = program_of(steps, ct.Grid(x=11), dtype={"q": Flow}, boundary=ct.fixed(0))
    equal(run(traced, start, 2), {"q_h": now["h"], "q_m": now["m"], "w": w})


def test_a_user_rule_extrapolation_and_a_step_that_is_repeated() -> None:
    sink = ct.custom(lambda inside, distance: inside(2) - inside(distance - 1) / 2)
    spread = ct.step(lambda u: dict(u=(u[-2] + u[-1] + u[1] + 4 * u[2]) / 8))
    start = dyadic(7, "u", dtype="float32")
    u = start["u"]
    for _ in range(6):
        low = [u[2] - u[1] / 2, u[2] - u[0] / 2]
        high = [3 * u[-1] - 3 * u[-2] + u[-3], 6 * u[-1] - 8 * u[-2] + 3 * u[-3]]
        wide = np.concatenate([low, u, high]).astype("float32")
        u = (wide[:-4] + wide[1:-3] + wide[3:-1] + 4 * wide[4:]) / np.float32(8)
    rules = (sink, ct.extrapolate(2))
    traced = program_of(ct.repeat(spread, 3), ct.Grid(x=7), dtype="f4", boundary=rules)
    equal(run(traced, start, 2), {"u": u})
