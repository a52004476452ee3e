# SPDX-License-Identifier: MIT
"""Output has the cells of each moment in all ways to compute them, and changes none of them."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from kept_programs import PROGRAMS, ran

import controllers as ct

WAYS: list[tuple[str, dict[str, Any]]] = [
    ("wave", dict(devices="cpu")),
    ("pattern", dict(devices="cpu", steps_per_launch=2)),
    ("heun", dict(devices="cpu", places_per_controller=2)),
    ("pair", dict(devices=["cpu", "reference"])),
    ("pattern", dict(devices="cpu", chunks=3, zero_copy=False)),
    ("wave", dict(devices="cpu", places_per_controller=2, halo_width=4)),
    ("sound", dict(devices="cpu", places_per_controller=3)),
    ("repeating", dict(devices="cpu")),
    ("wave", dict(devices="cpu", check="on")),
    ("pair", dict(devices="cpu", zero_copy=False)),
    ("heun", dict(devices="cpu", zero_copy=False, places_per_controller=2)),
    ("sound", dict(devices="cpu", zero_copy=False, steps_per_launch=1)),
    ("wave", dict(devices="cpu", zero_copy=False, check="on")),
]


DEFAULT = ("pair",)
CASES = [
    pytest.param(name, way, suffix, id=f"{name}-{way}-{suffix}",
                 marks=() if suffix == "zarr" and name in DEFAULT else pytest.mark.whole)
    for name, way in WAYS for suffix in ("zarr", "pvd")
]  # fmt: skip


@pytest.mark.parametrize("name, way, suffix", CASES)
def test_moments_are_those_of_the_reference(
    tmp_path: Path, name: str, way: dict[str, Any], suffix: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    options = dict(fields="p") if (name, suffix) == ("sound", "pvd") else {}
    with PROGRAMS[name](**way) as run:
        run.run(11, output=ct.output(path, ct.every(steps=3), **options))
        end = {field: run[field].get() for field in run.fields}
    if suffix == "pvd":     # what is in it, other tests say
        assert path.read_text().count("<DataSet") == 5
        return
    found = xarray.open_zarr(path)
    assert found.step.values.tolist() == [0, 3, 6, 9, 11]
    for step in found.step.values.tolist():
        right = ran(name, step)
        for field in found.data_vars:
            got = found[field].sel(step=step).values
            assert got.tobytes() == right[str(field)].tobytes(), (field, step)
    assert all(np.array_equal(end[field], right[field]) for field in end)
