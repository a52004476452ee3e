# SPDX-License-Identifier: MIT
"""Redistribution between random layouts: exact values, and not a cell more than must move."""
from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import random_domain, random_layout
from mpi_jobs import helpers_path, run_ranks

from hitmap import Layout, Redistribution, SerialCommunicator, Shape

SERIAL = SerialCommunicator()
DOMAIN = Shape.of_extent((12, 6))


def owners(layout: Layout) -> dict[tuple[int, ...], int]:
    """The place of every cell, looked up box by box."""
    return {
        cell: place
        for place, box in enumerate(layout.owned)
        for cell in product(*map(range, box.lower, box.upper))
    }


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_exactly_the_cells_that_change_place_or_rank_move(seed: int) -> None:
    rng = random.Random(seed)
    domain = random_domain(rng)
    old, new = (random_layout(rng, domain, rng.randint(1, 7)) for _ in range(2))
    old_ranks, new_ranks = (
        [rng.randrange(3) for _ in range(layout.n_places)] for layout in (old, new)
    )
    redistribution = Redistribution(old, new, old_ranks, new_ranks)
    before, after = owners(old), owners(new)
    seen = set()
    for move in (*redistribution.kept, *redistribution.moves):
        stays = move.source == move.target and move.ranks[0] == move.ranks[1]
        assert stays == (move in redistribution.kept)
        for cell in product(*map(range, move.box.lower, move.box.upper)):
            assert cell not in seen
            seen.add(cell)
            assert (before[cell], after[cell]) == (move.source, move.target)
            assert (old_ranks[move.source], new_ranks[move.target]) == move.ranks
    assert len(seen) == domain.n_cells
    homes = [
        ((before[cell], old_ranks[before[cell]]), (after[cell], new_ranks[after[cell]]))
        for cell in seen
    ]
    assert redistribution.n_cells_moved == sum(one != other for one, other in homes)
    assert redistribution.n_cells_sent == sum(one[1] != other[1] for one, other in homes)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(["f4", "u1", [("a", "f8"), ("b", "i2")]]))
def test_values_follow_their_cells_in_one_process(seed: int, dtype: object) -> None:
    rng = random.Random(seed)
    domain = random_domain(rng)
    old, new = (random_layout(rng, domain, rng.randint(1, 7)) for _ in range(2))
    whole = np.arange(domain.n_cells).astype("f8").astype(np.dtype(dtype)).reshape(domain.extent)
    parts = {p: whole[box.slices(domain.lower)].copy() for p, box in enumerate(old.owned)}
    redistribution = Redistribution(old, new, [0] * old.n_places, [0] * new.n_places)
    result = redistribution.apply(parts, SERIAL, whole.dtype)
    assert sorted(result) == list(range(new.n_places))
    for place, box in enumerate(new.owned):
        assert (result[place] == whole[box.slices(domain.lower)]).all()
        assert result[place].shape == box.extent
        assert not any(np.shares_memory(result[place], part) for part in parts.values())


def test_bands_that_shift_send_the_rows_between_old_and_new_cuts() -> None:
    old, new = Layout.bands(DOMAIN, 3), Layout.weighted(DOMAIN, [1, 2, 1])
    redistribution = Redistribution(old, new, [0, 0, 1], [0, 0, 1])
    assert str(redistribution) == (
        "place 0 -> 1: [3:4, 0:6], 6 cells\n"
        "place 2 -> 1 (rank 1 -> 0): [8:9, 0:6], 6 cells\n"
        "12 cells change place, 60 are kept"
    )
    assert (redistribution.n_cells_moved, redistribution.n_cells_sent) == (12, 6)


def test_nothing_moves_between_equal_layouts_unless_places_change_rank() -> None:
    layout = Layout.blocks(DOMAIN, 4)
    assert Redistribution(layout, layout, [0, 1, 2, 3], [0, 1, 2, 3]).moves == ()
    swapped = Redistribution(layout, layout, [0, 1, 2, 3], [0, 2, 1, 3])
    assert [(move.source, move.target, move.ranks) for move in swapped.moves] == [
        (1, 1, (1, 2)), (2, 2, (2, 1)),
    ]  # fmt: skip


def test_what_does_not_fit_is_refused() -> None:
    layout = Layout.bands(DOMAIN, 2)
    with pytest.raises(ValueError, match="same domain"):
        Redistribution(layout, Layout.bands(Shape.of_extent((12, 7)), 2), [0, 0], [0, 0])
    with pytest.raises(ValueError, match="2 places, got 1"):
        Redistribution(layout, layout, [0, 0], [0])
    redistribution = Redistribution(layout, layout, [0, 0], [0, 0])
    whole = np.zeros((6, 6))
    with pytest.raises(ValueError, match="place 1: an array .* needed"):
        redistribution.apply({0: whole}, SERIAL, "f8")
    with pytest.raises(ValueError, match="place 0: must have dtype float32"):
        redistribution.apply({0: whole, 1: whole}, SERIAL, "f4")
    with pytest.raises(ValueError, match="in 0..0, got 1"):
        Redistribution(layout, layout, [0, 1], [0, 0]).apply({}, SERIAL, "f4")


JOB = """
import random, sys
import numpy as np
from hitmap import Layout, Redistribution, Shape, default_communicator
from layout_strategies import random_domain, random_layout

class Counted:  # a communicator that counts the bytes it sends
    def __init__(self, comm):
        self.comm, self.nbytes, self.largest = comm, 0, 0
    def __getattr__(self, name):
        return getattr(self.comm, name)
    def Send(self, buf, dest, tag=0):
        self.nbytes, self.largest = self.nbytes + buf.nbytes, max(self.largest, buf.nbytes)
        self.comm.Send(buf, dest, tag)

comm = Counted(default_communicator())
assert comm.size == 3
for seed in range(120):
    rng = random.Random(seed)
    domain = random_domain(rng)
    layouts = [random_layout(rng, domain, rng.randint(1, 7)) for _ in range(2)]
    ranks = [[rng.randrange(3) for _ in layout.owned] for layout in layouts]
    old, new = layouts
    dtype = np.dtype(rng.choice(["f4", "i2", "f8"]))
    limit = rng.choice([1, 20, 100, 2**30])
    whole = np.arange(domain.n_cells).astype(dtype).reshape(domain.extent)
    parts = {
        place: whole[box.slices(domain.lower)].copy()
        for place, box in enumerate(old.owned) if ranks[0][place] == comm.rank
    }
    comm.nbytes = comm.largest = 0
    redistribution = Redistribution(old, new, *ranks)
    result = redistribution.apply(parts, comm, dtype, message_nbytes=limit)
    assert sorted(result) == [p for p, rank in enumerate(ranks[1]) if rank == comm.rank]
    for place, part in result.items():
        assert (part == whole[new.owned[place].slices(domain.lower)]).all(), (seed, place)
    assert sum(comm.allgather(comm.nbytes)) == redistribution.n_cells_sent * dtype.itemsize
    assert comm.largest <= max(limit, dtype.itemsize)

layout = Layout.bands(Shape.of_extent((12, 6)), 3)
same = Redistribution(layout, layout, [0, 1, 2], [0, 1, 2])
odd = Redistribution(layout, layout, [0, 1, 2], [0, 1, 2 - (comm.rank == 2)])
for call in (
    lambda: same.apply({comm.rank: np.zeros((4, 6 - (comm.rank == 1)))}, comm, "f8"),
    lambda: odd.apply({}, comm, "f8"),
):
    try:
        call()
    except ValueError as error:
        assert len(set(comm.allgather(str(error)))) == 1
        if comm.rank == 0:
            print(error)
"""


def test_random_layouts_on_three_ranks_send_the_cells_that_change_rank_and_no_more() -> None:
    job = run_ranks(3, JOB, env=helpers_path())
    assert job.returncode == 0, job.stderr
    wrong_part, odd_ranks = job.stdout.splitlines()
    assert wrong_part.startswith("rank 1: place 1: must have the extent (4, 6)")
    assert "layouts, ranks and dtype must be the same on all ranks" in odd_ranks
