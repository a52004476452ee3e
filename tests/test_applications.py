# SPDX-License-Identifier: MIT
"""Applications of the literature: what they should compute, and the same bits on any places."""
from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from application_runs import EXAMPLES, SMALL, digests, example, looked_at
from mpi_jobs import helpers_path, run_ranks
from sample import sample

import controllers as ct
from controllers.language.pattern_file import read_patterns

JOB = Path(__file__).parent / "support" / "application_runs.py"
# of `main`, where by default it takes long
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "compressible": (12,), "hyperthermia": (24,), "swim": (64,)
}  # fmt: skip
PATTERNS = sorted(path.stem for path in (EXAMPLES / "patterns").glob("*.py"))
WAYS: dict[str, dict[str, Any]] = {
    "reference": dict(devices="reference"),
    "specialised": dict(devices="cpu"),
    "generic": dict(devices="cpu", kernel="generic"),
}

on_devices = pytest.mark.parametrize("device", sample(["reference", "cpu"], 2))


def near(f: Any, *offset: int) -> Any:
    """The neighbour of each cell on a torus."""
    return np.roll(f, [-n for n in offset], range(len(offset)))


def random(shape: tuple[int, ...], seed: int, dtype: str = "f8") -> Any:
    return np.random.default_rng(seed).random(shape).astype(dtype)


@on_devices
def test_himeno_is_that_of_plain_numpy(device: str) -> None:
    names = ["p", "a0", "a1", "a2", "a3", "b0", "b1", "b2", "c0", "c1", "c2", "wrk1", "bnd"]
    f = {name: random((9, 12, 11), seed) / 2 for seed, name in enumerate(names)}
    _, after = looked_at("himeno", 3, devices=device, dtype="float64", **f)

    def at(i: int, j: int, k: int) -> Any:
        return p[1 + i : 8 + i, 1 + j : 11 + j, 1 + k : 10 + k]

    p = f["p"].copy()
    c = {name: values[1:-1, 1:-1, 1:-1] for name, values in f.items()}
    for _ in range(3):
        s0 = c["a0"] * at(1, 0, 0) + c["a1"] * at(0, 1, 0) + c["a2"] * at(0, 0, 1) + c["wrk1"]
        s0 += c["c0"] * at(-1, 0, 0) + c["c1"] * at(0, -1, 0) + c["c2"] * at(0, 0, -1)
        for one in (-1, 1):
            for other in (-1, 1):
                s0 += one * other * c["b0"] * at(one, other, 0)
                s0 += one * other * c["b1"] * at(0, one, other)
                s0 += one * other * c["b2"] * at(one, 0, other)
        ss = (s0 * c["a3"] - at(0, 0, 0)) * c["bnd"]
        p[1:-1, 1:-1, 1:-1] += 0.8 * ss
    assert np.allclose(after["p"], p, rtol=1e-13, atol=0) and p.any()
    assert np.isclose(after["gosa"], (ss * ss).sum(), rtol=1e-12)


@on_devices
def test_swim_is_that_of_plain_numpy_and_no_water_is_lost(device: str) -> None:
    f = {name: random((14, 14), seed) for seed, name in enumerate(("u", "v", "p"))}
    f["p"] += 50
    before, after = looked_at("swim", 5, devices=device, **f, **{
        f"{name}_old": values for name, values in f.items()
    })  # fmt: skip
    u, v, p = old = [f[name] for name in ("u", "v", "p")]
    for _ in range(5):      # as SPEC numbers them: u lies below its cell along x, v along y
        cu, cv = (p + near(p, 0, -1)) / 2 * u, (p + near(p, -1, 0)) / 2 * v
        around = p + near(p, -1, 0) + near(p, 0, -1) + near(p, -1, -1)
        z = 4 * (v - near(v, 0, -1) - u + near(u, -1, 0)) / 1e5 / around
        h = p + (u * u + near(u, 0, 1) ** 2 + v * v + near(v, 1, 0) ** 2) / 4
        four_v = cv + near(cv, 1, 0) + near(cv, 0, -1) + near(cv, 1, -1)
        four_u = cu + near(cu, 0, 1) + near(cu, -1, 0) + near(cu, -1, 1)
        changes = (
            (z + near(z, 1, 0)) * four_v / 8 - (h - near(h, 0, -1)) / 1e5,
            -(z + near(z, 0, 1)) * four_u / 8 - (h - near(h, -1, 0)) / 1e5,
            -(near(cu, 0, 1) - cu + near(cv, 1, 0) - cv) / 1e5,
        )
        new = [one + 180 * change for one, change in zip(old, changes)]
        old = [b + 0.001 * (c - 2 * b + a) for a, b, c in zip(old, (u, v, p), new)]
        u, v, p = new
    for name, right in zip(("u", "v", "p", "u_old", "v_old", "p_old"), (u, v, p, *old)):
        assert np.allclose(after[name], right, rtol=1e-12, atol=1e-13), name
    assert abs(after["p"].sum() / before["p"].sum() - 1) < 1e-14


@on_devices
def test_hyperthermia_is_that_of_plain_numpy(device: str) -> None:
    names = ["T", "a", "b", "c", "z0", "z1", "y0", "y1", "x0", "x1"]
    f = {name: random((10, 10, 10), seed) / 4 for seed, name in enumerate(names)}
    _, after = looked_at("hyperthermia", 4, devices=device, **f)
    T = f["T"]
    for _ in range(4):
        new = f["a"] * T**2 + f["b"] * T + f["c"]
        for axis, name in enumerate("zyx"):
            for n in (0, 1):
                new = new + f[f"{name}{n}"] * np.roll(T, 1 - 2 * n, axis)
        T = new
    assert np.allclose(after["T"], T, rtol=1e-13, atol=0)


def test_what_heat_leaves_a_cell_comes_into_the_next_one() -> None:
    f, _ = looked_at("hyperthermia", 0, devices="reference")
    for axis, name in enumerate("zyx"):
        above = np.roll(f[f"{name}1"], 1, axis)
        assert np.allclose(f[f"{name}0"], above, rtol=1e-13, atol=0) and np.ptp(above) > 0
    total = f["b"] + sum(f[f"{name}{n}"] for name in "zyx" for n in (0, 1))
    assert set(np.round(1 - total, 9).ravel()) == {0.5 * 4e-4, 0.5 * 8e-4}, "the blood's share"


@on_devices
def test_tricubic_interpolation_is_exact_for_cubics(device: str) -> None:
    cubics = np.random.default_rng(3).random((3, 4))
    inner = (slice(1, -2),) * 3
    at = np.indices((9, 9, 9)) / 9

    def values(where: Any) -> Any:
        parts = [np.polyval(cubic, one) for cubic, one in zip(cubics, where)]
        return parts[0] * parts[1] * parts[2]

    moves = [random((9, 9, 9), seed) for seed in range(3)]
    _, after = looked_at(
        "tricubic", 1, devices=device, u=values(at), **dict(zip("abc", moves))
    )
    right = values([one + move / 9 for one, move in zip(at, moves)])
    assert np.allclose(after["u"][inner], right[inner], rtol=1e-13, atol=0)


@on_devices
def test_life_is_that_of_plain_numpy_and_a_glider_glides(device: str) -> None:
    alive = cells = (random((41, 41), 1) < 0.4).astype("u1")
    _, after = looked_at("life", 12, devices=device, alive=alive)
    for _ in range(12):
        n = sum(near(cells, i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        cells = ((n == 3) | ((n == 2) & (cells == 1))).astype("u1")
    assert np.array_equal(after["alive"], cells) and cells.any()

    glider = np.zeros((41, 41), "u1")
    glider[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1
    _, after = looked_at("life", 4 * 20, devices=device, alive=glider)
    assert np.array_equal(after["alive"], near(glider, -20, -20)), "one cell in four generations"


@on_devices
def test_edges_lead_back_to_the_photograph_as_its_waves_say(device: str) -> None:
    pytest.importorskip("matplotlib")
    _, after = looked_at("reverse_edge", 60, devices=device, dtype="float64")
    photo = example("reverse_edge")["photograph"](37, 29)
    k = [2 * np.pi * np.fft.fftfreq(n) for n in photo.shape]
    left = np.add.outer(*map(np.cos, k)) / 2
    right = photo + np.fft.ifft2(left**60 * np.fft.fft2(photo.mean() - photo)).real
    assert np.allclose(after["image"], right, rtol=0, atol=1e-6)
    assert abs(after["image"] - photo).max() < np.ptp(photo) / 2, "back towards it"


@on_devices
def test_the_lattice_gas_is_that_of_plain_numpy(device: str) -> None:
    ways = [(0, 1), (1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1)]
    before, after = looked_at("lattice_gas", 9, devices=device)
    gas, coin = before["gas"], before["coin"]
    for _ in range(9):
        flown = [near(gas >> i & 1, -dy, -dx) for i, (dy, dx) in enumerate(ways)]
        new = [one.copy() for one in flown]
        for cell in zip(*np.nonzero(sum(flown))):
            found = [i for i in range(6) if flown[i][cell]]
            if not np.sum([ways[i] for i in found], axis=0).any():
                found = [(i + (5 if coin[cell] else 1)) % 6 for i in found]
            for i in range(6):
                new[i][cell] = i in found
        gas, coin = sum(one << i for i, one in enumerate(new)), near(coin, 0, -1)
    assert np.array_equal(after["gas"], gas) and np.array_equal(after["coin"], coin)
    counts = [[(f["gas"] >> i & 1).sum() for i in range(6)] for f in (before, after)]
    for weights in ([1] * 6, *zip(*ways)):
        assert np.dot(counts[0], weights) == np.dot(counts[1], weights), "particles, momentum"


def staggered(n_steps: int, ny: int, nx: int) -> Any:
    """Velocities and stresses of the seismic example after Virieux, in plain NumPy."""
    d, dt, rho, deep, wide = 5.0, 7e-4, 2000.0, ny * 5.0, nx * 5.0
    vy, vx = np.zeros((ny + 1, nx)), np.zeros((ny, nx + 1))
    syy, sxx, sxy = np.zeros((ny, nx)), np.zeros((ny, nx)), np.zeros((ny + 1, nx + 1))
    mu = rho / 3 * 2000.0**2        # so near to the surface there is one layer

    def calm(y: Any, x: Any) -> Any:
        rim = np.minimum(np.minimum(x, wide - x)[None, :], (deep - y)[:, None])
        return 1 - 0.1 * np.maximum(1 - rim / 150, 0) ** 2

    (cy, py), (cx, px) = (((np.arange(n) + 0.5) * d, np.arange(n + 1) * d) for n in (ny, nx))
    for step in range(n_steps):
        above = np.concatenate([-syy[:1], syy, 0 * syy[:1]])        # no stress on the surface
        beside = np.pad(sxx, ((0, 0), (1, 1)))
        pushed = np.diff(above, axis=0) + np.diff(sxy, axis=1)
        vy = calm(py, cx) * (vy + dt / rho / d * pushed)
        vx = calm(cy, px) * (vx + dt / rho / d * (np.diff(beside, axis=1) + np.diff(sxy, axis=0)))
        yy, xx = np.diff(vy, axis=0) / d, np.diff(vx, axis=1) / d
        ricker = (np.pi * 15 * (step * dt - 0.1)) ** 2
        blast = np.zeros((ny, nx))
        blast[4, nx // 4] = 1e6 * (1 - 2 * ricker) * np.exp(-ricker)
        syy, sxx = (one + dt * mu * by + blast
                    for one, by in ((syy, 3 * yy + xx), (sxx, yy + 3 * xx)))  # fmt: skip
        shear = np.diff(np.pad(vy, ((0, 0), (1, 1))), axis=1)
        shear = shear + np.diff(np.pad(vx, ((1, 1), (0, 0))), axis=0)
        sxy = sxy + dt * mu / d * shear
        sxy[0] = 0
    return dict(vy=vy, vx=vx, syy=syy, sxx=sxx, sxy=sxy)


@on_devices
def test_seismic_waves_are_those_of_plain_numpy(device: str) -> None:
    _, after = looked_at("seismic", 40, devices=device, dtype="float64")
    for name, right in staggered(40, 26, 40).items():
        largest = abs(right).max()
        assert largest > 0 and np.allclose(after[name], right, rtol=0, atol=1e-12 * largest), name


GAS = ("rho", "mz", "my", "mx", "energy")
DOUBLES = [(name, "f8") for name in GAS]


def euler(q: Any, d: float) -> Any:
    """Rates of the five conserved quantities (first axis) between walls below and above."""
    out = np.zeros_like(q)
    out[1], out[4] = -q[0], -q[1]
    for axis, own in ((1, 1), (2, 2), (3, 3)):
        ends = [(0, 0), *((2, 2) if one == axis else (0, 0) for one in (1, 2, 3))]
        wide = np.pad(q, ends, mode="symmetric" if axis == 1 else "wrap")
        wide = np.moveaxis(wide, axis, 1)
        if axis == 1:
            wide[1, :2] *= -1
            wide[1, -2:] *= -1
        a, b, c, e = (wide[:, n : n + q.shape[axis] + 1] for n in range(4))
        states = (2 * c + 5 * b - a) / 6, (2 * b + 5 * c - e) / 6
        flows, speeds = [], []
        for one in states:
            v = one[own] / one[0]
            p = 0.4 * (one[4] - (one[1] ** 2 + one[2] ** 2 + one[3] ** 2) / one[0] / 2)
            flow = one * v
            flow[own] += p
            flow[4] += p * v
            flows.append(flow)
            speeds.append(abs(v) + np.sqrt(1.4 * p / one[0]))
        through = (sum(flows) - np.maximum(*speeds) * (states[1] - states[0])) / 2
        out -= np.moveaxis(np.diff(through, axis=1), 1, axis) / d
    return out


@pytest.mark.whole
@on_devices
def test_compressible_flow_is_that_of_plain_numpy(device: str) -> None:
    before, after = looked_at("compressible", 3, devices=device, dtype=DOUBLES)
    q, d, dt = np.array([before[f"q_{name}"] for name in GAS]), 1 / 8, 0.12 / 8
    for _ in range(3):
        first = q + dt * euler(q, d)
        second = 3 / 4 * q + (first + dt * euler(first, d)) / 4
        q = q / 3 + 2 / 3 * (second + dt * euler(second, d))
    for name, right in zip(GAS, q):     # momenta come from pressures, whose roundings they have
        assert np.allclose(after[f"q_{name}"], right, rtol=0, atol=1e-14 * q.max()), name


@pytest.mark.whole
def test_a_falling_gas_keeps_mass_energy_and_symmetry() -> None:
    n = 24
    with example("compressible")["computation"](2 * n, n, n, dtype=DOUBLES, devices="cpu") as run:
        start = {name: run[f"q_{name}"].get() for name in GAS}
        z = run.q_rho.coords["z"][:, None, None]
        run.run(until=2.5)
        end = {name: run[f"q_{name}"].get() for name in GAS}
    assert abs(end["rho"].sum() / start["rho"].sum() - 1) < 1e-13, "mass"
    whole = [(f["energy"] + z * f["rho"]).sum() for f in (start, end)]
    assert abs(whole[1] / whole[0] - 1) < 1e-4, "energy, that of height included"
    assert np.allclose(end["mx"], end["my"].swapaxes(1, 2), rtol=0, atol=1e-11)
    assert np.allclose(end["rho"], end["rho"][:, ::-1, ::-1], rtol=0, atol=1e-11)
    assert end["mz"][n].min() < 5 * start["mz"][n].min() < 0, "it falls"


def growing(depth: float, lower: float, upper: float, k: float) -> Any:
    """The linear mode of a layer without sound: how fast it grows, heights, vertical speeds.

    k k rho w - (rho w')' = k k g rho' w / rate^2 between walls (Chandrasekhar 1961, chapter X).
    """
    z, h = np.linspace(lower, upper, 257, retstep=True)
    half = 1.5 + 0.5 * np.tanh((z[:-1] + h / 2) / depth)
    below, above, rho = half[:-1], half[1:], 1.5 + 0.5 * np.tanh(z[1:-1] / depth)
    held = np.diag(k * k * rho + (above + below) / h**2)
    held -= (np.diag(above[:-1], 1) + np.diag(above[:-1], -1)) / h**2
    rates, modes = np.linalg.eig(np.linalg.solve(held, np.diag(k * k * (above - below) / h)))
    fastest = rates.real.argmax()
    w = np.pad(modes[:, fastest].real, 1)
    return np.sqrt(rates[fastest].real), z, w / w[abs(w).argmax()]


@pytest.mark.whole
def test_the_layer_grows_as_linear_theory_says() -> None:
    """Within 3 %, in a thin box: a push that grows like cosh, as the layer is flat at first."""
    n, k, p, depth = 32, 2 * np.pi, 4.0, 0.1
    rate, heights, mode = growing(depth, -1.4, 0.6, k)
    assert 0.7 * np.sqrt(k / 3) < rate < np.sqrt(k / 3), "that of a sharp layer"

    def push(z: Any, y: Any, x: Any) -> Any:
        rho, w = 1.5 + 0.5 * np.tanh(z / depth), np.interp(z, heights, mode)
        u = -np.interp(z, heights, np.gradient(mode, heights)) / k     # so nothing is squeezed
        below = 1.5 * z + 0.5 * depth * np.log(np.cosh(z / depth))
        flow = dict(mz=1e-3 * rho * w * np.cos(k * x), my=0, mx=1e-3 * rho * u * np.sin(k * x))
        return dict(rho=rho, energy=(p - below) / 0.4 + 0 * (x + y), **flow)

    found = []
    with example("compressible")["computation"](
        2 * n, 4, n, dtype=DOUBLES, q=push, devices="cpu"
    ) as run:  # fmt: skip
        layer = abs(run.q_mz.coords["z"]).argsort()[:2]
        wave = np.cos(k * run.q_mz.coords["x"])
        for until in (0.0, 1.0, 2.0):
            run.run(until=until)
            found.append((run.q_mz.get()[layer] * wave).mean())
        assert np.ptp(run.q_mz.get(), axis=1).max() == 0, "the same in all of the thin box"
    for time, now in zip((1.0, 2.0), found[1:]):
        assert abs(np.arccosh(now / found[0]) / (rate * time) - 1) < 0.03 * (3 - time)


@pytest.mark.parametrize(("name", "way"), sample(product(PATTERNS, WAYS), 3 * len(WAYS)))
def test_a_pattern_file_is_a_weighted_sum_of_plain_numpy(name: str, way: str) -> None:
    (stencil,) = read_patterns(EXAMPLES / "patterns" / f"{name}.py")
    start = random((7, 9, 11, 8)[-len(stencil.shape) :], 1)
    weights = np.reshape(stencil.weights, [above - below + 1 for below, above in stencil.shape])
    right = start
    offsets = np.argwhere(weights) + [below for below, _ in stencil.shape]
    for _ in range(3):
        terms = zip(weights[weights != 0], offsets)
        right = sum(weight * near(right, *offset) for weight, offset in terms) / stencil.factor
    with ct.Computation(stencil, start, boundary="periodic", **WAYS[way]) as run:
        run.run(3)
        assert np.allclose(run.gather(), right, rtol=1e-13, atol=0)


@pytest.mark.whole
@pytest.mark.parametrize("name", SMALL)
def test_an_application_checks_itself(name: str) -> None:
    example(name)["main"](*ARGUMENTS.get(name, ()))


@pytest.fixture(scope="module")
def on_two_ranks() -> Iterator[dict[str, Any]]:
    """What two ranks of two places each find, by application."""
    job = run_ranks(2, [str(JOB), *SMALL], env=helpers_path())
    assert job.returncode == 0, job.stderr
    found: dict[str, Any] = {}
    for line in job.stdout.splitlines():
        found |= json.loads(line)
    yield found


@pytest.mark.parametrize("name", sample(SMALL, len(SMALL)))
def test_unlike_devices_give_the_bits_of_one(name: str) -> None:
    several = digests(name, devices=["cpu/1,1", "reference"], partition="blocks")
    assert several == digests(name, devices="cpu")


@pytest.mark.whole
@pytest.mark.parametrize("name", SMALL)
def test_two_ranks_give_the_bits_of_one(name: str, on_two_ranks: dict[str, Any]) -> None:
    assert on_two_ranks[name] == digests(name)
