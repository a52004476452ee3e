# SPDX-License-Identifier: MIT
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mpi_jobs import run_ranks

from hitmap import Layout, SerialCommunicator, Shape, gather, scatter

SERIAL = SerialCommunicator()
DOMAIN = Shape((2, -1, 0), (9, 4, 3))
WHOLE = np.arange(DOMAIN.n_cells, dtype="f8").reshape(DOMAIN.extent)


@pytest.mark.parametrize(
    "layout",
    [Layout.bands(DOMAIN, 3), Layout.bands(DOMAIN, 9), Layout.blocks(DOMAIN, 6)],
    ids=["bands", "places without cells", "blocks"],
)
def test_gather_undoes_scatter_in_one_process(layout: Layout) -> None:
    ranks = [0] * layout.n_places
    parts = scatter(WHOLE, layout, ranks, SERIAL)
    for place, box in enumerate(layout.owned):
        assert (parts[place] == WHOLE[box.slices(DOMAIN.lower)]).all()
        assert parts[place].shape == box.extent
        assert not np.shares_memory(parts[place], WHOLE)
    whole = gather(parts, layout, ranks, SERIAL, "f8")
    assert whole is not None and (whole == WHOLE).all()


def test_gather_fills_a_file_in_place(tmp_path: Path) -> None:
    layout = Layout.bands(DOMAIN, 2)
    out = np.lib.format.open_memmap(
        tmp_path / "whole.npy", mode="w+", dtype="f8", shape=DOMAIN.extent
    )
    parts = scatter(WHOLE, layout, [0, 0], SERIAL)
    assert gather(parts, layout, [0, 0], SERIAL, "f8", out=out) is out
    assert (np.load(tmp_path / "whole.npy", mmap_mode="r") == WHOLE).all()


def test_arrays_that_do_not_fit_are_refused() -> None:
    layout = Layout.bands(DOMAIN, 2)
    parts = scatter(WHOLE, layout, [0, 0], SERIAL)
    with pytest.raises(ValueError, match=r"extent \(7, 5, 3\).*got \(7, 5\)"):
        scatter(WHOLE[:, :, 0], layout, [0, 0], SERIAL)
    with pytest.raises(ValueError, match="needed, got None"):
        scatter(None, layout, [0, 0], SERIAL)
    with pytest.raises(ValueError, match="dtype object"):
        scatter(WHOLE.astype(object), layout, [0, 0], SERIAL)
    with pytest.raises(ValueError, match="place 1: must have dtype float32, got float64"):
        gather({0: parts[0].astype("f4"), 1: parts[1]}, layout, [0, 0], SERIAL, "f4")
    with pytest.raises(ValueError, match="place 1: an array .* needed"):
        gather({0: parts[0]}, layout, [0, 0], SERIAL, "f8")
    with pytest.raises(ValueError, match="out: must have the extent"):
        gather(parts, layout, [0, 0], SERIAL, "f8", out=np.zeros(3))


def test_each_place_needs_a_rank_that_exists() -> None:
    with pytest.raises(ValueError, match="2 places, got 1"):
        scatter(WHOLE, Layout.bands(DOMAIN, 2), [0], SERIAL)
    with pytest.raises(ValueError, match="in 0..0, got 1"):
        scatter(WHOLE, Layout.bands(DOMAIN, 2), [0, 1], SERIAL)


JOB = """
import numpy as np
from hitmap import Layout, Shape, default_communicator, gather, scatter
comm = default_communicator()
assert comm.size == 3
domain = Shape((2, -1, 0), (9, 4, 3))
for dtype in ("f4", "i2", [("a", "f8"), ("b", "u1")]):
    whole = np.arange(domain.n_cells).astype("f8").astype(np.dtype(dtype))
    whole = whole.reshape(domain.extent)
    for layout in (Layout.bands(domain, 9), Layout.blocks(domain, 6), Layout.bands(domain, 1)):
        ranks = [place * 2 % 3 for place in range(layout.n_places)]
        for root in (0, 2):
            for nbytes in (1, 20, 100, 2**30):
                given = whole if comm.rank == root else None
                parts = scatter(given, layout, ranks, comm, root, message_nbytes=nbytes)
                assert sorted(parts) == [p for p, rank in enumerate(ranks) if rank == comm.rank]
                for place, part in parts.items():
                    assert (part == whole[layout.owned[place].slices(domain.lower)]).all()
                got = gather(parts, layout, ranks, comm, dtype, root, message_nbytes=nbytes)
                assert (got is not None) == (comm.rank == root)
                assert got is None or (got == whole).all()
layout = Layout.bands(domain, 3)
for call in (
    lambda: scatter(whole[1:] if comm.rank == 0 else None, layout, [0, 1, 2], comm),
    lambda: scatter(whole, layout, [0, 1, 2 if comm.rank < 2 else 0], comm),
    lambda: gather({comm.rank: np.zeros(comm.rank)}, layout, [0, 1, 2], comm, "f8"),
):
    try:
        call()
    except ValueError as error:
        assert len(set(comm.allgather(str(error)))) == 1
        if comm.rank == 0:
            print(error)
"""


def test_scatter_and_gather_in_messages_of_any_length() -> None:
    job = run_ranks(3, JOB)
    assert job.returncode == 0, job.stderr
    wrong_extent, odd_ranks, wrong_parts = job.stdout.splitlines()
    assert "rank 0: the whole array: must have the extent (7, 5, 3)" in wrong_extent
    assert "layout, ranks and root must be the same on all ranks" in odd_ranks
    assert "rank 2 has" in odd_ranks
    assert all(f"rank {rank}: place {rank}: must have" in wrong_parts for rank in range(3))
