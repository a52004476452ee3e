# SPDX-License-Identifier: MIT
"""The examples of workspaces give what plain NumPy gives, on one device, on several, on ranks."""
from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpi_jobs import run_ranks
from sample import sample

import controllers as ct

EXAMPLES = Path(__file__).parents[1] / "examples"
NBODY, KMEANS = ((EXAMPLES / f"{name}.py").read_text("utf-8") for name in ("nbody", "kmeans"))
PRODUCTS = (EXAMPLES / "matrix_products.py").read_text("utf-8")
WAYS: list[dict[str, Any]] = [
    {"devices": "cpu"}, {"devices": "cpu", "places_per_controller": 3}, {"devices": "reference"},
]  # fmt: skip
SUMS = "print([float(one.sum()) for one in main(40)])"
SHORT = NBODY.replace("n, dt = 1024", "n, dt = 60").replace("range(100)", "range(3)")


def ran(program: str, name: str = "__main__") -> dict[str, Any]:
    found: dict[str, Any] = {"__name__": name}
    exec(compile(program, name, "exec"), found)
    return found


def sequential_pull(x: Any, mass: Any) -> npt.NDArray[np.float32]:
    """In the order that the page says: columns first to last, then bodies first to last."""
    found = np.zeros_like(x)
    for one, body in enumerate(x):
        d = x - body
        r2 = (d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1]) + d[:, 2] * d[:, 2] + np.float32(1e-3)
        factor = mass * (np.float32(1) / (r2 * np.sqrt(r2)))
        for other in range(len(x)):
            found[one] += factor[other] * d[other]
    return found


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_bodies_move_as_in_plain_numpy(
    way: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    n, dt = 60, 1e-3
    x = np.random.default_rng(1).normal(size=(n, 3)).astype(np.float32)
    v, mass = np.zeros_like(x), np.full(n, 1 / n, np.float32)
    for _ in range(3):
        v += dt / 2 * sequential_pull(x, mass)
        x += dt * v
        v += dt / 2 * sequential_pull(x, mass)
    energy = 0.5 * math.fsum((v * v).ravel().tolist()) / n
    monkeypatch.setattr(ct, "workspace", partial(ct.workspace, **way), raising=False)
    ran(SHORT)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{energy} ({n}, 3)"
    assert printed[1].startswith("place  rank  device") and printed[1].endswith("waits")


def k_means(points: Any, k: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    centres = points[:: len(points) // k][:k]
    while True:
        label = np.array([((centres - one) ** 2).sum(axis=1).argmin() for one in points], "i4")
        new = np.array([
            [math.fsum(column) / max(1, len(column)) for column in points[label == which].T]
            for which in range(k)
        ])  # fmt: skip
        moved, centres = abs(new - centres).max(), new
        if moved < 1e-4:
            return centres, label


def points_of(n: int) -> npt.NDArray[np.float64]:
    random = np.random.default_rng(n)
    return random.normal(size=(n, 2)) + 4 * random.integers(0, 3, (n, 1))


@pytest.mark.parametrize("way", sample(WAYS, 3), ids=str)
def test_matrices_are_multiplied_by_rows_by_columns_and_exactly_over_all_rows(
    way: dict[str, Any],
) -> None:
    a, b, c, projected, square = ran(PRODUCTS, "products")["main"](50, **way)
    right = np.zeros((6, 40))
    for row in range(50):       # in the same order
        right += a[row][:, None] * b[row]
    assert np.array_equal(c, right)
    right = np.zeros((50, 40))
    for column in range(6):
        right += a[:, column, None] * c[column]
    assert np.array_equal(projected, right)
    exact = [[math.fsum((one * other).tolist()) for other in a.T] for one in a.T]
    assert np.array_equal(square, exact)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_centres_are_those_of_plain_numpy(
    way: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    points = points_of(200)
    np.save("points.npy", points)
    monkeypatch.setattr(ct, "workspace", partial(ct.workspace, **way), raising=False)
    centres, label = k_means(points, 5)
    assert np.array_equal(ran(KMEANS, "kmeans")["main"]("points.npy", 5), centres)
    assert np.array_equal(np.load("labels.npy"), label)


@pytest.mark.whole
def test_they_print_the_same_on_two_ranks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("points.npy", points_of(300))
    ran(KMEANS)
    one = np.load("labels.npy")
    ran(SHORT)
    ran(f"{PRODUCTS}\n{SUMS}", "products")
    right = capsys.readouterr().out.splitlines()
    products = PRODUCTS.replace("__main__", "products")
    job = run_ranks(2, f"{KMEANS}\nprint('bodies')\n{SHORT}\n{products}\n{SUMS}")
    assert job.returncode == 0, job.stderr
    assert np.array_equal(np.load("labels.npy"), one)
    energy = next(line for line in right if line.endswith("(60, 3)"))
    assert [job.stdout.splitlines().count(line) for line in (energy, right[-1])] == [2, 2]
