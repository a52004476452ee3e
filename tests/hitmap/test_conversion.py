# SPDX-License-Identifier: MIT
"""Values are converted alike on all ways into a field, and none is changed in silence."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sample import sample

from controllers import Computation, Controller, Stencil
from hitmap import Layout, SerialCommunicator, Shape, scatter
from hitmap.conversion import convert, with_one_nan

SUM = Stencil.of("sum", [(-1, 1)], [1, 1, 1], 1)
SERIAL = SerialCommunicator()
Way = Callable[[npt.NDArray[Any], str], npt.NDArray[Any]]


def _computed(set_: Callable[[Computation, npt.NDArray[Any]], object]) -> Way:
    def way(values: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
        with Computation(
            SUM.program(dtype), values.shape, devices="reference", comm=SERIAL,
            places_per_controller=2,
        ) as run:  # fmt: skip
            set_(run, values)
            whole = run.gather()
            assert whole is not None
            return whole

    return way


def _from_file(run: Computation, values: npt.NDArray[Any]) -> None:
    np.save("in.npy", values)
    run.load_file("in.npy")


def _tied(values: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    with Controller("cpu") as controller:
        tile = controller.tile(values.shape, dtype)
        tile.write(values)
        return tile.read()


def _scattered(values: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    (part,) = scatter(
        values, Layout.bands(Shape.of_extent(values.shape), 1), [0], SERIAL, dtype=dtype
    ).values()
    return part


WAYS: dict[str, Way] = {
    "scatter of a computation": _computed(lambda run, values: run.scatter(values)),
    "a file": _computed(_from_file),
    "write in a load": _computed(
        lambda run, values: run.load(lambda tile: tile.write(values[tile.box.slices((0,))]))
    ),
    "scatter": _scattered,
    "a tied tile": _tied,
}


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_in_convert_alike(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for values, dtype in (
        (np.array([0.0, 255, 7, 1]), "uint8"),
        (np.array([1e300, 0.1, -np.inf, 3]), "float64"),
        (np.array([0.1, 1e-300, np.inf, 3]), "float32"),
        (np.array([2**24 + 1, 0, -1, 5]), "float32"),
        (np.array([True, False, True, True]), "int64"),
    ):
        got = WAYS[way](values, dtype)
        assert got.dtype == dtype and np.array_equal(got, values.astype(dtype))
    for values, dtype, match in (
        (np.array([1, 2**40 + 7, 3, 4]), "uint8", "1099511627783, but uint8 takes .* 0 to 255"),
        (np.array([1, -1, 3, 4]), "uint8", "holds -1, but uint8"),
        (np.array([1, 2, 3, 1e300]), "float32", r"1e\+300, but float32 takes .* up to 3.4e\+38"),
        (np.array([1, 2, 3, 0.5]), "int32", "holds 0.5, but int32 takes whole numbers"),
        (np.array([1, np.nan, 3, 4]), "int64", "holds nan, but int64"),
        (np.array([2**63, 1, 1, 1], np.uint64), "int64", "9223372036854775808, but int64"),
        (np.array([1j, 0, 0, 0]), "float32", "[Cc]annot cast"),
        (np.array([1j, 0, 0, 0]), "int32", "Cannot cast"),
    ):
        with pytest.raises(ValueError, match=match):
            WAYS[way](values, dtype)


def test_the_first_cell_that_does_not_fit_is_named_by_its_global_index() -> None:
    cells = np.zeros((2, 3))
    cells[1, 2] = 300
    with pytest.raises(ValueError, match=r"cell \(11, 22\) holds 300.0, but uint8"):
        convert(cells, np.empty((2, 3), np.uint8), (10, 20))


@pytest.mark.parametrize("dtype", sample(["float32", "float64"], 2))
@pytest.mark.parametrize("devices", ["reference", "cpu:0"])
def test_outputs_have_one_nan_whatever_computes_it(
    dtype: str, devices: str, tmp_path: Path
) -> None:
    bits = np.dtype(dtype.replace("float", "uint"))
    field = np.ones(41, dtype)
    field.view(bits)[[3, 17, 20]] = [~bits.type(0), ~bits.type(5), ~bits.type(9)]   # odd NaNs
    field[30:32] = np.inf, -np.inf
    for n_places in (1, 3):
        with Computation(
            SUM.program(dtype), 41, devices=devices, comm=SERIAL, places_per_controller=n_places
        ) as run:
            run.scatter(field)
            run.run(2)
            whole = run.gather()
            run.save(tmp_path / "out.npy")
        assert whole is not None
        saved = np.load(tmp_path / "out.npy")
        assert whole.tobytes() == saved.tobytes()
        nans = np.isnan(whole)
        assert nans.sum() > 10
        assert set(whole.view(bits)[nans]) == {np.array(np.nan, dtype).view(bits)[()]}


def test_fields_without_nan_are_not_copied() -> None:
    for cells in (np.ones(3), np.array([np.inf]), np.empty(0), np.ones(3, np.int32)):
        assert with_one_nan(cells) is cells
