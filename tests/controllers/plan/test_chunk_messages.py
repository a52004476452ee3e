# SPDX-License-Identifier: MIT
"""Chunks on several ranks: rows of images travel after each pass, in any order that is allowed."""
from __future__ import annotations

import random

import pytest
from plan_simulation import Simulation
from random_boundaries import bounded_program, same
from random_programs import ProgramCase, random_program
from sample import sample

from controllers import Stencil
from controllers.plan import ChunkPlan, Location, SkewedPlan
from controllers.plan.chunks.chunk_margins import why_overlapped
from controllers.plan.operation import StagingKey, TileKey
from controllers.program.reference import reference_run
from hitmap import Layout, Shape

PROGRAMS = range(60)


def chunked(case: ProgramCase, rng: random.Random) -> ChunkPlan:
    """Chunks of up to three ranks with up to two devices, skewed where they can be."""
    n_chunks = rng.randint(3, 7)
    homes = [(rng.randint(0, 2), rng.randint(0, 1)) for _ in range(n_chunks)]
    if rng.randint(0, 2):       # else some have several runs of chunks
        homes.sort()
    layout = Layout.bands(Shape.of_extent(case.extent), n_chunks)
    where = [Location(*home, shares_host=False) for home in homes]
    kinds = [ChunkPlan] if why_overlapped(case.program, layout) else [SkewedPlan, ChunkPlan]
    return rng.choice(kinds)(
        case.program, layout, case.periodic, where,
        n_launches=rng.randint(1, 3), n_slots=rng.randint(1, 3),
    )  # fmt: skip


def check(case: ProgramCase, rng: random.Random) -> None:
    plan, n_passes = chunked(case, rng), rng.randint(1, 3)
    got = Simulation(plan, case.arrays, rng).run(n_passes)
    right = reference_run(case.program, case.arrays, n_passes * plan.span, case.periodic)
    for field, cells in got.items():
        assert same(cells, right[field]), f"{field}\n{plan}"


@pytest.mark.parametrize("number", sample(PROGRAMS, 8))
def test_random_programs_give_the_bits_of_the_reference(number: int) -> None:
    check(random_program(number), random.Random(number))


@pytest.mark.parametrize("number", sample(PROGRAMS, 20))
def test_random_boundaries_give_the_bits_of_the_reference(number: int) -> None:
    check(bounded_program(number), random.Random(number))


def test_without_the_messages_bits_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation begins with numbers that no field has."""
    monkeypatch.setattr(
        "controllers.plan.chunks.chunk_recording.record_messages", lambda *_, **__: None
    )
    failed = 0
    for number in PROGRAMS[:12]:
        try:
            check(random_program(number), random.Random(number))
        except AssertionError:
            failed += 1
    assert failed >= 2


def cross(
    homes: list[int], kind: type[ChunkPlan] = ChunkPlan, width: int = 20, **options: int
) -> ChunkPlan:  # fmt: skip
    program = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
    layout = Layout.bands(Shape.of_extent((30, width)), len(homes))
    where = [Location(rank, shares_host=False) for rank in homes]
    return kind(program, layout, (False, False), where, **options)


def test_what_is_sent_is_as_deep_as_a_pass_reads() -> None:
    plan = cross([0, 0, 1], n_launches=2)
    sent = [str(message) for pattern in plan.exchanges.values() for message in pattern.messages]
    assert sent == [
        "place 2 -> 1: [20:22, 0:20], 40 cells", "place 1 -> 2: [18:20, 0:20], 40 cells",
    ]  # fmt: skip
    verbs = [(one.place, one.verb) for one in plan.operations if one.bundle is not None]
    assert verbs[: len(verbs) // plan.n_phases] == [
        (1, "upload"), (2, "upload"), (1, "receive"), (2, "receive"),
        (2, "pack"), (2, "send"), (1, "pack"), (1, "send"),
    ]  # fmt: skip


def test_rows_that_are_runs_of_memory_leave_from_their_images() -> None:
    """Those of 20 cells have gaps between them, and are packed."""
    verbs = {}
    for width in (20, 24):
        plan = cross([0, 1], width=width, n_launches=2)
        sends = [one for one in plan.operations if one.verb == "send"]
        assert {type(one.reads[0].memory) for one in sends} == {[StagingKey, TileKey][width == 24]}
        verbs[width] = [one.verb for one in plan.operations if one.bundle is not None]
        ends = [m.key.end for m in plan.memories if isinstance(m.key, StagingKey)]
        assert sorted(ends) == ["border"] * 2 * (width == 20) + ["halo"] * 2
    assert "pack" in verbs[20] and verbs[24] == [verb for verb in verbs[20] if verb != "pack"]


def test_what_comes_back_waits_until_the_rows_it_replaces_have_left() -> None:
    plan = cross([0, 0, 1, 1], SkewedPlan, width=24, n_launches=2)
    assert plan.n_images("u") == 1
    sends = {one.number for one in plan.operations if one.verb == "send"}
    downloads = [one for one in plan.operations if one.verb == "download"]
    awaited = {edge.number for one in downloads for edge in one.after}
    assert sends and sends <= awaited


def test_a_pass_that_reads_over_a_chunk_gets_rows_of_several() -> None:
    plan = cross([0, 0, 1, 1, 1, 1], n_launches=7)
    pairs = {(bundle.source, bundle.target) for bundle in plan.bundles}
    assert pairs == {(1, 2), (0, 2), (1, 3), (2, 1), (3, 1), (2, 0)}


def test_skewed_chunks_of_a_rank_get_rows_at_its_ends_alone() -> None:
    """The host has one image: what ranks send has left it before it is written over."""
    plan = cross([0, 0, 0, 1, 1], SkewedPlan, n_launches=4)
    assert {(one.source, one.target) for one in plan.bundles} == {(2, 3), (3, 2)}
    assert {one.n_cells for one in plan.bundles} == {4 * 20}
    assert plan.n_phases == 1 and plan.n_images("u") == 1


def test_runs_of_chunks_of_one_device_are_skewed_each_by_itself() -> None:
    """As blocks that devices take in turn; what runs read of each other lies beside one image."""
    plan = cross([0, 0, 1, 1, 0, 0], SkewedPlan, n_launches=2)
    assert [plan.before(place) for place in plan.places] == [None, 0, 3, None, None, 4]
    around = {place: [str(box) for m in plan.around("u", place) for box in m.halo]
              for place in plan.places}  # fmt: skip
    assert around == {0: [], 1: ["[10:12, 0:20]"], 2: ["[8:10, 0:20]"], 3: ["[20:22, 0:20]"],
                      4: ["[18:20, 0:20]"], 5: []}  # fmt: skip
    assert plan.n_images("u") == 1


def test_devices_of_a_rank_keep_what_the_other_one_reads_beside_one_image() -> None:
    program = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
    layout = Layout.bands(Shape.of_extent((24, 20)), 4)
    where = [Location(controller=number, shares_host=False) for number in (0, 0, 1, 1)]
    plan = SkewedPlan(program, layout, (False, False), where, n_launches=3)
    verbs = [one.verb for one in plan.operations if one.bundle is not None]
    assert sorted(verbs) == ["pack"] * 2 + ["upload"] * 2
    kept = [one.nbytes for one in plan.memories if one.kind == "staging"]
    assert plan.n_images("u") == 1 and kept == [3 * 20 * 4] * 2


def test_neighbours_come_to_the_rows_between_them_at_the_same_time() -> None:
    plan = cross([0, 0, 1, 1, 2, 2], SkewedPlan, n_launches=2)
    assert [*plan.order] == [0, 1, 3, 2, 4, 5]
    recorded = [one.place for one in plan.operations if one.verb == "launch" and not one.phase]
    assert [*dict.fromkeys(recorded)] == [0, 1, 3, 2, 4, 5]
    launched = [str(one.writes[0].cells[0]) for one in plan.operations
                if one.verb == "launch" and not one.phase and one.place in (2, 3)]  # fmt: skip
    assert launched == ["[16:21, 1:19]", "[17:20, 1:19]", "[9:16, 1:19]", "[10:17, 1:19]"]


def test_one_rank_sends_nothing() -> None:
    plan = cross([0, 0, 0], n_launches=3)
    assert not plan.bundles and not any(plan.opening)
