# SPDX-License-Identifier: MIT
"""The examples of hybrid tasks give NumPy's bits, whatever the shares."""
from __future__ import annotations

import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample import sample
from test_examples import run_alone

import controllers as ct

EXAMPLES = Path(__file__).parents[1] / "examples"


def names_of(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_a_hybrid_matrix_product_is_numpys() -> None:
    draw = np.random.default_rng(1)
    a, b = draw.random((41, 20), np.float32), draw.random((20, 30), np.float32)
    names = names_of("hybrid_product")
    found, report = names["main"](a, b, devices="cpu/1,1", cores=3)
    right, again = np.zeros_like(found), np.zeros_like(found)
    names["product_on_host"](right, a, b, len(b))
    assert np.array_equal(found, right) and "product" in str(report)
    cut = {"c": ct.Row, "a": ct.Row, "b": ct.All}
    with ct.tasks("cpu/1,1", cores=3) as pool:
        pool.submit(ct.hybrid(names["product"], cut=cut, shares=(1, 1, 1)), again, a, b, len(b))
        pool.wait()
        assert sum(one.task == "product" for one in pool.report().tasks) == 3, "all sides"
    assert np.array_equal(again, right)


def by_numpy(names: dict[str, Any], u: Any, parts: Any, steps: int, dt: float) -> Any:
    """The same time steps in plain NumPy."""
    mass, at, corners, factors = parts
    u, v, a = u.copy(), np.zeros_like(u), np.zeros_like(u)
    for _ in range(steps):
        u += dt * v
        a[:] = 0
        for nodes, corner, factor in zip(at, corners, factors):
            out = np.zeros(len(nodes))
            names["forces_on_host"](out, u, corner, factor)
            a[nodes] += out
        v += dt * (a / mass)
    return u


@pytest.mark.parametrize("shares", sample([[1, 1, 1], [1, 2, 0], None], 3))
def test_waves_on_a_mesh_are_numpys(shares: Sequence[float] | None) -> None:
    names = names_of("wave_mesh")
    parts = names["mesh"](15)
    start = np.random.default_rng(2).random(len(parts[0]))
    u = start.copy()
    with ct.tasks("cpu/1,1", cores=3, zero_copy=False) as pool:
        names["main"](pool, u, *parts, steps=4, shares=shares)
    assert np.array_equal(u, by_numpy(names, start, parts, 4, 0.3))


def test_forces_of_a_mesh_are_none_where_nothing_is_bent() -> None:
    names = names_of("wave_mesh")
    mass, at, corners, factors = names["mesh"](12)
    assert len(at) == 25 and mass.sum() == 144
    a, u = np.zeros_like(mass), np.full_like(mass, 3)
    for nodes, corner, factor in zip(at, corners, factors):
        out = np.ones(len(nodes))
        names["forces_on_host"](out, u, corner, factor)
        a[nodes] += out
    assert abs(a).max() < 1e-14


@pytest.mark.whole
@pytest.mark.parametrize("name", ["hybrid_product", "wave_mesh"])
def test_they_run_by_themselves(name: str) -> None:
    assert "jobs were done" in run_alone(EXAMPLES / f"{name}.py", "cpu/1,1")
