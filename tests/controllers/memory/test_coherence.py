# SPDX-License-Identifier: MIT
"""Which image is newest, and who must be waited for: as text, without a device."""
from __future__ import annotations

from controllers.memory.coherence import Coherence
from hitmap.shape import Shape

ALL, LOW, HIGH = Shape((0,), (8,)), Shape((0,), (4,)), Shape((4,), (8,))


def stale(tile: Coherence[str], side: str) -> list[str]:
    return [str(box) for box in tile.stale(side, [ALL])]  # type: ignore[arg-type]


def test_a_write_makes_the_other_side_stale_until_it_is_copied_or_written() -> None:
    tile: Coherence[str] = Coherence()
    assert stale(tile, "host") == stale(tile, "device") == []
    tile.wrote("device", [ALL], "kernel")
    assert (stale(tile, "host"), stale(tile, "device")) == (["[0:8]"], [])
    tile.copied("host", [LOW], "copy")
    assert stale(tile, "host") == ["[4:8]"]
    tile.wrote("host", [HIGH], "task")
    assert (stale(tile, "host"), stale(tile, "device")) == ([], ["[4:8]"])


def test_a_copy_waits_for_the_writer_and_holds_its_source() -> None:
    tile: Coherence[str] = Coherence()
    tile.wrote("host", [ALL], "task")
    assert tile.before_read("host", [LOW]) == ["task"]
    tile.copied("device", [LOW], "copy")
    assert tile.before_write("host", [LOW]) == ["task", "copy"], "the copy still reads there"
    assert tile.before_read("device", [LOW]) == ["copy"]
    assert tile.before_read("device", [HIGH]) == []


def test_in_one_memory_both_sides_wait_for_each_other_and_nothing_is_stale() -> None:
    tile: Coherence[str] = Coherence(one_memory=True)
    tile.wrote("device", [LOW], "kernel")
    assert tile.before_read("host", [ALL]) == ["kernel"]
    tile.read("host", [LOW], "task")
    assert tile.before_write("device", [LOW]) == ["kernel", "task"]
    assert stale(tile, "host") == stale(tile, "device") == []


def test_what_is_over_is_forgotten() -> None:
    tile: Coherence[str] = Coherence()
    tile.wrote("device", [ALL], "old")
    tile.copied("host", [LOW], "new")
    assert set(tile.pending()) == {"new", "old"}
    tile.forget(lambda event: event == "old")
    assert set(tile.pending()) == {"new"}
    assert stale(tile, "host") == ["[4:8]"], "what is stale stays so"
