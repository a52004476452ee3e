# SPDX-License-Identifier: MIT
"""A computation that is divided in any way, and otherwise half-way, computes the same bits."""
from __future__ import annotations

import gc
import os
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from divided import LOPSIDED, two_cores
from mpi_jobs import run_ranks
from sample import sample

from controllers import Computation, TileView, reference_run
from controllers.device import find_devices, usable
from hitmap import SerialCommunicator, Shape

PROGRAM = LOPSIDED.program("float32")
FIELD = np.random.default_rng(0).random((33, 41), np.float32)
BOUNDARY = ("fixed", "periodic")
SERIAL = SerialCommunicator()

TWO = [
    pytest.param(["reference", "reference"], True, id="reference"),
    pytest.param("cpu:0/1,1", True, id="host memory", marks=two_cores),
    pytest.param(
        "cpu:0/1,1", False, id="device memory", marks=[two_cores, pytest.mark.whole]
    ),
]


def computation(devices: Any = "reference", **options: Any) -> Computation:
    return Computation(
        PROGRAM, FIELD.shape, boundary=BOUNDARY, devices=devices, comm=SERIAL, **options
    )


def expected(n_steps: int) -> np.ndarray:
    return reference_run(PROGRAM, FIELD, n_steps, (False, True))


class Traffic:
    """Counts the cells that executors move between host and device."""

    def __init__(self, run: Computation, monkeypatch: pytest.MonkeyPatch) -> None:
        self.n_read = self.n_written = 0
        for executor in dict.fromkeys(run.placement.executors.values()):
            monkeypatch.setattr(executor, "move_from", self._reading(executor.move_from))
            monkeypatch.setattr(executor, "move_to", self._writing(executor.move_to))

    def _reading(self, move_from: Any) -> Any:
        def counted(tile: object, cells: Shape) -> Any:
            self.n_read += cells.n_cells
            return move_from(tile, cells)

        return counted

    def _writing(self, move_to: Any) -> Any:
        def counted(tile: object, cells: Shape, values: np.ndarray) -> None:
            self.n_written += cells.n_cells
            move_to(tile, cells, values)

        return counted


@pytest.mark.parametrize(("devices", "zero_copy"), [
    TWO[0], pytest.param(*TWO[1].values, id=TWO[1].id, marks=[two_cores, pytest.mark.whole]), TWO[2]
])  # fmt: skip
def test_a_run_goes_on_as_if_undisturbed_and_only_the_difference_moves(
    devices: Any, zero_copy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with computation(devices, zero_copy=zero_copy) as run:
        run.scatter(FIELD)
        traffic = Traffic(run, monkeypatch)
        n_steps = 0
        for count, division in (
            (3, {"weights": [1, 2]}),               # odd: the other time level is the newest
            (2, {"partition": "weighted-blocks", "weights": [3, 1], "align": 4}),
            (1, {"partition": "bands"}),
            (0, {"weights": [0, 1]}),
            (4, {"partition": "blocks"}),
        ):
            run.run(count)
            n_steps += count
            traffic.n_read = traffic.n_written = 0
            moves = run.redistribute(**division)
            assert traffic.n_read == traffic.n_written == moves.n_cells_moved
            assert np.array_equal(run.gather(), expected(n_steps))
        run.run(5)
        assert np.array_equal(run.gather(), expected(n_steps + 5))
        assert run.report().steps == n_steps + 5


def test_the_first_redistribution_moves_the_rows_between_the_cuts() -> None:
    with computation(["reference"] * 2) as run:
        moves = run.redistribute(weights=[1, 2])
        assert str(moves) == (
            "place 0 -> 1: [11:17, 0:41], 246 cells\n246 cells change place, 1107 are kept"
        )


def test_places_of_one_controller_exchange_cells_without_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with computation("cpu:0", zero_copy=False, places_per_controller=3) as run:
        run.scatter(FIELD)
        run.run(2)
        traffic = Traffic(run, monkeypatch)
        assert run.redistribute(partition="blocks").n_cells_moved > 0
        assert run.redistribute(partition="cyclic", block=(10, 41)).n_cells_moved > 0
        assert (traffic.n_read, traffic.n_written) == (0, 0)
        run.run(3)
        assert np.array_equal(run.gather(), expected(5))


@pytest.mark.parametrize(("devices", "zero_copy"), TWO)
def test_the_old_tiles_are_given_back_at_once(devices: Any, zero_copy: bool) -> None:
    gc.disable()
    try:
        with computation(devices, zero_copy=zero_copy) as run:
            run.run(1)
            tiles = [weakref.ref(tile) for tile in run._engine.tiles.values()]
            assert all(tile() is not None for tile in tiles)
            run.redistribute(weights=[1, 2])
            assert [tile() for tile in tiles] == [None] * 4
    finally:
        gc.enable()


def test_loading_after_a_redistribution_starts_anew() -> None:
    with computation(["reference"] * 2) as run:
        run.run(3)
        run.redistribute(weights=[1, 3])
        run.scatter(FIELD)
        run.run(2)
        assert np.array_equal(run.gather(), expected(2))


def test_a_division_that_is_refused_leaves_the_computation_as_it_is() -> None:
    with computation(["reference"] * 2) as run:
        run.scatter(FIELD)
        run.run(2)
        before = run.layout
        for wrong in ({"weights": [1]}, {"partition": "cyclic"}, {"align": 0}, {"block": 3}):
            with pytest.raises(ValueError):
                run.redistribute(**wrong)  # type: ignore[arg-type]
        run.run(1)
        assert run.layout is before
        assert np.array_equal(run.gather(), expected(3))


def test_the_report_counts_places_since_they_are_as_they_are() -> None:
    with computation(["reference"] * 2) as run:
        run.run(4)
        run.redistribute(weights=[0, 1])
        report = run.report()
        assert (report.steps, report.seconds > 0) == (4, True)
        assert [place.compute_s for place in report.places] == [0, 0]
        assert [place.cells for place in report.places] == [0, FIELD.size]
        run.run(2)
        report = run.report()
        assert report.steps == 6
        assert [place.compute_s > 0 for place in report.places] == [False, True]


@pytest.mark.parametrize(("devices", "zero_copy"), TWO)
def test_blocks_are_dealt_to_the_controllers_in_turn(devices: Any, zero_copy: bool) -> None:
    with computation(devices, zero_copy=zero_copy, partition="cyclic", block=(9, 16)) as run:
        assert run.layout.n_places == 12
        assert [where.controller for where in run.placement.locations] == [0, 1] * 6
        run.scatter(FIELD)
        run.run(6)
        seen = np.zeros_like(FIELD)

        def see(tile: TileView) -> None:
            seen[tile.box.slices((0, 0))] += tile.array

        run.visit(see)
        assert np.array_equal(seen, expected(6))
        assert np.array_equal(run.gather(), expected(6))
        assert [place.place for place in run.report().places] == list(range(12))


def test_a_cyclic_division_needs_a_block_and_takes_no_align() -> None:
    for wrong, match in (
        ({"partition": "cyclic"}, "needs it; got partition 'cyclic' with block None"),
        ({"partition": "bands", "block": 4}, "got partition 'bands' with block 4"),
        ({"partition": "cyclic", "block": 4, "align": 2}, "multiples of the block already"),
        ({"partition": "cyclic", "block": 4, "weights": [1]}, "weights belong to"),
    ):
        with pytest.raises(ValueError, match=match):
            computation(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at most 2048 blocks.*use larger ones"):
        Computation(PROGRAM, (1000, 1000), devices="reference", comm=SERIAL,
                    partition="cyclic", block=1)  # fmt: skip


def test_cuts_are_at_multiples_of_align() -> None:
    with computation(["reference"] * 2, align=8) as run:
        assert [box.extent[0] for box in run.layout.owned] == [16, 17]
    weights = {"partition": "weighted-blocks", "weights": [1, 2]}
    with computation(["reference"] * 2, align=(8, 1), **weights) as run:
        assert {box.lower[0] % 8 for box in run.layout.owned} == {0}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def test_a_field_is_saved_and_loaded_whatever_the_division(folder: Path) -> None:
    np.save("in.npy", np.asfortranarray(FIELD))
    with computation(["reference"] * 2, partition="cyclic", block=(9, 50)) as run:
        run.load_file("in.npy")
        run.run(3)
        run.save("out.npy")
    assert np.array_equal(np.load("out.npy"), expected(3))
    assert np.load("out.npy").dtype == np.float32
    assert sorted(os.listdir()) == ["in.npy", "out.npy"]


def test_a_file_that_does_not_fit_is_refused(folder: Path) -> None:
    np.save("wide.npy", np.zeros((33, 42), np.float32))
    np.save("large.npy", np.full(FIELD.shape, 1e300))
    Path("text.npy").write_text("no array", encoding="utf-8")
    with computation() as run:
        for name, match in (
            ("wide.npy", r"wide.npy: has \(33, 42\) cells, the field \(33, 41\)"),
            ("large.npy", r"large.npy: cell \(0, 0\) holds 1e\+300, but float32 takes .* 3.4e\+38"),
            ("text.npy", "text.npy: "),
            ("gone.npy", "gone.npy: No such file"),
        ):
            with pytest.raises(ValueError, match=match):
                run.load_file(name)
        run.scatter(FIELD)
        with pytest.raises(OSError, match="no/out.npy was not written"):
            run.save("no/out.npy")


JOB = """
import os, sys
import numpy as np
from controllers import Computation, Stencil, reference_run
from hitmap import default_communicator

class Counted:  # a communicator that counts the bytes it sends
    def __init__(self, comm):
        self.comm, self.nbytes = comm, 0
    def __getattr__(self, name):
        return getattr(self.comm, name)
    def Send(self, buf, dest, tag=0):
        self.nbytes += buf.nbytes
        self.comm.Send(buf, dest, tag)

comm = Counted(default_communicator())
stencil = Stencil.of("lopsided", [(-1, 1), (-1, 2)], [1, 2, 1, 0, 2, 4, 2, 1, 2, 1, 1, 3], 20)
program = stencil.program("float32")
field = np.random.default_rng(0).random((33, 41), np.float32)
def check(run, n_steps):
    whole = run.gather(root=1)
    assert (whole is None) == (comm.rank == 0)
    assert whole is None or np.array_equal(whole, expected[n_steps])
expected = {n: reference_run(program, field, n, (False, True)) for n in (0, 3, 7, 9)}
if comm.rank == 0:
    np.save("in.npy", field)
comm.Barrier()
for zero_copy in WAYS:
    with Computation(program, field.shape, boundary=("fixed", "periodic"), devices="cpu", comm=comm,
                     partition="cyclic", block=(9, 16), zero_copy=zero_copy) as run:
        assert run.placement.ranks == (0, 1) * 6
        run.load_file("in.npy")
        check(run, 0)
        run.run(3)
        check(run, 3)
        visited = []
        run.visit(visited.append)
        assert [tile.place for tile in visited] == list(range(comm.rank, 12, 2))
        assert [place.rank for place in run.report().places] == [0, 1] * 6
        for n_steps, division in (
            (3, dict(partition="weighted-blocks", weights=[1, 2])),
            (7, dict(partition="bands", align=4)),
            (9, dict(partition="cyclic", block=(33, 3))),
        ):
            run.run(n_steps - run.report().steps)
            comm.nbytes = 0
            moves = run.redistribute(**division)
            assert sum(comm.allgather(comm.nbytes)) == 4 * moves.n_cells_sent
            check(run, n_steps)
        comm.nbytes = 0
        run.save("out.npy")
        assert comm.nbytes == 0
        assert np.array_equal(np.load("out.npy"), expected[9])
        comm.Barrier()
        try:
            run.redistribute(weights=[1, 1 + comm.rank])
        except ValueError as error:
            texts = comm.allgather(str(error))
            if comm.rank == 0:
                print(texts[0] == texts[1], error)
        try:
            run.load_file("gone.npy")
        except ValueError as error:
            texts = comm.allgather(str(error))
            if comm.rank == 0:
                print(texts[0] == texts[1], error)
"""


@pytest.mark.whole
@pytest.mark.parametrize("ways", sample([[True], [False, True]], 2), ids=str)
def test_two_ranks_hold_blocks_in_turn_redistribute_and_share_files(
    folder: Path, ways: list[bool]
) -> None:
    job = run_ranks(2, JOB.replace("WAYS", repr(ways)))
    assert job.returncode == 0, job.stderr
    odd_layout, gone, *again = job.stdout.splitlines()
    assert odd_layout.startswith("True redistribute of computation 1 (lopsided): weights must be ")
    assert odd_layout.endswith("rank 0 has (1, 1), rank 1 has (1, 2)")
    lost = "gone.npy: No such file or directory"
    assert gone == f"True rank 0: {lost}; rank 1: {lost}"
    second = [odd_layout.replace("computation 1", "computation 2"), gone]
    assert again == second[: 2 * (len(ways) - 1)]


@pytest.mark.parametrize(("zero_copy", "weights"), sample(product(
    [True, False], [None, [1, 3]]
), 3))  # fmt: skip
def test_a_field_over_the_largest_allocation_is_held_as_several_places(
    zero_copy: bool, weights: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [replace(d, max_allocation_bytes=1500) for d in find_devices() if d.kind == "cpu"]
    monkeypatch.setattr(usable, "find_devices", lambda: small)
    options = {"weights": weights, "places_per_controller": 2, "zero_copy": zero_copy}
    with computation("cpu:0", **options) as run:
        run.scatter(FIELD)
        run.run(4)
        assert np.array_equal(run.gather(), expected(4))
        tiles = [run.plan.geometry("u", place).n_elements * 4 for place in run.plan.places]
        assert len(tiles) > 2 and max(tiles) <= 1500 < FIELD.nbytes
        cells = [owned.n_cells for owned in run.layout.owned]
        half = len(cells) // 2
        share = sum(cells[:half]) / FIELD.size
        assert share == pytest.approx(0.25 if weights else 0.5, abs=0.05)


@pytest.mark.parametrize("extent", [(2**31, 2**29), (2**60, 1), (1, 2**60)])
def test_a_field_that_no_number_of_places_can_hold_is_refused_at_once(
    extent: tuple[int, ...],
) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match="at most 2048 places; .*smaller field"):
        Computation(PROGRAM, extent, devices="cpu", comm=SERIAL)
    assert time.process_time() - start < 10


def test_a_row_over_the_largest_allocation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    small = [replace(d, max_allocation_bytes=100) for d in find_devices() if d.kind == "cpu"]
    monkeypatch.setattr(usable, "find_devices", lambda: small)
    with pytest.raises(ValueError, match="at most 100 bytes.*'blocks'"):
        computation("cpu:0")
