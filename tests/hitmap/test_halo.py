# SPDX-License-Identifier: MIT
"""Halo patterns as printed text, and against a model that looks at every single cell."""
from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from halo_model import Cell, Model, cells
from hypothesis import given, settings
from hypothesis import strategies as st
from sample import sample

from hitmap import HaloPattern, Layout, Message, Shape

STAR = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]
BOX = list(itertools.product((-1, 0, 1), repeat=2))
STAR_2D4 = [*STAR, (-2, 0), (2, 0), (0, -2), (0, 2)]
FORWARD = [(0, 0), (1, 0), (2, 0)]


def checked(
    layout: Layout,
    offsets: Sequence[Cell],
    periodic: tuple[bool, ...],
    updated: Shape | None = None,
) -> HaloPattern:
    pattern = HaloPattern(layout, offsets, periodic, updated)
    model = Model(layout, offsets, periodic, layout.domain if updated is None else updated)
    model.check_pattern(layout, pattern)
    return pattern


def test_bands_of_a_2d4_stencil_send_two_rows_each_way_and_only_the_columns_computed() -> None:
    layout = Layout.bands(Shape.of_extent((12, 9)), 3)
    pattern = checked(layout, STAR_2D4, (False, False), updated=Shape((2, 2), (10, 7)))
    assert str(pattern) == (
        "place 1 -> 0: [4:6, 2:7], 10 cells\n"
        "place 0 -> 1: [2:4, 2:7], 10 cells\n"
        "place 2 -> 1: [8:10, 2:7], 10 cells\n"
        "place 1 -> 2: [6:8, 2:7], 10 cells\n"
        "40 cells in 4 messages, 0 more than needed"
    )


def test_a_star_on_a_3x4_grid_of_blocks_sends_no_corners() -> None:
    layout = Layout.blocks(Shape.of_extent((6, 8)), 12)
    pattern = checked(layout, STAR, (False, False))
    assert str(pattern) == (
        "place 1 -> 0: [0:2, 2:3], 2 cells\n"
        "place 4 -> 0: [2:3, 0:2], 2 cells\n"
        "place 0 -> 1: [0:2, 1:2], 2 cells\n"
        "place 2 -> 1: [0:2, 4:5], 2 cells\n"
        "place 5 -> 1: [2:3, 2:4], 2 cells\n"
        "place 1 -> 2: [0:2, 3:4], 2 cells\n"
        "place 3 -> 2: [0:2, 6:7], 2 cells\n"
        "place 6 -> 2: [2:3, 4:6], 2 cells\n"
        "place 2 -> 3: [0:2, 5:6], 2 cells\n"
        "place 7 -> 3: [2:3, 6:8], 2 cells\n"
        "place 0 -> 4: [1:2, 0:2], 2 cells\n"
        "place 5 -> 4: [2:4, 2:3], 2 cells\n"
        "place 8 -> 4: [4:5, 0:2], 2 cells\n"
        "place 1 -> 5: [1:2, 2:4], 2 cells\n"
        "place 4 -> 5: [2:4, 1:2], 2 cells\n"
        "place 6 -> 5: [2:4, 4:5], 2 cells\n"
        "place 9 -> 5: [4:5, 2:4], 2 cells\n"
        "place 2 -> 6: [1:2, 4:6], 2 cells\n"
        "place 5 -> 6: [2:4, 3:4], 2 cells\n"
        "place 7 -> 6: [2:4, 6:7], 2 cells\n"
        "place 10 -> 6: [4:5, 4:6], 2 cells\n"
        "place 3 -> 7: [1:2, 6:8], 2 cells\n"
        "place 6 -> 7: [2:4, 5:6], 2 cells\n"
        "place 11 -> 7: [4:5, 6:8], 2 cells\n"
        "place 4 -> 8: [3:4, 0:2], 2 cells\n"
        "place 9 -> 8: [4:6, 2:3], 2 cells\n"
        "place 5 -> 9: [3:4, 2:4], 2 cells\n"
        "place 8 -> 9: [4:6, 1:2], 2 cells\n"
        "place 10 -> 9: [4:6, 4:5], 2 cells\n"
        "place 6 -> 10: [3:4, 4:6], 2 cells\n"
        "place 9 -> 10: [4:6, 3:4], 2 cells\n"
        "place 11 -> 10: [4:6, 6:7], 2 cells\n"
        "place 7 -> 11: [3:4, 6:8], 2 cells\n"
        "place 10 -> 11: [4:6, 5:6], 2 cells\n"
        "68 cells in 34 messages, 0 more than needed"
    )


def test_a_forward_stencil_sends_one_way() -> None:
    layout = Layout.bands(Shape.of_extent((9, 4)), 3)
    assert str(checked(layout, FORWARD, (False, False))) == (
        "place 1 -> 0: [3:5, 0:4], 8 cells\n"
        "place 2 -> 1: [6:8, 0:4], 8 cells\n"
        "16 cells in 2 messages, 0 more than needed"
    )


def test_one_place_closes_its_periodic_axis_by_messages_to_itself() -> None:
    layout = Layout.bands(Shape.of_extent((5, 4)), 1)
    assert str(checked(layout, STAR, (True, False))) == (
        "place 0 -> 0: [4:5, 0:4] as [-1:0, 0:4], 4 cells\n"
        "place 0 -> 0: [0:1, 0:4] as [5:6, 0:4], 4 cells\n"
        "8 cells in 2 messages, 0 more than needed"
    )


def test_corners_are_received_from_those_who_own_them() -> None:
    layout = Layout.blocks(Shape.of_extent((4, 4)), 4)
    assert str(checked(layout, [(-1, -1)], (False, False))) == (
        "place 0 -> 1: [0:1, 1:2], 1 cell\n"
        "place 0 -> 2: [1:2, 0:1], 1 cell\n"
        "place 0 -> 3: [1:2, 1:2], 1 cell\n"
        "place 1 -> 3: [1:2, 2:3], 1 cell\n"
        "place 2 -> 3: [2:3, 1:2], 1 cell\n"
        "5 cells in 5 messages, 0 more than needed"
    )


def test_a_reach_beyond_a_slab_goes_to_all_whose_cells_are_read() -> None:
    layout = Layout.bands(Shape.of_extent((5,)), 5)
    assert str(checked(layout, [(-3,), (-1,)], (False,))) == (
        "place 0 -> 1: [0:1], 1 cell\n"
        "place 1 -> 2: [1:2], 1 cell\n"
        "place 0 -> 3: [0:1], 1 cell\n"
        "place 2 -> 3: [2:3], 1 cell\n"
        "place 1 -> 4: [1:2], 1 cell\n"
        "place 3 -> 4: [3:4], 1 cell\n"
        "6 cells in 6 messages, 0 more than needed"
    )


def test_a_reach_beyond_the_domain_wraps_several_times() -> None:
    layout = Layout.bands(Shape.of_extent((3,)), 2)
    assert str(checked(layout, [(7,)], (True,))) == (
        "place 0 -> 0: [1:2] as [7:8], 1 cell\n"
        "place 1 -> 0: [2:3] as [8:9], 1 cell\n"
        "place 0 -> 1: [0:1] as [9:10], 1 cell\n"
        "3 cells in 3 messages, 0 more than needed"
    )


def test_boxes_that_fill_most_of_a_run_of_rows_become_one() -> None:
    layout = Layout.bands(Shape.of_extent((8, 6)), 2)
    assert str(checked(layout, [(-1, -1), (-2, 1)], (False, False))) == (
        "place 0 -> 1: [2:4, 0:6], 12 cells\n12 cells in 1 message, 1 more than needed"
    )


def test_rows_of_a_band_are_widened_to_one_run_of_memory() -> None:
    layout = Layout.bands(Shape.of_extent((12, 40)), 2)
    fixed = checked(layout, STAR_2D4, (False, False), updated=Shape((2, 2), (10, 38)))
    assert str(fixed) == (
        "place 1 -> 0: [6:8, 0:40], 80 cells\n"
        "place 0 -> 1: [4:6, 0:40], 80 cells\n"
        "160 cells in 2 messages, 16 more than needed"
    )
    periodic = checked(layout, STAR_2D4, (False, True), updated=Shape((2, 0), (10, 40)))
    rows = [message for message in periodic.messages if message.source != message.target]
    assert [message.n_cells for message in rows] == [80, 80], "the tile has columns beside them"


def test_boxes_far_apart_stay_apart() -> None:
    layout = Layout.weighted(Shape.of_extent((12, 6)), [11, 1])
    assert str(checked(layout, [(-2, 0), (-9, 0)], (False, False))) == (
        "place 0 -> 1: [2:3, 0:6] + [9:10, 0:6], 12 cells\n"
        "12 cells in 1 message, 0 more than needed"
    )


@pytest.mark.parametrize("n_places", sample(range(1, 13), 3))
@pytest.mark.parametrize("periodic", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("offsets", [STAR, BOX, STAR_2D4, FORWARD], ids=len)
def test_any_number_of_places_gets_the_exact_boxes(
    n_places: int, periodic: tuple[bool, bool], offsets: Sequence[Cell]
) -> None:
    domain = Shape.of_extent((13, 7))
    for layout in (
        Layout.bands(domain, n_places),
        Layout.blocks(domain, n_places),
        Layout.weighted(domain, [50, *[1.5] * (n_places - 1)]),
    ):
        pattern = checked(layout, offsets, periodic)
        if layout.topology is None or any(periodic):
            continue
        where = layout.topology.coordinates
        for message in pattern.messages:
            ends = zip(where(message.source), where(message.target), strict=True)
            steps = [source - target for source, target in ends]
            if offsets is FORWARD:
                assert steps[0] > 0 and steps[1] == 0
            elif offsets is not BOX:
                assert steps.count(0) == 1, "a star needs no corners"
    if offsets is BOX and not any(periodic):
        lines = str(HaloPattern(Layout.bands(domain, n_places), BOX, periodic)).splitlines()
        assert len(lines) == len(set(lines)) == 2 * (n_places - 1) + 1


@st.composite
def layouts(draw: st.DrawFn, n_axes: int) -> Layout:
    largest = {1: 12, 2: 6, 3: 4, 4: 3}[n_axes]
    lower = tuple(draw(st.integers(-3, 3)) for _ in range(n_axes))
    domain = Shape.of_extent([draw(st.integers(1, largest)) for _ in range(n_axes)]).shift(lower)
    n_places = draw(st.integers(1, 7))
    kind = draw(st.sampled_from(["bands", "blocks", "weighted", "pieces"]))
    if kind == "weighted":
        return Layout.weighted(domain, [draw(st.sampled_from([0, 1, 50])) for _ in range(6)] + [1])
    if kind == "pieces":  # cut one of the boxes, again and again
        boxes = [domain]
        for _ in range(n_places):
            box = boxes.pop(draw(st.integers(0, len(boxes) - 1)))
            axis = draw(st.integers(0, n_axes - 1))
            cut = draw(st.integers(box.lower[axis], box.upper[axis]))
            boxes.append(box.slab(axis, box.lower[axis], cut))
            boxes.append(box.slab(axis, cut, box.upper[axis]))
        return Layout(domain, tuple(draw(st.permutations(boxes))))
    return Layout.bands(domain, n_places) if kind == "bands" else Layout.blocks(domain, n_places)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_random_patterns_are_exact(data: st.DataObject) -> None:
    n_axes = data.draw(st.integers(1, 4))
    layout = data.draw(layouts(n_axes))
    reach = {1: 30, 2: 9, 3: 5, 4: 3}[n_axes]
    offset = st.tuples(*[st.integers(-reach, reach) | st.integers(-1, 1)] * n_axes)
    offsets = data.draw(st.lists(offset, max_size=6))
    periodic = data.draw(st.tuples(*[st.booleans()] * n_axes))
    lower, upper = layout.domain.lower, layout.domain.upper
    ends = [
        sorted(data.draw(st.tuples(st.integers(lo, hi), st.integers(lo, hi))))
        for lo, hi in zip(lower, upper, strict=True)
    ]
    some = Shape(*map(tuple, zip(*ends, strict=True)))
    checked(layout, offsets, periodic, data.draw(st.sampled_from([None, some])))


def without_one(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return messages[1:]


def one_twice(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return (*messages, messages[0])


def another_source(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return (replace(messages[0], source=(messages[0].source + 1) % 4), *messages[1:])


def a_row_less(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    fewer = messages[0].halo[0].grow((-1, 0), (0, 0))
    return (replace(messages[0], halo=(fewer,)), *messages[1:])


def a_column_more(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    wider = messages[0].halo[0].grow((0, 0), (0, 1))
    return (replace(messages[0], halo=(wider,)), *messages[1:])


def no_wrap(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(replace(m, shift=(0, 0)) if any(m.shift) else m for m in messages)


@pytest.mark.parametrize(
    "fault", [without_one, one_twice, another_source, a_row_less, a_column_more, no_wrap]
)
def test_the_model_notices_a_fault(
    fault: Callable[[tuple[Message, ...]], tuple[Message, ...]]
) -> None:
    layout = Layout.blocks(Shape.of_extent((8, 8)), 4)
    pattern = checked(layout, STAR_2D4, (True, False))
    with pytest.raises((AssertionError, KeyError)):
        Model(layout, STAR_2D4, (True, False), layout.domain).check(layout, fault(pattern.messages))


def test_many_places_and_offsets_take_little_time() -> None:
    layout = Layout.blocks(Shape.of_extent((128, 128, 128)), 64)
    start = time.process_time()
    pattern = HaloPattern(layout, itertools.product((-1, 0, 1), repeat=3), (True,) * 3)
    assert time.process_time() - start < 10      # 0.3 s; one by one they would take minutes
    assert len(pattern.messages) == 64 * 26
    assert pattern.n_cells == pattern.n_cells_needed == 64 * (34**3 - 32**3)


def test_offsets_flags_and_cells_must_fit_the_domain() -> None:
    layout = Layout.bands(Shape.of_extent((6, 4)), 2)
    with pytest.raises(ValueError, match=r"offset \(1,\) must have one number per axis"):
        HaloPattern(layout, [(1,)], (False, False))
    with pytest.raises(ValueError, match=r"one flag per axis.*got \(True,\)"):
        HaloPattern(layout, STAR, (True,))
    with pytest.raises(ValueError, match=r"updated \[0:7, 0:4\] must lie inside"):
        HaloPattern(layout, STAR, (False, False), Shape((0, 0), (7, 4)))


def test_no_offsets_or_nothing_updated_needs_no_message() -> None:
    layout = Layout.bands(Shape.of_extent((6, 4)), 3)
    assert HaloPattern(layout, [], (True, True)).messages == ()
    assert HaloPattern(layout, STAR, (True, True), Shape((2, 2), (2, 2))).messages == ()
    assert HaloPattern(layout, [], (True, True)).full(1) == layout.owned[1]


class Mirrors:
    """At both ends of these axes, as often as the reach demands."""

    def __init__(self, domain: Shape, axes: tuple[bool, ...]) -> None:
        self.domain, self.axes = domain, axes

    def source(self, cell: Cell) -> Cell | None:
        seen = []
        for at, length, mirrored in zip(cell, self.domain.extent, self.axes, strict=True):
            turn, along = divmod(at, length)
            seen.append(length - 1 - along if turn % 2 and mirrored else along if mirrored else at)
        return tuple(seen)

    def outside(self, box: Shape) -> Iterator[Shape]:
        for cell in cells(box):
            inside = zip(cell, self.domain.extent, self.axes, strict=True)
            if not all(0 <= at < length or not mirrored for at, length, mirrored in inside):
                yield Shape(cell, tuple(at + 1 for at in cell))

    def sources(self, box: Shape) -> Iterator[Shape]:
        for cell in map(self.source, cells(box)):
            assert cell is not None
            yield Shape(cell, tuple(at + 1 for at in cell))


@pytest.mark.parametrize("mirrored", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("n_places", [1, 3, 5])
def test_what_cells_outside_are_made_of_is_received(
    n_places: int, mirrored: tuple[bool, bool]
) -> None:
    far = [(0, 0), (-1, 2), (3, -1), (0, -5), (-4, 0)]
    rings = tuple(not mirror for mirror in mirrored)
    for layout in (
        Layout.blocks(Shape.of_extent((6, 4)), n_places),
        Layout.weighted(Shape.of_extent((3, 7)), [1, 5, 1, 9, 2][:n_places]),
    ):
        mirrors = Mirrors(layout.domain, mirrored)
        pattern = HaloPattern(layout, far, rings, beyond=mirrors)
        model = Model(layout, far, rings, layout.domain, mirrors.source)
        model.check_pattern(layout, pattern)
