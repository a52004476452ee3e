# SPDX-License-Identifier: MIT
from controllers.memory.history import History
from hitmap import Shape


def row(lower: int, upper: int) -> list[Shape]:
    return [Shape((lower, 0), (upper, 8))]


def test_a_read_waits_for_the_writes_of_its_cells_alone() -> None:
    history: History[str] = History()
    history.wrote(row(0, 2), "border kernel")
    history.wrote(row(2, 8), "inner kernel")
    assert history.before_read(row(0, 2)) == ["border kernel"]
    assert history.before_read(row(1, 3)) == ["border kernel", "inner kernel"]
    assert history.before_read(row(8, 9)) == []


def test_a_write_waits_for_reads_and_writes() -> None:
    history: History[str] = History()
    history.wrote(row(0, 4), "kernel")
    history.read(row(3, 4), "download")
    assert history.before_write(row(3, 4)) == ["kernel", "download"]
    assert history.before_write(row(0, 3)) == ["kernel"]


def test_a_write_settles_what_it_covers_and_leaves_the_rest() -> None:
    history: History[str] = History()
    history.wrote(row(0, 8), "first")
    history.read(row(0, 8), "reader")
    history.wrote(row(2, 4), "second")
    assert history.before_write(row(2, 4)) == ["second"]
    assert history.before_read(row(1, 3)) == ["first", "second"]
    assert history.before_write(row(4, 5)) == ["first", "reader"]


def test_an_event_that_touches_several_boxes_is_named_once() -> None:
    history: History[str] = History()
    history.wrote([*row(0, 1), *row(7, 8)], "borders")
    assert history.before_read([*row(0, 1), *row(7, 8)]) == ["borders"]
