# SPDX-License-Identifier: MIT
"""Cuts that move within the room of tiles: nothing is allocated, and the bits stay."""
from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from random_programs import random_program
from sample import sample
from timed_devices import timed_devices, without_timed_devices

from controllers import Computation, Stencil, reference_run
from controllers.kernel.crash import labelled
from controllers.memory import tile
from controllers.placement import relocation
from controllers.run import bound
from hitmap import SerialCommunicator

SERIAL = SerialCommunicator()
MEAN = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 2, 1, 0, 1, 0], 6).program("float32")
FIELD = np.random.default_rng(0).random((128, 24), np.float32)


@pytest.fixture(autouse=True)
def devices() -> Iterator[None]:
    timed_devices({"swift": 1e-9, "slow": 1e-9})
    yield
    without_timed_devices()


def mean(words: list[str], **options: object) -> Computation:
    return Computation(
        MEAN, FIELD, devices=words, weights=[1, 1], comm=SERIAL,
        **{"balance": "start", **options},  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize("words", [["swift", "slow"], ["cpu/1,1"]])
@pytest.mark.parametrize("steps", sample([1, 4], 2))
def test_a_small_move_allocates_and_launches_nothing(
    words: list[str], steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mean(words, steps_per_launch=steps) as run:
        run.run(13)
        held = [one.ledger.on_device for one in run._engine._executors]
        tiles, launches = dict(run._engine.tiles), list[str]()
        monkeypatch.setattr(bound, "labelled", lambda name, call: (
            launches.append(name), labelled(name, call))[1])  # fmt: skip
        for weights, is_near in (([67, 61], True), ([60, 68], True), ([100, 28], False)):
            run.redistribute(weights=weights)
            assert [box.extent[0] for box in run.layout.owned] == weights
            assert (dict(run._engine.tiles) == tiles) == is_near == (not launches)
            if is_near:
                assert [one.ledger.on_device for one in run._engine._executors] == held
            run.run(9)
            assert np.array_equal(run.gather(), reference_run(MEAN, FIELD, run.step, (False,) * 2))


def test_only_what_is_balanced_has_room_and_only_where_it_fits() -> None:
    words, alike = ["swift", "slow"], {"steps_per_launch": 1}
    with mean(words, balance="off", **alike) as run:
        needed = max(one.ledger.on_device for one in run._engine._executors)
    for options, room in (
        ({}, 32), ({"balance": "off"}, 0), ({"memory_cap": 8 * needed}, 4),
        ({"memory_cap": needed + 600}, 0),
    ):  # fmt: skip
        with mean(words, **alike, **options) as run:
            rows = sum(run.plan.geometry("u", place).box.extent[0] for place in (0, 1))
            assert run.plan.room == room and rows == 128 + 2 + 2 * room
            assert (f"room for cuts to move by {room} rows" in run.explain()) == bool(room)
            run.redistribute(weights=[66, 62])
            run.run(5)
            assert np.array_equal(run.gather(), reference_run(MEAN, FIELD, 5, (False,) * 2))


def test_the_host_has_no_memory_for_room_until_cuts_move_there(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tile.aligned
    monkeypatch.setattr(tile, "aligned", lambda *how: np.full_like(made(*how), 7))
    with mean(["cpu/1,1"]) as run:
        for key, one in run._engine.tiles.items():
            assert one.host is not None
            rows = one.view(one.geometry.box)
            room = [bool((row == 7).all()) for row in rows]
            assert sum(room) == 32 and (rows == 7).sum() == 32 * rows.shape[1]
            assert room == sorted(room, reverse=key.place == 1), "on the side of the other place"


def test_cuts_that_come_back_are_as_good_as_before() -> None:
    """Room is counted from where tiles were allocated; a plan on tiles of a plan has no others."""
    with mean(["swift", "slow"], halo_width="auto") as run:
        for weights in ([66, 62], [62, 66], [67, 61], [64, 64]):
            run.redistribute(weights=weights)
            root = run.plan.root
            assert root.tiles_of is None and root.layout.owned[0].extent[0] == 64
            run.run(40)
        assert np.array_equal(run.gather(), reference_run(MEAN, FIELD, 160, (False,) * 2))


def moved(number: int, comm: object, devices: list[str], **options: object) -> int:
    """How many of the moves of a random program on random cuts are within room; bits are checked.
    """
    case, rng = random_program(number), random.Random(number)
    boundary = ["periodic" if wraps else "fixed" for wraps in case.periodic]
    n_places = 2
    with Computation(
        case.program, case.extent, boundary=boundary, devices=devices, init=case.arrays,
        weights=[1] * n_places, balance="start", comm=comm,    # type: ignore[arg-type]
        **options,      # type: ignore[arg-type]
    ) as run:  # fmt: skip
        within = 0
        for _ in range(4):
            run.run(rng.randrange(1, 4))
            tiles = run.plan.root
            run.redistribute(weights=[rng.uniform(0.8, 1.2) for _ in range(n_places)])
            within += run.plan.root is tiles
        run.run(2)
        expected = reference_run(case.program, case.arrays, run.step, case.periodic)
        for name, values in expected.items():
            found = run[name].gather()
            assert found is None or np.array_equal(found, values, equal_nan=True), name
        return within


@pytest.mark.parametrize("number", sample(range(100), 12))
def test_random_programs_go_on_with_the_same_bits(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relocation, "ROOMS", ((1.0, 1.0),))
    within = moved(number, SERIAL, ["swift", "slow"])
    case = random_program(number)
    assert within or case.program.n_axes == 1 or case.extent[0] < 8


@pytest.mark.parametrize("number", sample(range(200, 240), 5))
def test_random_programs_go_on_in_memory_of_a_device(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where rows are padded, and all fields lie alike."""
    monkeypatch.setattr(relocation, "ROOMS", ((1.0, 1.0),))
    moved(number, SERIAL, ["cpu/1,1"], zero_copy=False)


RANKS = """
import sys
from hitmap import default_communicator
from controllers.placement import relocation
from timed_devices import timed_devices
from test_room import moved
relocation.ROOMS = ((1.0, 1.0),)
timed_devices({"swift": 1e-9, "slow": 1e-9})
comm = default_communicator()
print(sum(moved(int(number), comm, ["swift", "slow"][comm.rank:][:1]) for number in sys.argv[1:]))
"""


@pytest.mark.parametrize("numbers", sample([range(n, n + 8) for n in range(100, 140, 8)], 5))
def test_random_programs_go_on_on_two_ranks(numbers: range, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(RANKS)
    job = run_ranks(
        2, [str(tmp_path / "job.py"), *map(str, numbers)], env=helpers_path(Path(__file__).parent)
    )
    assert job.returncode == 0, job.stderr
    first, second = map(int, job.stdout.split())
    assert first == second > len(numbers)
