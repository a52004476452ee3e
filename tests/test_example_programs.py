# SPDX-License-Identifier: MIT
"""The programs of examples/ that are nothing but a program: what they save is what it should be."""
from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import run_ranks

import controllers as ct

EXAMPLES = Path(__file__).parents[1] / "examples"
# how many lines they have at most, and how many steps of each run two ranks make in a test
LINES = {"gray_scott": 28, "wave": 28, "shallow_water": 35, "rayleigh_taylor": 46, "cavity": 46}
STEPS = {"gray_scott": 20, "wave": 1, "shallow_water": 30, "rayleigh_taylor": 5, "cavity": 20}
# u along y on the vertical centre line: Ghia, Ghia and Shin (1982), table I, Re 100
GHIA = {0.9766: 0.84123, 0.8516: 0.23151, 0.7344: 0.00332, 0.6172: -0.13641, 0.5: -0.20581,
        0.4531: -0.21090, 0.2813: -0.15662, 0.1719: -0.10150, 0.0547: -0.03717}  # fmt: skip

pytestmark = pytest.mark.whole


def executed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the names of the program are after it ran, and the array that it saved."""
    monkeypatch.chdir(folder)
    names = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return names, np.load(f"{name}.npy")


@pytest.mark.parametrize("name", LINES)
def test_a_program_is_short(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text("utf-8").splitlines()) <= LINES[name]


@pytest.mark.parametrize("name", LINES)
def test_two_ranks_and_unlike_devices_save_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = []
    command = ["-m", "controllers", "run", str(EXAMPLES / f"{name}.py")]
    unlike = ["--device", "cpu", "--device", "reference", "--partition", "blocks"]
    for n_ranks, more in ((1, []), (2, []), (1, unlike)):
        folder = tmp_path / str(len(saved))
        folder.mkdir()
        monkeypatch.chdir(folder)
        job = run_ranks(n_ranks, [*command, "--iterations", str(STEPS[name]), *more])
        assert job.returncode == 0, job.stderr
        saved.append(np.load(f"{name}.npy"))
    assert saved[0].any() and all(np.array_equal(saved[0], one) for one in saved[1:])


def test_gray_scott_is_that_of_plain_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, image = executed("gray_scott", tmp_path, monkeypatch)
    assert 0.02 < image.mean() < 0.2 and 0.2 < image.max() < 0.5, "spots that divide"
    with ct.Computation(names["gray_scott"], names["grid"], dtype="f4", **names["start"]) as run:
        u, v = np.asarray(run.u), np.asarray(run.v)
        run.run(10)
        got = np.asarray(run.v)
    for _ in range(10):
        around = [sum(np.roll(f, s, a) for a in (0, 1) for s in (1, -1)) - 4 * f for f in (u, v)]
        uvv = u * v * v
        u, v = (
            u + 0.16 * around[0] - uvv + 0.037 * (1 - u),
            v + 0.08 * around[1] + uvv - (0.037 + 0.06) * v,
        )
    assert np.array_equal(got, v)


def by_hand(n_steps: int) -> Any:
    """The wave in plain NumPy."""
    y, x = ((np.arange(n) + 0.5) * 5 for n in (300, 400))
    y = y[:, None]
    c = np.where(y < 700, 1500.0, 2500.0 + 0 * x).astype("f4")
    depth = np.minimum(np.minimum(y, 1500 - y), np.minimum(x, 2000 - x))
    damp = (0.1 * np.clip(1 - depth / 100, 0, 1) ** 2).astype("f4")
    u = old = np.zeros((300, 400), "f4")
    weights = {1: 8 / 5, 2: -1 / 5, 3: 8 / 315, 4: -1 / 560}
    for step in range(n_steps):
        wide = np.pad(u, 4)
        curved = np.float32(-205 / 36 / 25) * u
        for k, weight in weights.items():
            near = wide[4 + k : 304 + k, 4:-4] + wide[4 - k : 304 - k, 4:-4]
            near = near + wide[4:-4, 4 + k : 404 + k] + wide[4:-4, 4 - k : 404 - k]
            curved = curved + np.float32(weight / 25) * near
        ricker = (np.pi * 15 * (step * 5e-4 - 0.1)) ** 2
        new = 2 * u - (1 - damp) * old + (np.float32(5e-4) * c) ** 2 * curved
        new = new / (1 + damp)
        new[60, 200] += np.float32(5e-4**2 * 1e6 * (1 - 2 * ricker) * np.exp(-ricker))
        u, old = new, u
    return u


def test_the_wave_is_that_of_plain_numpy_and_the_sponge_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, _ = executed("wave", tmp_path, monkeypatch)
    grid, lines, at = names["grid"], names["seismogram"].get(), names["seismogram"].coords
    distance = np.hypot(at["x"] - 1000, at["y"] - 300)
    direct = distance < 600                     # before what comes from the layer below
    peak = (np.abs(lines[:, direct]).argmax(0) + 1) * 8 * names["dt"]
    assert abs(1 / np.polyfit(distance[direct], peak, 1)[0] - 1500) < 50, "the upper layer's speed"

    energy = []
    for damp in (names["sponge"], 0):
        start = {**names["start"], "damp": damp}
        with ct.Computation(names["wave"], grid, dt=names["dt"], dtype="float32", **start) as run:
            run.run(250)
            if damp:
                right = by_hand(250)
                assert np.allclose(run.u[:, :], right, rtol=0, atol=1e-4 * abs(right).max())
            run.run(2150)
            energy.append((run.u[:, :].astype("f8") ** 2).sum())
    assert energy[0] < 0.05 * energy[1], "little comes back from the rim"


def test_no_water_is_lost_and_the_pool_stays_symmetric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, depth = executed("shallow_water", tmp_path, monkeypatch)
    at = (np.arange(200) + 0.5) * 0.05
    before = names["drop"]["h"](at[:, None], at)
    assert abs(depth.sum() / before.sum() - 1) < 1e-12 and np.allclose(depth, depth.T, atol=1e-9)
    assert 1e-3 < depth.std() < before.std(), "waves run about"


def test_no_mass_is_lost_and_the_fingers_are_symmetric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, density = executed("rayleigh_taylor", tmp_path, monkeypatch)
    assert abs(density.sum() / (75 * 50 * 3) - 1) < 1e-12
    assert np.allclose(density, density[:, ::-1], atol=1e-6)
    heavy = (density > 1.5).sum(axis=0)         # how deep it is in each column
    assert heavy.max() - heavy.min() > 20, "it has fallen in a finger"


@pytest.mark.parametrize("said", [{}, {"48, 5e-3": "128, 1.25e-3", "8000": "12000"}])
def test_the_cavity_has_the_published_velocities(
    said: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within 1 % of the lid's speed."""
    text = (EXAMPLES / "cavity.py").read_text("utf-8")
    for old, new in said.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path("program.py", run_name="__main__")
    u, n = np.load("cavity.npy"), names["n"]
    line, at = u[:, n // 2 - 1 : n // 2 + 1].mean(axis=1), names["grid"].coordinates("y")
    assert max(abs(np.interp(y, at, line) - right) for y, right in GHIA.items()) < 0.01
