# SPDX-License-Identifier: MIT
"""Which devices a run goes on with: those of the best prospect, and others where a trial pays.

    set           model    seen
    GPU           1.00 ms  1.04 ms     where it begins
    GPU and CPU   0.97 ms  1.21 ms     tried for 9 pieces of steps, and left
    CPU           9.10 ms              cannot be better

Arithmetic alone: from the same numbers all ranks choose the same.  Each step of a trial is one of
the run's; what trials take more than the best set would is at most BUDGET of what is left.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from controllers.balance.prospects import Devices, Prospect

CLEARLY = 0.9       # of the best device alone: where models are believed without a trial, ...
# ... and where they are guesses: of devices 4 times as fast, exchanging would count 4 times
CLEARLY_BY_CLASS = 0.6
WORTH = 0.01        # of a step: what less would gain is not tried
BUDGET = 0.01       # of the seconds that are left, for all trials together
PIECES = 9          # of a set that is looked at, of which the median counts
FEW, FAR = 3, 1.3   # ... and so many where all take so many times longer than the best set
VERY_FAR = 4        # ... and where one is
LAUNCHES, PIECE_S = 10, 0.01    # of a piece, at least
MOVES = 2           # of a trial: there and back; one more where shares have to be found


@dataclass(frozen=True)
class Ahead:
    """What is left of a run: steps, and the seconds that dividing the field anew takes."""

    n_steps: int
    move_s: float


class Chooser:
    """Chooses among prospects, the best one first, as trials show what they are.

    current: the devices that compute now.
    """

    def __init__(
        self, found: Sequence[Prospect], *, is_guess: bool = False, lost: int = 0
    ) -> None:
        """`lost`: steps that several devices lose by a search among widths of their halos."""
        self._lost = lost
        self.current = first_choice(found, is_guess=is_guess)
        self.n_trials = 0
        self.spent_s = 0.0      # beyond what the best set would have taken
        self._trial_s = 0.0     # of the moves to what is tried now
        self.refused: dict[Devices, str] = {}
        self._pieces: dict[Devices, list[float]] = {}
        self._far: set[Devices] = set()     # which are slower by so much that a few are enough
        self.expect(found)

    def expect(self, found: Sequence[Prospect]) -> None:
        """The prospects are these from now on; what was seen holds."""
        self._prospects = {one.devices: one for one in found}

    @property
    def prospects(self) -> list[Prospect]:
        """All, the best one first."""
        return [*self._prospects.values()]

    def refuse(self, devices: Devices, why: str) -> None:
        """These cannot compute together."""
        self.refused[devices] = why

    def first_again(self, *, is_guess: bool) -> Devices | None:
        """Where to begin, where what was chosen is refused; None where nothing is left."""
        left = [one for one in self.prospects if one.devices not in self.refused]
        self.current = first_choice(left, is_guess=is_guess) if left else self.current
        return self.current if left else None

    def saw(self, seconds: float) -> None:
        """A piece of steps of the current set has taken so long a step."""
        pieces = self._pieces.setdefault(self.current, [])
        others = [s for devices, s in self.all_seen.items() if devices != self.current]
        pieces.append(seconds)
        ratio = min(pieces) / min(others) if others else 0.0
        if ratio > VERY_FAR or (ratio > FAR and len(pieces) >= FEW):
            self._far.add(self.current)

    def begin(self, seen: Mapping[Devices, float]) -> None:
        """Earlier runs have seen this, of prospects: the best of it is where this one begins."""
        known = {devices: s for devices, s in seen.items() if devices in self._prospects}
        self._pieces = {devices: [seconds] * PIECES for devices, seconds in known.items()}
        if known:
            self.current = self._best()[0]

    def seen(self, devices: Devices) -> float | None:
        """Seconds of a step, where enough was seen."""
        pieces = self._pieces.get(devices, [])
        return median(pieces) if len(pieces) >= PIECES or devices in self._far else None

    @property
    def all_seen(self) -> dict[Devices, float]:
        """The seconds of all sets of which enough was seen."""
        found = {devices: self.seen(devices) for devices in self._pieces}
        return {devices: seconds for devices, seconds in found.items() if seconds is not None}

    @property
    def best_s(self) -> float:
        """Seconds of a step with the best set that was seen; else as the model has it, at most."""
        return self._best()[1]

    def model(self, devices: Devices) -> float:
        """Seconds of a step, as the model has it."""
        return self._prospects[devices].seconds

    def expected(self, devices: Devices) -> float:
        """Seconds of a step, as far as is known."""
        seen = self.seen(devices)
        return self._prospects[devices].seconds if seen is None else seen

    @property
    def is_seen(self) -> bool:
        """Whether enough was seen of the current set."""
        return self.seen(self.current) is not None

    def looks(self, ahead: Ahead) -> bool:
        """Whether the current set is to be looked at: it is on trial, or another may be."""
        if self.is_seen:
            return False
        return bool(self._trial_s) or self._next(ahead, self._best()[1]) is not None

    def choose(self, ahead: Ahead) -> Devices | None:
        """The devices to go on with, where these are others; the current set has been seen."""
        best, best_s = self._best()
        now_s = self.seen(self.current) or best_s
        n_seen = len(self._pieces.get(self.current, ()))
        if self._trial_s:
            self.spent_s += self._trial_s + n_seen * piece(now_s) * max(0.0, now_s - best_s)
            self._trial_s = 0.0
        found = self._next(ahead, best_s)
        if found is not None:
            self.n_trials += 1
            self._trial_s = MOVES * ahead.move_s + self._search_s(found)
            return found.devices
        if best != self.current and (now_s - best_s) * ahead.n_steps > ahead.move_s:
            return best
        return None

    def _search_s(self, one: Prospect) -> float:
        """What a set loses before it has found the width of its halos."""
        return self._lost * one.seconds if len(one.devices) > 1 else 0.0

    def _best(self) -> tuple[Devices, float]:
        """The best set that was seen; else the current one, as the model has it."""
        known = {d: s for d, s in self.all_seen.items() if d not in self.refused}
        if not known:
            return self.current, self._prospects[self.current].most_s
        best = min(known, key=lambda devices: (known[devices], len(devices)))
        return best, known[best]

    def _next(self, ahead: Ahead, best_s: float) -> Prospect | None:
        """What to try next: of what may be better, and is affordable, what promises most."""
        left_s = BUDGET * ahead.n_steps * best_s - self.spent_s
        for one in self.prospects:
            if one.devices == self.current or one.devices in self.refused:
                continue
            if self.seen(one.devices) is not None or one.least_s > (1 - WORTH) * best_s:
                continue
            slower_s = max(0.0, one.seconds - best_s)
            price_s = (MOVES + (len(one.devices) > 1)) * ahead.move_s
            n_pieces = FEW if one.seconds > FAR * best_s else PIECES
            price_s += n_pieces * piece(one.seconds) * slower_s + self._search_s(one)
            if price_s <= left_s and price_s < (best_s - one.least_s) * ahead.n_steps:
                return one
        return None


def piece(seconds: float) -> int:
    """Steps of a piece, each of which takes so long.

    >>> piece(1e-4), piece(0.5)
    (100, 10)
    """
    return max(LAUNCHES, math.ceil(PIECE_S / seconds))


def first_choice(found: Sequence[Prospect], *, is_guess: bool = False) -> Devices:
    """Where to begin: with one device, unless several promise to be clearly faster.

    >>> first_choice([Prospect((0, 1), 0.95, 0.9, 1.2), Prospect((0,), 1.0, 0.9, 1.2)])
    (0,)
    >>> first_choice([Prospect((0, 1), 0.8, 0.5, 0.9), Prospect((0,), 1.0, 0.9, 1.2)])
    (0, 1)
    """
    singles = [one for one in found if len(one.devices) == 1] or found
    single = min(singles, key=lambda one: one.seconds)
    best = min(found, key=lambda one: one.seconds)
    limit = CLEARLY_BY_CLASS if is_guess else CLEARLY
    return best.devices if best.seconds < limit * single.seconds else single.devices
