# SPDX-License-Identifier: MIT
"""What is asked of the arbiter: wants, ways, and what one of them gets of what is free.

A *unit* is what is given once: a core or a device, named the same in all processes of a node.  A
*want* is so many units of a list.  A *way* is wants that are needed together.  A request is one way
or several; the first one that is possible is taken.
"""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

Units: TypeAlias = tuple[tuple[str, ...], ...]      # for each want of a way
Test: TypeAlias = Callable[[str], bool]             # of a unit


@dataclass(frozen=True)
class Want:
    """At least `least` and at most `most` of the units `among`, the first ones of what is free.

    ValueError where that cannot be, however many are free.
    """

    among: tuple[str, ...]
    least: int = 1
    most: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.among, str) or len(set(self.among)) != len(self.among):
            raise ValueError(f"a want needs a list of unlike units, got {self.among!r}")
        if not 1 <= self.least <= self.most:
            raise ValueError(
                f"a want needs 1 <= least <= most, got least {self.least}, most {self.most}"
            )
        if self.least > len(self.among):
            raise ValueError(
                f"at least {self.least} units are wanted, of {len(self.among)}: "
                f"{', '.join(self.among) or 'none'}; ask for fewer, or name more"
            )


Way: TypeAlias = tuple[Want, ...]


def node_cores() -> tuple[str, ...]:
    """The units for the cores that this process may use, by the kernel's numbers."""
    return tuple(f"core {number}" for number in sorted(os.sched_getaffinity(0)))


def checked(ways: Sequence[Sequence[Want]]) -> tuple[Way, ...]:
    """The same ways; ValueError where there is none, one is empty, or one names a unit twice."""
    if not ways or not all(ways):
        raise ValueError("a request needs at least one way, and a way at least one want")
    for way in ways:
        names = [unit for want in way for unit in want.among]
        twice = sorted({unit for unit in names if names.count(unit) > 1}) if len(way) > 1 else []
        if twice:
            raise ValueError(
                f"{twice[0]} is named in two wants of one way; name each unit in one of them"
            )
    return tuple(tuple(way) for way in ways)


def chosen(way: Way, is_free: Test, is_marked: Test) -> Units | None:
    """Of each want the free units nearest to its `most`, marked ones last; None if too few are.

    >>> way = (Want(("a", "b", "c"), 1, 2),)
    >>> chosen(way, lambda unit: unit != "b", lambda unit: unit == "a")
    (('c', 'a'),)
    """
    units = tuple(_picked(want.among, want.most, is_free, is_marked) for want in way)
    return units if all(len(u) >= w.least for u, w in zip(units, way)) else None


def reserved(ways: Sequence[Way], is_free: Test, is_marked: Test) -> set[str]:
    """The free units that whoever waits for these ways will not be robbed of.

    For each way those it needs at least, as far as they are free: more and more of them while
    others give theirs back, until one way is complete.
    """
    wants = [want for way in ways for want in way]
    picked = (_picked(want.among, want.least, is_free, is_marked) for want in wants)
    return {unit for units in picked for unit in units}


def _picked(among: Sequence[str], most: int, is_free: Test, is_marked: Test) -> tuple[str, ...]:
    """Up to `most` free ones of `among`; no more units are asked than needed."""
    found: list[str] = []
    marked: list[str] = []
    for unit in among:
        if len(found) == most:
            break
        if is_free(unit):
            (marked if is_marked(unit) else found).append(unit)
    return (*found, *marked[: most - len(found)])


def as_text(ways: Sequence[Way]) -> str:
    """Ways for other processes to read; none at all stand for the whole node."""
    return json.dumps([[[w.least, w.most, *w.among] for w in way] for way in ways])


@lru_cache(256)
def of_text(text: str) -> tuple[Way, ...] | None:
    """What `as_text` wrote; None where it is something else.

    >>> of_text(as_text([(Want(("a", "b"), 1, 2),)]))
    ((Want(among=('a', 'b'), least=1, most=2),),)
    """
    try:
        read: Collection[Collection[list[object]]] = json.loads(text)
        return tuple(tuple(_want(words) for words in way) for way in read)
    except (TypeError, ValueError):
        return None


def _want(words: list[object]) -> Want:
    least, most, *among = words
    if not isinstance(least, int) or not isinstance(most, int):
        raise ValueError("no numbers of units")
    return Want(tuple(map(str, among)), least, most)
