# SPDX-License-Identifier: MIT
"""Checkpoints and zarr stores, of this package and of others, are read by parts."""
from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from shown_runs import made

import controllers as ct
from controllers.contents.content import Content
from controllers.contents.opening import opened
from controllers.fields.selection import Selection


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cells(content: Content, number: int, name: str, **where: object) -> npt.NDArray[Any]:
    place = content.fields[name].place
    return content.read(number, name, Selection(place, place.extent, where))


def test_checkpoints_are_read_by_parts() -> None:
    wanted = made()
    for path in ("kept", "kept/run-1", *map(str, Path("kept/run-1").glob("*-step-8"))):
        content = opened(Path(path))
        last = len(content.instants) - 1
        assert (content.instants[last].step, content.instants[last].time) == (8, 4.0)
        assert {name: one.dtype.name for name, one in content.fields.items()} == {
            "u": "float64", "v": "int32"
        }  # fmt: skip
        assert np.array_equal(cells(content, last, "u"), wanted[8])
        assert (cells(content, last, "v") == 8).all()
        assert np.array_equal(cells(content, last, "u", y=1.25)[0], wanted[8][2])
        assert np.array_equal(cells(content, last, "u", x=slice(4, 6)), wanted[8][:, 4:8])
    content = opened(Path("kept"))
    assert [one.step for one in content.instants] == [4, 8]
    assert np.array_equal(cells(content, 0, "u"), wanted[4])
    assert content.facts["program"] == "heat" and "k = 0.2" in content.facts["parameters"]


def test_a_zarr_store_is_read_by_parts() -> None:
    pytest.importorskip("tensorstore")
    wanted = made(output=("run.zarr", ct.every(steps=4)))
    content = opened(Path("run.zarr"))
    assert [(one.step, one.time) for one in content.instants] == [(0, 0.0), (4, 2.0), (8, 4.0)]
    assert content.fields["v"].dtype == np.int32 and (*content.fields,) == ("u", "v")
    for number, step in ((1, 4), (2, 8)):
        assert np.array_equal(cells(content, number, "u"), wanted[step])
    assert np.array_equal(cells(content, 2, "u", y=1.25, x=slice(4, 6))[0], wanted[8][2, 4:8])


@pytest.mark.parametrize("reader", ["tensorstore", "zarr"])
@pytest.mark.parametrize("consolidated", [True, False])
def test_stores_of_others_are_read(
    reader: str, consolidated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    xarray, zarr = pytest.importorskip("xarray"), pytest.importorskip("zarr")
    values = np.random.default_rng(4).random((3, 5, 7), "f4")
    data = xarray.Dataset({
        "p": (("time", "b", "a"), values), "still": (("b", "a"), values[0]),
        "a": [1.0, 2, 4, 8, 16, 32, 64],
    })  # fmt: skip
    data.to_zarr("a.zarr", zarr_format=3, consolidated=consolidated)
    if reader == "zarr":
        find = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: None if name == "tensorstore" else find(name)
        )
    else:
        pytest.importorskip("tensorstore")
    content = opened(Path("a.zarr"))
    assert sorted(content.fields) == ["p", "still"] and len(content.instants) == 3
    assert content.fields["p"].place.grid is None       # uneven: indices
    assert np.array_equal(cells(content, 1, "p"), values[1])
    assert np.array_equal(cells(content, 1, "p", x=2), values[1][:, 2:3])
    assert np.array_equal(cells(content, 1, "still"), values[0])
    assert zarr is not None
