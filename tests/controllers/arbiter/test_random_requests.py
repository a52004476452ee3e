# SPDX-License-Identifier: MIT
"""Random requests of several processes: each gets what the rules say, and all get their turn."""
from __future__ import annotations

import random
from pathlib import Path

import pytest
from arbiter_jobs import CORES, DEVICES, drawn
from sample import sample

from controllers.arbiter import Arbiter, Lease, Request, Want

N_ARBITERS = 4


class Play:
    """Requests and leases of several arbiters of one folder, in the order in which they came."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.draws = random.Random(seed)
        self.arbiters = [Arbiter(folder) for _ in range(N_ARBITERS)]
        self.waiting: list[tuple[list[list[Want]], Request]] = []
        self.leases: list[Lease] = []
        self.free = {*CORES, *DEVICES}

    def ask(self) -> None:
        ways = drawn(self.draws)
        request = self.draws.choice(self.arbiters).request(ways)
        self.waiting.append((ways, request))
        self.poll(len(self.waiting) - 1)

    def poll(self, number: int) -> None:
        """Exactly the first way is given that what is free allows, less what others wait for."""
        ways, request = self.waiting[number]
        left = self.free - self.kept(number)
        possible = [k for k, way in enumerate(ways) if all(_n(w, left) >= w.least for w in way)]
        lease = request.poll()
        assert (lease is None) == (not possible)
        if lease is None:
            return
        assert lease.way == possible[0]
        for want, units in zip(ways[lease.way], lease.units):
            assert len(units) == min(want.most, _n(want, left)) and {*units} <= left
            assert {*units} <= {*want.among}
            self.free -= {*units}
        self.leases.append(lease)
        del self.waiting[number]

    def kept(self, number: int) -> set[str]:
        """What those who came before wait for, the first ones named of what is free."""
        kept: set[str] = set()
        for ways, _ in self.waiting[:number]:
            left = self.free - kept
            for want in (want for way in ways for want in way):
                kept |= {*[unit for unit in want.among if unit in left][: want.least]}
        return kept

    def release(self) -> None:
        lease = self.leases.pop(self.draws.randrange(len(self.leases)))
        lease.release()
        self.free |= {unit for units in lease.units for unit in units}


def _n(want: Want, units: set[str]) -> int:
    return len(units & {*want.among})


@pytest.mark.parametrize("seed", sample(range(100), 20))
def test_requests_get_what_the_rules_say_and_all_get_their_turn(seed: int, tmp_path: Path) -> None:
    play = Play(tmp_path / "arbiter", seed)
    for _ in range(120):
        draw = play.draws.random()
        if draw < 0.35:
            play.ask()
        elif draw < 0.7 and play.waiting:
            play.poll(play.draws.randrange(len(play.waiting)))
        elif play.leases:
            play.release()
    while play.waiting:     # the first one that waits is served when all is given back
        while play.leases:
            play.release()
        first = play.waiting[0]
        play.poll(0)
        assert not play.waiting or play.waiting[0] is not first
    for arbiter in play.arbiters:
        arbiter.close()
