# SPDX-License-Identifier: MIT
"""Programs of fields with unlike dtypes: places, layouts, files, checks, refusals."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from controllers import Computation, Field, Program, Read, Stage, reference_run
from controllers.kgt.choice import choose, step_counts, usual_steps
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.placement.places import largest_tile
from controllers.program.coordinates import Coordinates
from controllers.program.expression import Coordinate, Index, Scalar, where
from controllers.program.scalars import Parameter
from hitmap import Layout, Shape

STAR = ((-1, 1), (-1, 1))
HEAT, WALL, N, TOTAL = (Read(name, (0, 0)) for name in ("heat", "wall", "n", "total"))
NEAR = [Read("heat", offset) for offset in ((-1, 0), (0, -1), (0, 1), (1, 0))]
MEAN = (NEAR[0] + NEAR[1] + NEAR[2] + NEAR[3]) * 0.25
PROGRAM = Program(
    "mixed",
    (
        Field("heat", "float32"), Field("wall", "uint8"), Field("n", "int64"),
        Field("total", "float64"),
    ),
    (
        Stage("mean", {"heat": MEAN}, STAR),
        Stage("walls", {"heat": np.where(WALL & 1 != 0, 0.5, HEAT)}, STAR),
        Stage("count", {"n": N + np.where(HEAT > 0.5, 1, 0), "total": TOTAL + HEAT * N}, STAR),
    ),
)  # fmt: skip
EXTENT = 30, 23


def start() -> dict[str, npt.NDArray[Any]]:
    rng = np.random.default_rng(1)
    return {
        "heat": rng.random(EXTENT, np.float32),
        "wall": rng.integers(0, 8, EXTENT).astype("uint8"),
        "n": np.full(EXTENT, 2**53 + 1),
        "total": rng.random(EXTENT),
    }


def by_hand(fields: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """A step with plain NumPy; the outermost cells keep their values."""
    heat, wall, n, total = (fields[name].copy() for name in ("heat", "wall", "n", "total"))
    inner = slice(1, -1), slice(1, -1)
    around = heat[:-2, 1:-1] + heat[1:-1, :-2] + heat[1:-1, 2:] + heat[2:, 1:-1]
    heat[inner] = around * np.float32(0.25)
    heat[inner] = np.where(wall[inner] & np.uint8(1), np.float32(0.5), heat[inner])
    total[inner] += heat[inner].astype("float64") * n[inner].astype("float64")
    n[inner] += heat[inner] > np.float32(0.5)
    return {"heat": heat, "wall": wall, "n": n, "total": total}


def test_the_reference_computes_what_numpy_does() -> None:
    fields = start()
    for _ in range(3):
        fields = by_hand(fields)
    for name, array in reference_run(PROGRAM, start(), 3, (False, False)).items():
        assert array.dtype == fields[name].dtype and np.array_equal(array, fields[name]), name


@pytest.mark.whole
@pytest.mark.parametrize("zero_copy", [pytest.param(True, marks=pytest.mark.whole), False])
def test_all_dtypes_travel_between_places_layouts_and_files(
    zero_copy: bool, tmp_path: Path
) -> None:
    expected = reference_run(PROGRAM, start(), 6, (False, False))
    with Computation(
        PROGRAM, EXTENT, devices="cpu", places_per_controller=3, zero_copy=zero_copy,
        check=zero_copy,
    ) as run:  # fmt: skip
        for name, array in start().items():
            run[name].scatter(array)
        run.run(4)
        if not zero_copy:
            run.redistribute(layout=Layout.blocks(run.domain, 3))
        run.run(2)
        for name, array in expected.items():
            run[name].save(tmp_path / f"{name}.npy")
            saved = np.load(tmp_path / f"{name}.npy")
            assert saved.dtype == array.dtype and np.array_equal(saved, array), name
            assert np.array_equal(run[name].gather(), array)


def test_stages_of_unlike_dtypes_have_vectors_too_and_one_step_per_launch() -> None:
    mean, walls, *_ = PROGRAM.stages
    assert isinstance(choose(PROGRAM, mean, "cpu"), RowsConfig)
    for kind, config in {"cpu": RowsConfig, "gpu": MarchingConfig}.items():
        assert isinstance(choose(PROGRAM, walls, kind), config)
        assert usual_steps(PROGRAM, walls, kind) == 1 and step_counts(PROGRAM, walls, kind) == (1,)
    assert PROGRAM.bytes_per_cell == 4 + 1 + 8 + 8 + 4 + 8 + 8
    assert largest_tile(PROGRAM, Layout.bands(Shape.of_extent(EXTENT), 1)) == 32 * 8 * 32


def test_what_no_field_can_take_is_refused_when_the_program_is_made() -> None:
    def program(**updates: Any) -> Program:
        return Program("p", PROGRAM.fields, (Stage("s", updates, STAR),))

    with pytest.raises(ValueError, match="'s' gives the field 'n', which holds int64, values of "
                                         "float64.*astype"):  # fmt: skip
        program(n=HEAT * N)
    with pytest.raises(ValueError, match="'wall', which holds uint8, values of int64"):
        program(wall=N)
    with pytest.raises(ValueError, match="renames 'total' to 'heat', which holds float32 and not"):
        stage = Stage("s", {"total": HEAT}, STAR)
        Program("p", PROGRAM.fields, (stage,), renames={"heat": "total"})
    with pytest.raises(ValueError, match="array holds float32, the field 'total' float64"):
        reference_run(PROGRAM, start() | {"total": start()["heat"]}, 1, (False, False))
    with pytest.raises(ValueError, match="are heat float32, wall uint8, .*got float32"):
        Computation(PROGRAM, EXTENT, dtype="float32", devices="reference")


def test_scalars_indices_and_coordinates_are_rounded_where_they_meet_a_field() -> None:
    u, n, d, m = (Read(name, (0, 0)) for name in "undm")
    rate, x, row = Scalar("rate"), Coordinate(1), Index(0)
    first = {
        "u": u + rate * Read("u", (0, 1)) + (n * rate).astype("float32") * x,
        "n": n + 3 * Read("n", (1, 0)) + row % 3,
        "d": d * rate + x * u,
    }
    second = {"m": where(row % 2 == 0, m + row, 7), "n": where(u * rate > x, n, n - 1)}
    third = {"u": (u.astype("float64") * rate + d).astype("float32")}
    stages = [Stage(f"s{at}", updates, ((0, 1),) * 2)
              for at, updates in enumerate((first, second, third))]  # fmt: skip
    kinds = {"u": "float32", "n": "int32", "d": "float64", "m": "uint8"}
    program = Program(
        "given", tuple(Field(*each) for each in kinds.items()), tuple(stages),
        scalars={"rate": Parameter(0.1)}, grid=Coordinates(("y", "x"), (0.0, -1.0), (0.3, 0.7)),
    )  # fmt: skip
    start = {f: np.random.default_rng(4).integers(0, 99, (9, 8)).astype(kinds[f]) for f in kinds}
    right = reference_run(program, start, 1, (False, False))
    with Computation(program, (9, 8), devices="cpu", places_per_controller=2, check="on") as run:
        for field, values in start.items():
            run[field].scatter(values)
        run.run(1)
        for field in kinds:
            assert np.array_equal(run[field].gather(), right[field]), field
    a, old, at = start["u"], start["n"][:-1, :-1], -1 + (np.arange(7) + 0.5) * 0.7
    new = a[:-1, :-1] + np.float32(0.1) * a[:-1, 1:]
    new += (old * 0.1).astype("float32") * at.astype("float32")
    wide = start["d"][:-1, :-1] * 0.1 + (at.astype("float32") * a[:-1, :-1]).astype("float64")
    assert np.array_equal(right["d"][:-1, :-1], wide)
    assert np.array_equal(right["u"][:-1, :-1], (new.astype("float64") * 0.1 + wide).astype("f4"))
