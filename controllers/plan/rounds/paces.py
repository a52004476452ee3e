# SPDX-License-Identifier: MIT
"""Plans of rounds that each place divides into launches in its own way.

How many time steps a launch should have is a matter of a device, how many there are between two
exchanges one of the network.  A round of 24 steps is two launches of 12 on one device and three of
8 on another.  A step of such a plan is a whole round; within it a place has launches and turns of
its buffers of its own, and places meet where a round ends.
"""
# docs/decisions/0059-places-divide-rounds-by-themselves.md
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, Union

from controllers.plan.operation import TileKey
from controllers.plan.rounds.rounds import RoundOutline
from controllers.program.program import Program
from controllers.program.sweep import Sweep, Version
from hitmap.cut import split_even
from hitmap.layout import Layout

Steps: TypeAlias = Union[int, Sequence[int]]    # of a launch, at all places or at each
Pace: TypeAlias = "tuple[int, ...]"     # the time steps of each launch of a round at a place


def pace_of(width: int, length: int) -> Pace:
    """A round of `width` steps in as few launches of at most `length` as there can be, alike.

    >>> pace_of(24, 12), pace_of(24, 8), pace_of(10, 4)
    ((12, 12), (8, 8, 8), (4, 3, 3))
    """
    n_launches = -(-width // length)
    cuts = split_even(width, n_launches)
    return tuple(end - start for start, end in zip(cuts, cuts[1:]))


def shortened_pace(pace: Pace, n_steps: int, period: int) -> Pace:
    """The launches of a place that end a run with fewer steps than a round, 1 or more.

    Buffers turn as they do in a round: after `period` launches they are where they were.  Where
    they would not a launch is divided in two, or, of one step, 0 stands for a copy that turns them.

    >>> shortened_pace((8, 8, 8), 20, 2), shortened_pace((8, 8, 8), 7, 2)
    ((8, 8, 4), (7,))
    >>> shortened_pace((12, 12), 7, 2), shortened_pace((12, 12), 1, 2)
    ((4, 3), (1, 0))
    """
    found: list[int] = []
    for steps in pace:
        if n_steps > sum(found):
            found.append(min(steps, n_steps - sum(found)))
    while (len(pace) - len(found)) % period:
        half = found[-1] // 2
        found[-1:] = [found[-1] - half, half]
    return tuple(found)


class PacedOutline(RoundOutline):
    """What is known of such a plan before its operations are recorded.

    paces: of each place; all have as many steps, and some launch has several.
    """

    steps_are_rounds = True

    def __init__(
        self, program: Program, layout: Layout, periodic: tuple[bool, ...], *args: Any,
        paces: Sequence[Pace], **options: Any,
    ) -> None:  # fmt: skip
        self.paces = tuple(paces)
        self._shorter: dict[int, Sweep] = {}
        super().__init__(
            program, layout, periodic, *args, n_launches=max(map(len, paces)),
            steps_per_launch=max(map(max, paces)), **options,
        )  # fmt: skip
        period = self.liveness.period
        self.n_phases = math.lcm(*(period // math.gcd(period, len(pace)) for pace in self.paces))

    @property
    def halo_width(self) -> int:
        return sum(self.paces[0])

    @property
    def longest(self) -> tuple[int, ...]:
        return tuple(max(pace) for pace in self.paces)

    @property
    def span(self) -> int:
        return self.halo_width

    @property
    def step_name(self) -> str:
        return self.round_name

    def launches_text(self, place: int) -> str:
        return f", launches of {', '.join(map(str, self.paces[place]))} steps"

    def launches_of(self, place: int) -> int:
        return len(self.paces[place])

    def last_of(self, phase: int, place: int) -> int:
        return (phase + 1) * self.launches_of(place) - 1

    def first_of(self, phase: int, place: int) -> int:
        return phase * self.launches_of(place)

    def newest(self, field: str, n_done: int, place: int) -> TileKey:
        return self.tile(Version(field, 0), self.first_of(n_done, place), place)

    def handed(self, version: Version, phase: int, place: int) -> TileKey:
        at = self.last_of(phase, place) if version.number else self.first_of(phase, place)
        return self.tile(version, at, place)

    def sweep_at(self, number: int, launch: int, place: int) -> Sweep:
        return self._of_steps(self.paces[place][launch])

    def sweeps_of(self, places: Sequence[int]) -> Sequence[Sweep]:
        counts = dict.fromkeys(count for place in places for count in self.paces[place])
        return [self._of_steps(count) for count in counts]

    def may_fold(self, phase: int, place: int) -> bool:
        """The first launch is the step that ends a run, with fewer than a round has."""
        return self.launch_of(phase, place) == 0

    def _of_steps(self, count: int) -> Sweep:
        if count not in self._shorter:
            self._shorter[count] = self.shortened(self.sweeps[0], count)
        return self._shorter[count]

    def _number(self, sweep: Sweep) -> int:
        return 0
