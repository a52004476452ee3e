# SPDX-License-Identifier: MIT
"""Fields that do not fit their device run all the same: caps, what is chosen, refused and told."""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from divided import two_cores
from sample import sample

import controllers as ct
from controllers import Computation, MemoryCapError, Stencil, reference_run
from controllers.engine import binding, host_work
from controllers.memory.ledger import Ledger
from controllers.placement.chunk_model import least_chunks, least_skewed
from controllers.placement.placement import Placement
from controllers.plan import ChunkPlan, Location, Plan, SkewedPlan
from controllers.plan.chunks.chunk_size import traffic
from hitmap import Layout, Shape

CROSS = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
START = np.random.default_rng(0).random((60, 40), dtype=np.float32)
INTERNAL: dict[str, Any] = {"devices": "cpu", "zero_copy": False}
NEEDED = 2 * 60 * 40 * 4    # bytes of the field and its double


def expected(n_steps: int, periodic: bool = False) -> Any:
    return reference_run(CROSS, {"u": START}, n_steps, (periodic,) * 2)["u"]


@pytest.mark.parametrize(
    ("parts", "boundary"), sample(product([3, 2], ["fixed", "mirror", "periodic"]), 6)
)
def test_a_cap_of_a_part_of_the_field(parts: int, boundary: Any) -> None:
    start = np.random.default_rng(1).random((240, 100), dtype=np.float32)
    cap = 2 * start.nbytes // parts
    width = {"fixed": None, "periodic": 5, "mirror": 3}[boundary]
    with Computation(
        CROSS, start, boundary=boundary, memory_cap=cap, halo_width=width, **INTERNAL
    ) as run:  # fmt: skip
        assert isinstance(run.plan, ChunkPlan)
        for n_steps in (23, 1, 0, 6):
            run.run(n_steps)
        with Computation(CROSS, start, boundary=boundary, devices="reference") as whole:
            whole.run(30)
            assert np.array_equal(run.gather(), whole.gather())
        (device,) = run.report().devices
        assert device.peak_bytes <= cap


def test_what_fits_stays_on_its_device() -> None:
    with Computation(CROSS, START, **INTERNAL) as run:
        assert not isinstance(run.plan, ChunkPlan)


@pytest.mark.parametrize("slots", sample([2, 1, 3], 3))
def test_the_steps_of_a_pass_are_the_halo_width_and_may_change(slots: int) -> None:
    with Computation(CROSS, START, chunks=5, slots=slots, halo_width=6, **INTERNAL) as run:
        assert (run.halo_width, len(run.plan.places)) == (6, 5)
        run.run(8)
        run.use_halo_width(4)
        run.run(9)
        run.u.set(2 * run.gather())
        run.run(2)
        again = reference_run(CROSS, {"u": np.float32(2) * expected(17)}, 2, (False,) * 2)["u"]
        assert np.array_equal(run.gather(), again)


@pytest.mark.whole
@two_cores
@pytest.mark.parametrize(
    ("boundary", "cap"), [("periodic", 18_000), ("fixed", 18_000), ("mirror", 48_000)]
)
def test_devices_take_chunks_by_weights(boundary: Any, cap: int) -> None:
    """Each its own part, with a cap of its own; what they read of each other's comes by the host.
    """
    start = np.random.default_rng(2).random((240, 40), dtype=np.float32)
    with Computation(
        CROSS, start, boundary=boundary, devices="cpu/1,1", weights=[3, 1], memory_cap=cap,
        zero_copy=False, halo_width=6,
    ) as run:  # fmt: skip
        assert isinstance(run.plan, ChunkPlan)
        run.run(23)
        rows = [0, 0]
        for box, where in zip(run.layout.owned, run.placement.locations, strict=True):
            rows[where.controller] += box.extent[0]
        assert rows == [180, 60]
        with Computation(CROSS, start, boundary=boundary, devices="reference") as whole:
            whole.run(23)
            assert np.array_equal(run.gather(), whole.gather())
        assert all(one.peak_bytes <= cap for one in run.report().devices)


@pytest.mark.whole
@two_cores
@pytest.mark.parametrize("boundary", ["periodic", "fixed"])
def test_devices_take_blocks_of_chunks_in_turn(boundary: Any) -> None:
    """The chunks of each block are skewed by themselves."""
    start = np.random.default_rng(3).random((120, 40), dtype=np.float32)
    with Computation(
        CROSS, start, boundary=boundary, devices="cpu/1,1", partition="cyclic", block=(30, 40),
        zero_copy=False, chunks=2, halo_width=5,
    ) as run:  # fmt: skip
        assert isinstance(run.plan, SkewedPlan) and run.layout.n_places == 8
        run.run(13)
        right = reference_run(CROSS, {"u": start}, 13, (boundary == "periodic",) * 2)["u"]
        assert np.array_equal(run.gather(), right)


def test_looks_and_records_see_every_step() -> None:
    with Computation(CROSS, START, chunks=4, halo_width=4, **INTERNAL) as run:
        record = run.record("u", every=3)
        seen = [np.array(moment.u) for moment in run.steps(7, every=3)]
        assert [*record.steps] == [3, 6]
        for step, cells in zip((3, 6, 7), seen):
            assert np.array_equal(cells, expected(step))


def test_results_scalars_and_fields_that_are_only_read() -> None:
    @ct.step
    def heat(u: Any, k: Any, *, rate: float = 0.1) -> Any:
        laplace = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
        return {"u": u + rate * k * laplace, "total": ct.sum(u)}

    k = np.random.default_rng(1).random(START.shape, dtype=np.float32)
    found = []
    for options in ({"devices": "reference"}, {"chunks": 6, "halo_width": 3, **INTERNAL}):
        with Computation(
            heat, START.shape, u=START, k=k, boundary=ct.keep(), **options
        ) as run:  # fmt: skip
            run.run(5)
            results = run.run(5, rate=0.2)
            found.append((run.u.gather(), results["total"]))
    assert np.array_equal(found[0][0], found[1][0]) and found[0][1] == found[1][1]


def test_files_are_loaded_and_saved_by_chunks(tmp_path: Path) -> None:
    np.save(tmp_path / "start.npy", START)
    with Computation(CROSS, START.shape, chunks=4, **INTERNAL) as run:
        run.u.set(tmp_path / "start.npy")
        run.run(5)
        run.save(tmp_path / "end.npy")
    assert np.array_equal(np.load(tmp_path / "end.npy"), expected(5))


def test_what_is_explained() -> None:
    with Computation(CROSS, START, memory_cap=NEEDED // 3, halo_width=2, **INTERNAL) as run:
        text = run.explain()
        moved = traffic(run.plan)
    assert "chunks: 8 skewed, 4 rows kept for the next one, 1 parcel each way on each" in text
    assert "pass of 2 steps in 1 launch" in text and "so that the link should be" in text
    assert "at least 8 of each place are needed\n" in text
    assert "field u: split, up and down, each row once, 1 image on the host" in text
    assert "more than the least possible" in text
    assert moved.up == moved.down == 4 * 40 * 60
    assert moved.least == 4 * (60 * 40 + 58 * 38)


@pytest.mark.whole
def test_chunks_overlap_where_they_cannot_be_skewed_and_it_is_said_why() -> None:
    @ct.step
    def heat(u: Any, k: Any) -> Any:
        return {"u": u + k[-1, 0] * (u[-1, 0] + u[1, 0] - 2 * u)}

    found = []
    k = np.random.default_rng(1).random(START.shape, dtype=np.float32) / 4
    options = {"boundary": "mirror", "u": START, "k": k}
    with Computation(heat, START.shape, devices="reference", **options) as whole:
        whole.run(5)
        found.append(whole.u.gather())
    with Computation(heat, START.shape, chunks=4, halo_width=2, **INTERNAL, **options) as run:
        text, moved = run.explain(), traffic(run.plan)
        run.run(5)
        found.append(run.u.gather())
    assert np.array_equal(*found)
    assert "chunks: 4 in 3 slots of each device, pass of 2 steps in" in text
    assert "chunks overlap: rules make cells outside of field 'k', which no step computes" in text
    assert "field u: split, up and down, overlapping by up to 2 rows below and 2 above, 2 i" in text
    assert moved.down == 4 * 40 * 60 and moved.up > 2 * moved.down


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"memory_cap": 1000}, "a row of cells with its margins has no room in the slots of a device"),
    ({"memory_cap": 1000, "slots": 4}, "has no room in 4 slots"),
    ({"memory_cap": 9000, "tune": 1.0}, "tune is for fields that stay on their devices"),
    ({"memory_cap": 9000, "check": True}, "the checked mode is for fields that stay"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED)
def test_what_cannot_pass_through_is_refused_with_the_reason(
    options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(MemoryCapError, match=reason) as error:
        Computation(CROSS, START, **{**INTERNAL, **options})
    assert "the cap is" in str(error.value)


CALLS: list[tuple[str, Callable[[Computation], object]]] = [
    ("array expressions are computed on fields that stay", lambda run: run.u.sum()),
    ("fields that pass through their devices in chunks are not divided anew",
     lambda run: run.redistribute(places_per_controller=2)),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "call"), CALLS)
def test_calls_that_need_fields_on_their_devices(
    reason: str, call: Callable[[Computation], object]
) -> None:
    with Computation(CROSS, START, chunks=3, **INTERNAL) as run:
        with pytest.raises(ValueError, match=reason):
            call(run)
        run.run(3)
        assert np.array_equal(run.gather(), expected(3))


@pytest.mark.parametrize("chunks", [0, 2000, 1.5])
def test_numbers_of_chunks(chunks: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="chunks"):
        Computation(CROSS, START, chunks=chunks, **INTERNAL)
    with pytest.raises(ValueError, match="a device that shares the host's memory"):
        Computation(CROSS, START, chunks=2, devices="reference")
    with pytest.raises(ValueError, match="a dry run plans fields that stay"):
        ct.dry_run(CROSS, (8, 8), 2, chunks=2)


@two_cores
def test_a_run_ends_when_rows_between_devices_lie_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has run may set the fields: no thread copies rows of images any more."""
    under_way: list[int] = []
    copied = host_work.copy_cells

    def late(moves: Sequence[tuple[host_work.Cells, host_work.Cells]]) -> None:
        under_way.append(1)
        time.sleep(0.02)
        copied(moves)
        under_way.pop()

    monkeypatch.setattr(host_work, "copy_cells", late)
    monkeypatch.setattr(binding, "PIECE_NBYTES", 0)
    with Computation(CROSS, START, devices="cpu/1,1", zero_copy=False, chunks=2) as run:
        for n_steps in (3, 2):
            run.run(n_steps)
            assert not under_way
            run.u.set(run.u.gather())
        assert np.array_equal(run.gather(), expected(5))


# cap, rows x cells of a row, steps of a pass, slots, and the skewed chunks that fit: by hand
SKEWED = [
    (24_000, (60, 40), 1, 3, 2),        # 320 bytes a row in two buffers and two parcels: 37.5
    (24_000, (60, 40), 12, 3, 2),       # 13 rows kept: (24000 - 13 * 320) / 640 = 31
    (24_000, (60, 40), 24, 3, 3),       # 25: 25
    (24_000, (60, 40), 48, 3, 5),       # 49: 13
    (24_000, (60, 40), 72, 3, 60),      # 73: 1
    (24_000, (60, 40), 73, 3, None),    # 74: 0.5
    (24_000, (60, 40), 24, 4, 4),       # two parcels each way, 960 bytes a row: 16.67
    (24_000, (60, 33), 24, 1, 3),       # rows of whole vectors, 40 elements, in buffers alone
    (10**6, (1000, 100), 64, 3, 2),     # 832 bytes a row, 800 in parcels: 579
    (10**6, (1000, 100), 512, 3, 3),    # 351
]


@pytest.mark.parametrize(("cap", "extent", "span", "slots", "chunks"), SKEWED)
def test_the_least_number_of_skewed_chunks(
    cap: int, extent: tuple[int, ...], span: int, slots: int, chunks: int | None
) -> None:
    assert least_skewed(*placed(cap, extent), span, slots) == chunks


# cap, steps of a pass, and the skewed chunks that fit, of each of two devices with 60 rows of 40
BESIDE = [
    (24_000, 1, 2),         # 2 rows kept, 36.5 others with the row of the other device: 61 rows
    (24_000, 12, 3),        # 13: 31 of 72
    (24_000, 24, 4),        # 25: 25 of 84
    (24_000, 29, None),     # 30 kept, 30 at the end: 24000 - 60 * 320 - 30 * 160 leave nothing
    (26_400, 29, 5),        # 15 of these: a row comes with those of the other device, 59 by 15
]


@pytest.mark.parametrize(("cap", "span", "chunks"), BESIDE)
def test_the_least_number_of_skewed_chunks_beside_another_device(
    cap: int, span: int, chunks: int | None
) -> None:
    layout = Layout.bands(Shape.of_extent((120, 40)), 2)
    where = tuple(Location(controller=number, shares_host=False) for number in (0, 1))
    plan = Plan(CROSS, layout, (False, False), [*where])
    homes = {place: SimpleNamespace(ledger=Ledger("GPU", cap)) for place in (0, 1)}
    assert least_skewed(plan, Placement(where, homes), span, 3) == chunks  # type: ignore[arg-type]


# cap, rows x cells of a row, steps of a pass, slots, and the chunks that fit: by hand
BY_HAND = [
    (96_000, (60, 40), 1, 3, 1),        # 960 bytes a row and slot: 100 rows, less 2
    (48_000, (60, 40), 1, 3, 2),        # 48
    (24_000, (60, 40), 1, 3, 3),        # 23
    (24_000, (60, 40), 4, 3, 4),        # 25 - 8 = 17
    (24_000, (60, 40), 8, 3, 7),        # 25 - 16 = 9
    (24_000, (60, 40), 12, 3, 60),      # 25 - 24 = 1
    (24_000, (60, 40), 13, 3, None),    # not a row
    (24_000, (60, 40), 4, 2, 3),        # 37 - 8 = 29
    (24_000, (60, 40), 4, 1, 1),        # 75 - 8 = 67
    (24_000, (60, 33), 4, 2, 3),        # rows of whole vectors, 40 elements
    (24_000, (60, 41), 4, 2, 3),        # of 48: 31 - 8 = 23
    (2_000, (60, 40), 1, 3, None),
    (2_879, (60, 40), 1, 3, None),      # three slots of three rows less a byte
    (2_880 * 3, (60, 40), 1, 3, 9),     # 9 - 2 = 7
    (2_880 * 4, (60, 40), 1, 3, 6),     # 12 - 2 = 10
    (10**6, (1000, 100), 2, 3, 3),      # of 104 elements: 400 - 4 = 396
    (10**6, (1000, 100), 16, 3, 3),     # 400 - 32 = 368
    (10**6, (1000, 100), 64, 3, 4),     # 400 - 128 = 272
    (10**6, (1000, 100), 64, 4, 6),     # 300 - 128 = 172
    (10**6, (1000, 100), 128, 3, 7),    # 400 - 256 = 144
]


@pytest.mark.parametrize(("cap", "extent", "span", "slots", "chunks"), BY_HAND)
def test_the_least_number_of_chunks(
    cap: int, extent: tuple[int, ...], span: int, slots: int, chunks: int | None
) -> None:
    assert least_chunks(*placed(cap, extent), span, slots) == chunks


def placed(cap: int, extent: tuple[int, ...]) -> tuple[Plan, Placement]:
    """One place on a device of so many bytes."""
    layout, where = Layout.bands(Shape.of_extent(extent), 1), Location(shares_host=False)
    plan = Plan(CROSS, layout, (False, False), [where])
    executor = SimpleNamespace(ledger=Ledger("GPU", cap))
    return plan, Placement((where,), {0: executor})     # type: ignore[dict-item]
