# SPDX-License-Identifier: MIT
"""What can be wanted, and what of what is free a request gets."""
from __future__ import annotations

import os

import pytest

from controllers.arbiter import Arbiter, Want, node_cores
from controllers.arbiter.want import as_text, checked, chosen, of_text, reserved

CORES = tuple(f"core {number}" for number in range(6))


@pytest.mark.parametrize(
    ("among", "least", "most", "told"),
    [
        (("a", "b"), 3, 3, "at least 3 units are wanted, of 2: a, b"),
        ((), 1, 1, "of 0: none"),
        (("a",), 0, 1, "least 0"),
        (("a", "b"), 2, 1, "most 1"),
        (("a", "a"), 1, 1, "unlike units"),
        ("core 1", 1, 1, "unlike units, got 'core 1'"),
    ],
)
def test_wants_that_cannot_be_are_refused(
    among: tuple[str, ...], least: int, most: int, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        Want(among, least, most)


def test_requests_without_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one way"):
        checked([])
    with pytest.raises(ValueError, match="at least one want"):
        checked([[Want(("a",))], []])
    with pytest.raises(ValueError, match="b is named in two wants"):
        checked([[Want(("a", "b")), Want(("b", "c"))]])
    assert checked([[Want(("a",))], [Want(("a",))]])    # in two ways


@pytest.mark.parametrize(("n_free", "given"), [(6, 4), (4, 4), (3, 3), (2, 2), (1, None)])
def test_the_free_units_nearest_to_the_most_are_given(n_free: int, given: int | None) -> None:
    units = chosen((Want(CORES, 2, 4),), lambda unit: unit in CORES[-n_free:], lambda unit: False)
    if given is None:
        assert units is None
    else:
        assert units is not None and units[0] == CORES[-n_free:][:given]


def test_marked_units_come_last_and_are_given_nevertheless() -> None:
    def is_marked(unit: str) -> bool:
        return unit in CORES[:3]

    def is_free(unit: str) -> bool:
        return True

    assert chosen((Want(CORES, 1, 2),), is_free, is_marked) == (CORES[3:5],)
    assert chosen((Want(CORES, 1, 5),), is_free, is_marked) == ((*CORES[3:], *CORES[:2]),)


def test_who_waits_keeps_what_is_free_of_each_way() -> None:
    ways = ((Want(CORES, 4, 6), Want(("d",))), (Want(("e", "f")),))
    free = {"core 1", "core 2", "d", "f"}
    assert reserved(ways, free.__contains__, lambda unit: False) == free


def test_ways_are_told_to_other_processes() -> None:
    ways = ((Want(CORES, 4, 6), Want(("d é",))), (Want(("e", "f")),))
    assert of_text(as_text(ways)) == ways
    assert of_text(as_text(())) == ()
    for damaged in ("", "[", "3", '[[["a", 1, "u"]]]', "[[[1]]]", "[[[3, 3, 1]]]"):
        assert of_text(damaged) is None


def test_the_cores_are_those_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {7, 2})
    assert node_cores() == ("core 2", "core 7")


def test_where_nobody_is_asked_all_get_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTROLLERS_ARBITER", "off")
    with Arbiter() as arbiter:
        for _ in range(2):
            lease = arbiter.acquire([[Want(CORES, 1, 4), Want(("d",))]])
            assert (lease.way, lease.units) == (0, (CORES[:4], ("d",)))
        assert arbiter.acquire_node().inner is None
        assert arbiter.holders() == []
        lease.release()
