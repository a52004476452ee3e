# SPDX-License-Identifier: MIT
"""Halos exchanged by hitmap alone, against the array of the whole domain."""
from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from halo_model import Model, cells
from layout_strategies import random_domain, random_layout
from mpi_jobs import helpers_path, run_ranks
from sample import sample

from hitmap import (
    Communicator,
    HaloPattern,
    Layout,
    SerialCommunicator,
    Shape,
    agree,
    default_communicator,
)

SERIAL = SerialCommunicator()
DTYPES = ("f4", "i2", "f8", [("a", "f8"), ("b", "i2")])
BANDS = Layout.bands(Shape.of_extent((6, 4)), 3)
STAR = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]


def numbered(n_cells: int, first: int, dtype: object) -> npt.NDArray[np.generic]:
    return np.arange(first, first + n_cells).astype("f8").astype(np.dtype(dtype))


def check_random_exchange(seed: int, comm: Communicator) -> None:
    """Two exchanges of one random pattern; the places lie on random ranks, some have none."""
    rng = random.Random(seed)
    domain = random_domain(rng)
    layout = random_layout(rng, domain, rng.randint(1, 5))
    reach = {1: 20, 2: 6, 3: 3, 4: 2}[domain.n_axes]
    offsets = [
        tuple(rng.choice([0, 1, -1, rng.randint(-reach, reach)]) for _ in domain.extent)
        for _ in range(rng.randint(0, 5))
    ]
    periodic = tuple(rng.random() < 0.5 for _ in domain.extent)
    pattern = HaloPattern(layout, offsets, periodic)
    model = Model(layout, offsets, periodic, domain)
    holds = [rng.randrange(comm.size) for _ in layout.owned]
    dtype, most = rng.choice(DTYPES), rng.choice([1, 40, 2**30])
    arrays = {
        place: np.full(pattern.full(place).extent, np.zeros((), dtype), dtype)
        for place, rank in enumerate(holds)
        if rank == comm.rank and (not layout.owned[place].empty or rng.random() < 0.5)
    }
    for first in (1, 1000):
        whole = numbered(domain.n_cells, first, dtype).reshape(domain.extent)
        for place, array in arrays.items():
            owned, origin = layout.owned[place], pattern.full(place).lower
            array[owned.slices(origin)] = whole[owned.slices(domain.lower)]
        pattern.exchange(arrays, comm, message_nbytes=most)
        for place, array in arrays.items():
            origin = pattern.full(place).lower
            for cell in (*model.needed[place], *cells(layout.owned[place])):
                at = tuple(i - lo for i, lo in zip(cell, origin, strict=True))
                of = zip(model.wrapped(cell), domain.lower, strict=True)
                assert array[at] == whole[tuple(i - lo for i, lo in of)], (seed, place, cell)


def wrong_calls(comm: Communicator) -> dict[str, Callable[[], None]]:
    """What must be refused on all ranks, by a part of the message."""
    pattern = HaloPattern(BANDS, STAR, (True, False))
    full = [pattern.full(place) for place in range(3)]
    held = [place * comm.size // 3 for place in range(3)]
    last = comm.rank == comm.size - 1
    good = {p: np.zeros(full[p].extent) for p, rank in enumerate(held) if rank == comm.rank}
    other = HaloPattern(BANDS, STAR, (True, False), updated=Shape((0, 1), (6, 3)))

    def changed(place: int, array: object) -> dict[int, npt.NDArray[np.float64]]:
        return {**good, place: array} if held[place] == comm.rank else good  # type: ignore[dict-item]

    without = {place: array for place, array in good.items() if place != 2}
    fixed = np.zeros(full[2].extent)
    fixed.flags.writeable = False
    refused = {
        "place 2: an array (4, 4) is needed": lambda: pattern.exchange(without, comm),
        "place 2: must have the extent (4, 4)": lambda: pattern.exchange(
            changed(2, np.zeros((2, 4))), comm
        ),
        "place 1: a NumPy array (4, 4) is needed, got list": lambda: pattern.exchange(
            changed(1, [[0.0] * 4] * 4), comm
        ),
        "place 2: the array is read-only": lambda: pattern.exchange(changed(2, fixed), comm),
        "all arrays must be of one dtype": lambda: pattern.exchange(
            changed(0, np.zeros(full[0].extent, "f4")), comm
        ),
        "places are whole numbers in 0..2, got 3": lambda: pattern.exchange(
            {**good, 3: fixed} if last else good, comm
        ),
        "arrays: a dict {place: array} is expected, got list": lambda: pattern.exchange(
            [] if last else good, comm  # type: ignore[arg-type]
        ),
    }
    if comm.size > 1:
        refused["place 0 has an array on rank 0 and one on rank"] = lambda: pattern.exchange(
            {0: np.zeros(full[0].extent)}, comm
        )
        refused["the pattern must be the same on all ranks"] = lambda: (
            other if last else pattern
        ).exchange(good, comm)
        refused["all ranks must make the same collective calls"] = lambda: (
            pattern.exchange(good, comm) if last else agree(comm, "something else", 1)
        )
    return refused


def main() -> None:
    """The job of several ranks."""
    comm = default_communicator()
    for seed in range(60):
        check_random_exchange(seed, comm)
    for text, call in wrong_calls(comm).items():
        try:
            call()
        except ValueError as error:
            said = comm.allgather(str(error))
            assert text in said[0] and len(set(said)) == 1, (text, said)
        else:
            raise AssertionError(f"not refused: {text}")
    if comm.rank == 0:
        print("done on", comm.size)


@pytest.mark.parametrize("seed", range(60))
def test_random_patterns_in_one_process(seed: int) -> None:
    check_random_exchange(seed, SERIAL)


@pytest.mark.parametrize("n_ranks", sample([3, 2, 1], 3))
def test_random_patterns_and_wrong_calls_on_several_ranks(n_ranks: int) -> None:
    program = "import test_exchange; test_exchange.main()"
    job = run_ranks(n_ranks, ["-c", program], env=helpers_path(Path(__file__).parent))
    assert job.returncode == 0, job.stderr
    assert job.stdout == f"done on {n_ranks}\n"


@pytest.mark.parametrize("text", wrong_calls(SERIAL))
def test_what_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(ValueError) as raised:
        wrong_calls(SERIAL)[text]()
    assert text in str(raised.value)


def test_messages_leave_what_nobody_reads() -> None:
    pattern = HaloPattern(BANDS, [(-1, -1)], (False, False))
    arrays = {p: np.full(pattern.full(int(p)).extent, float(p)) for p in np.arange(3)}
    before = {p: array.copy() for p, array in arrays.items()}
    pattern.exchange(arrays)
    for place, array in arrays.items():
        changed = set(zip(*np.nonzero(array != before[place])))
        first_row = set(product([0], range(4)))
        assert changed <= first_row and (place == 0) == (not changed)
