# SPDX-License-Identifier: MIT
"""A field of a computation reads and writes as an array does, wherever its cells are."""
from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpi_jobs import run_ranks
from sample import cases

import controllers as ct
from controllers import Computation, Execution, Field, Program, Read, Stage, Stencil
from controllers.fields import cells
from hitmap import Layout, SerialCommunicator, Shape
from hitmap.section import Section

SERIAL = SerialCommunicator()
EXTENTS = ((11,), (7, 9), (5, 4, 6))
MEAN = {
    n: Stencil.of(f"mean_{n}", [(-1, 1)] + [(0, 0)] * (n - 1), [1, 0, 1], 2) for n in (1, 2, 3)
}


def started(extent: tuple[int, ...], n_places: int, device: str = "reference", **more: Any) -> Any:
    return Computation(
        MEAN[len(extent)], extent, comm=SERIAL,
        execution=Execution(devices=[device]), places_per_controller=n_places, **more,
    )  # fmt: skip


def random_index(random: np.random.Generator, extent: tuple[int, ...]) -> Any:
    def one(n: int) -> Any:
        if random.random() < 0.25:
            return int(random.integers(-n, n))
        ends = [None if random.random() < 0.3 else int(random.integers(-n - 2, n + 3))
                for _ in range(2)]  # fmt: skip
        return slice(*ends, random.choice([None, 1, 2, 3, -1, -2]))

    index = [one(n) for n in extent]
    if random.random() < 0.4:
        at = int(random.integers(0, len(index) + 1))
        index = [*index[:at], ..., *index[int(random.integers(at, len(index) + 1)) :]]
    return tuple(index) if len(index) > 1 or random.random() < 0.5 else index[0]


@pytest.mark.parametrize("device", ["reference", pytest.param("cpu", marks=pytest.mark.whole)])
@pytest.mark.parametrize("seed", cases(1, 10))
def test_indices_select_what_numpy_selects(seed: int, device: str) -> None:
    random = np.random.default_rng(seed)
    for extent in EXTENTS:
        for n_places in (1, 2, 3, 5):
            right = random.random(extent)
            with started(extent, n_places, device, dtype="f8", u=right) as run:
                for number in range(6):
                    index = random_index(random, extent)
                    assert np.array_equal(run.u[index], right[index]), (extent, n_places, index)
                    assert np.shape(run.u[index]) == np.shape(right[index])
                    shape = right[index].shape
                    if number % 3 and len(shape) > 0:
                        shape = (1, *shape[1:])
                    values = random.random(shape)
                    run.u[index] = right[index] = values
                    assert np.array_equal(run.u, right), (extent, n_places, index)


def test_indices_that_are_equal_in_python_are_told_apart() -> None:
    right = np.arange(6.0)
    with started((6,), 1, "reference", dtype="f8", u=right) as run:
        assert (run.u[1], run.u[np.int64(1)]) == (1, 1)
        assert run.u[1:].shape == run.u[np.int64(1) :].shape == (5,)
        with pytest.raises(TypeError, match="np.asarray"):
            run.u[True]
        with pytest.raises(TypeError, match="np.asarray"):
            run.u[1.0]
        with pytest.raises(TypeError):
            run.u[1.0:]


def test_what_is_set_between_steps_is_stepped_on() -> None:
    right = np.random.default_rng(1).random((7, 9))
    program = MEAN[2].program("float64")
    for zero_copy in (True, False):
        with started((7, 9), 3, "cpu", u=right, zero_copy=zero_copy) as run:
            now = right
            for index in ((0, slice(None, None, 2)), (slice(2, 5), -1), (slice(None, None, 3),)):
                run.u[index] = 3
                now = now.copy()
                now[index] = 3
                run.run(3)
                now = ct.reference_run(program, now, 3, (False, False))
                assert np.array_equal(run.u, now)
            assert run.step == 9


@pytest.mark.parametrize("kind", ["reference", "cpu"])
def test_a_field_takes_its_own_cells_in_another_order(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last ones are read when the first ones have been overwritten, unless they are copied."""
    monkeypatch.setattr(cells, "CHUNK_CELLS", 18)
    right, seen = np.arange(63.0).reshape(7, 9), list[Any]()
    with started(right.shape, 1, kind, dtype="f8", u=right) as run:
        run.visit(lambda tile: seen.append(tile.array))
        run.u.set(seen[0][::-1])
        assert np.array_equal(run.u, right[::-1])


def test_an_array_that_needs_no_conversion_goes_to_devices_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right, other = np.random.default_rng(3).random((64, 9)), np.zeros((64, 9))
    moved: list[Any] = []
    with started((64, 9), 2, "cpu", dtype="f8", u=other, zero_copy=False) as run:
        for executor in run._engine.executors.values():
            def move_to(tile: Any, box: Any, cells: Any, real: Any = executor.move_to) -> None:
                moved.append(np.shares_memory(cells, right))
                real(tile, box, cells)

            monkeypatch.setattr(executor, "move_to", move_to)
        run.u.set(right)
        assert moved and all(moved) and np.array_equal(run.u, right)
        moved.clear()
        run.u.set(right.astype("f4"))
        assert moved and not any(moved) and np.array_equal(run.u, right.astype("f4"))


def test_fields_that_change_their_buffers_are_set_where_they_are() -> None:
    u, old = Read("u", (0, 0)), Read("old", (0, 0))
    around = Read("u", (-1, 0)) + Read("u", (1, 0)) + Read("u", (0, -1)) + Read("u", (0, 1))
    stage = Stage("push", {"u": 2 * u - old + 0.1 * (around - 4 * u)}, ((-1, 1), (-1, 1)))
    wave = Program(
        "wave", (Field("u", "float64"), Field("old", "float64")), (stage,), renames={"old": "u"}
    )
    random = np.random.default_rng(2)
    right = {name: random.random((7, 9)) for name in ("u", "old")}
    with Computation(
        wave, (7, 9), comm=SERIAL, devices="reference", places_per_controller=3, init=right
    ) as run:
        for name in ("u", "old", "u"):
            for n_steps in (1, 2):
                index = random_index(random, (7, 9))
                values = random.random(right[name][index].shape)
                run[name][index] = values
                right[name] = right[name].copy()
                right[name][index] = values
                run.run(n_steps)
                right = dict(ct.reference_run(wave, right, n_steps, (False, False)))
                for each in right:
                    assert np.array_equal(run[each], right[each]), (name, each, index)


def test_a_section_knows_who_has_which_part() -> None:
    section = Section.of((slice(8, None, -3), slice(1, 3)), (10, 4))
    layout = section.divided(Layout.bands(Shape.of_extent((10, 4)), 4))
    assert str(layout).splitlines() == [
        "place 0: [2:3, 0:2]", "place 1: [1:2, 0:2]", "place 2: no cells", "place 3: [0:1, 0:2]",
    ]  # fmt: skip
    assert str(section.cells(layout.domain)) == "[2:9, 1:3]"
    assert Section.of((0, slice(5, 2)), (3, 9)).divided(Layout.bands(
        Shape.of_extent((3, 9)), 2)).domain.empty  # fmt: skip


def test_what_is_known_of_a_field() -> None:
    grid = ct.Grid(y=4, x=6, lower=(0, 1), upper=(2, 4))
    with Computation(MEAN[2], grid, dtype="f4", u=2, comm=SERIAL, devices="reference") as run:
        u = run.u
        assert (u.shape, u.ndim, u.size, u.nbytes, len(u)) == ((4, 6), 2, 24, 96, 4)
        assert (u.dtype, u.dims) == (np.float32, ("y", "x"))
        assert u.coords["x"].tolist() == [1.25, 1.75, 2.25, 2.75, 3.25, 3.75]
        assert repr(u) == f"<u of {run.calls.owner}: 4 x 6 cells of float32>"
        assert "<td>y 4 x x 6</td>" in u._repr_html_() and "<td>96</td>" in u._repr_html_()
        assert {"u", "run", "step"} <= {*dir(run)}
        assert [row.tolist() for row in u] == [[2.0] * 6] * 4
        assert np.asarray(u, "f8").dtype == np.float64
        assert isinstance(u[1, 2], np.float32)
        with pytest.raises(ValueError, match="<u of .* are on devices.*copy=False"):
            u.__array__(copy=False)
        with pytest.raises(AttributeError, match=r"no 'w'; the fields are u"):
            run.w  # noqa: B018
        with pytest.raises(AttributeError, match=r"run.u\[...\] = values"):
            run.u = 3
    with started((5,), 1) as run:
        assert (run.u.dims, run.u.coords) == (("x",), {})


def test_a_method_is_not_hidden_by_a_field_of_its_name() -> None:
    stage = Stage("a", {"step": Read("step", (0,)) + 1}, ((0, 0),))
    program = Program("p", (Field("step", "float64"),), (stage,))
    with Computation(program, 5, comm=SERIAL, devices="reference", step=2) as run:
        run.run(3)
        assert run.step == 3
        assert np.asarray(run["step"]).tolist() == [5] * 5


def test_the_whole_goes_out_and_in_by_several_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = np.arange(12.0).reshape(3, 4)
    with Computation(MEAN[2], ct.Grid(y=3, x=4), u=field, comm=SERIAL, devices="reference") as run:
        assert np.array_equal(run.gather("u"), field) and np.array_equal(run.gather(0), field)
        assert np.array_equal(run.u.get(), field) and np.array_equal(run.u.get("all"), field)
        run.u.save(tmp_path / "u.npy")
        run.u.set(7)
        assert np.array_equal(run.u, np.full((3, 4), 7))
        run.u.load(tmp_path / "u.npy")
        assert np.array_equal(run.u, field)
        run.u.set(lambda x: x)
        assert np.array_equal(run.u[1], [0.5, 1.5, 2.5, 3.5])
        run.u[...] = run.u[::-1]
        monkeypatch.setitem(sys.modules, "xarray", None)    # as where there is none
        with pytest.raises(ImportError, match=r"opencl-controllers\[xarray\]"):
            run.u.to_xarray()
        made = ModuleType("xarray")
        made.DataArray = lambda *args, **kwargs: (args, kwargs)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "xarray", made)
        (values,), words = run.u.to_xarray()
        assert np.array_equal(values, run.u)
        assert words["dims"] == ("y", "x") and words["name"] == "u"
        assert words["coords"]["y"].tolist() == [0.5, 1.5, 2.5]
    assert np.array_equal(np.load(tmp_path / "u.npy"), field)


def test_a_field_goes_through_xarray_and_back_whatever_the_order_of_axes() -> None:
    pytest.importorskip("xarray")
    field = np.arange(12.0).reshape(3, 4)
    with Computation(MEAN[2], ct.Grid(y=3, x=4), u=field, comm=SERIAL, devices="reference") as run:
        run.u.from_xarray(run.u.to_xarray().transpose("x", "y") * 2)
        assert np.array_equal(run.u, 2 * field)


def test_what_cannot_be_read_or_written_is_refused() -> None:
    with Computation(
        MEAN[2], (3, 4), dtype="uint8", u=1, comm=SERIAL, devices="reference", boundary="periodic"
    ) as run:
        for index, kind, words in (
            ((0, 0, 0), IndexError, "more than 2 axes"),
            (3, IndexError, "index 3 of axis 0 is not among its 3 cells"),
            ((slice(None), None), TypeError, "axis 1 is None.*np.asarray"),
            ([0, 1], TypeError, r"axis 0 is \[0, 1\].*np.asarray"),
            (np.ones((3, 5), bool), TypeError, "np.asarray"),
            (slice(None, None, 0), ValueError, "zero"),
        ):
            with pytest.raises(kind, match=words):
                run.u[index]
            with pytest.raises(kind, match=words):
                run.u[index] = 0
        with pytest.raises(ValueError, match=r"u: .*shape \(3,\) do not fit the cells \(4,\)"):
            run.u[0] = [1, 2, 3]
        with pytest.raises(ValueError, match=r"u: .*holds 300.*uint8 takes"):
            run.u[0, 1:] = [1, 300, 2]
        with pytest.raises(ValueError, match="u: .*holds 0.5"):
            run.u.set(lambda y, x: y)
        run.u.set(4)
        assert np.array_equal(run.u, np.full((3, 4), 4))
        run.u.load(lambda tile: tile.array.fill(1))
    with pytest.raises(RuntimeError, match="closed"):
        run.u[0]


JOB = """
import math
import numpy as np
import controllers as ct
from hitmap import default_communicator
comm = default_communicator()
mean = ct.Stencil.of("mean", [(-1, 1), (0, 0)], [1, 0, 1], 2)
right = np.random.default_rng(0).random((9, 7))
with ct.Computation(mean, (9, 7), u=right + comm.rank, devices="reference") as run:
    assert np.array_equal(run.u, right), "that of rank 0 counts"
    for index in (..., 3, (slice(None, None, -2), slice(1, 6, 3)), (-1, 0), slice(2, 2)):
        assert np.array_equal(run.u[index], right[index])
        right[index] = values = np.random.default_rng(1).random(right[index].shape)
        run.u[index] = values if comm.rank == 0 else 0
        assert np.array_equal(run.u, right)
    assert (run.u.get(1) is None) == (comm.rank != 1)
    assert np.array_equal(run.u.get("all"), right)
    w = run.u * 2 + right[0]
    run.u[1:-1] = np.where(run.u[2:] > 0.5, run.u[:-2], right[1:-1])
    assert np.array_equal(w, right * 2 + right[0])
    right[1:-1] = np.where(right[2:] > 0.5, right[:-2], right[1:-1])
    assert np.array_equal(run.u, right) and abs(run.u - 0.5).max() == abs(right - 0.5).max()
    assert run.u.argmin() == right.argmin() and run.u.sum() == math.fsum(right.flat)
    run.u.set(lambda y, x: 10 * y + x)
    assert np.array_equal(run.u[8], 85.5 + np.arange(7))
    calls = (
        lambda: np.asarray(run.u[comm.rank]),
        lambda: np.asarray(run.u[99 * comm.rank]),
        lambda: run.u.__setitem__(0, np.zeros(3 + 4 * comm.rank)),
        lambda: run.u.__setitem__(..., run.u * (1 + comm.rank)),
        lambda: (run.u + 1).sum() if comm.rank else run.u.sum(),
        lambda: run.u.set(comm.rank),
        lambda: run.u.set(lambda x: 1 / 0 if comm.rank else x),
        lambda: ct.Computation(mean, (9, 7), u=lambda x: 1 / 0 if comm.rank else x),
        lambda: ct.Computation(mean, (9, 7), u=np.zeros((9, 7 + comm.rank))),
    )
    for call in calls:
        try:
            call()
        except Exception as error:
            said = comm.gather(f"{type(error).__name__} {error}")
            if comm.rank == 0:
                print(*said, sep="\\n")
    run.u.set(0)
    run.run(1)
"""


@pytest.mark.whole
def test_ranks_read_and_write_together_and_fail_together() -> None:
    done = run_ranks(2, JOB)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    division = "rank 1: u: ZeroDivisionError: division by zero"
    right = [
        *["ValueError .*section must be the same on all ranks"] * 2,
        "ValueError rank 1: the index 99 of axis 0", "IndexError the index 99 of axis 0",
        *[r"ValueError rank 0: u: values of the shape \(3,\)"] * 2,
        *["ValueError .*write of .*numbers must be the same on all ranks"] * 2,
        *["ValueError .*sum of .*expression must be the same on all ranks"] * 2,
        *["ValueError .*initial must be the same on all ranks"] * 2,
        f"ValueError {division}", "ZeroDivisionError division by zero",
        f"ValueError {division}", "ZeroDivisionError division by zero",
        r"ValueError rank 1: u: an array for \(9, 7\)", r"ValueError u: an array for \(9, 7\)",
    ]  # fmt: skip
    assert len(said) == len(right), said
    for line, words in zip(said, right, strict=True):
        assert re.match(words, line), (words, line)
