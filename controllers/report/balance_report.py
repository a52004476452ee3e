# SPDX-License-Identifier: MIT
"""Which shares devices had in a run, what moves have cost and gained: a line, and plain data."""
from __future__ import annotations

from dataclasses import asdict, dataclass

from controllers.report.duration import duration


@dataclass(frozen=True)
class Shares:
    """The shares of all devices, in order of rank, from a step on."""

    step: int
    shares: tuple[float, ...]


@dataclass(frozen=True)
class BalanceReport:
    """What came of moving the cuts between devices.

    mode: "start" or "dynamic".  history: the shares from the beginning on, one more than `moves`.
    first_s, last_s: kernels' time of a step on the slowest device, in the first window and in the
        last one; 0 where there was none.
    spent_s: what the moves have taken, beside the report's `seconds`.
    why: why the last window has led to no move, or why there was none.
    """

    mode: str
    history: tuple[Shares, ...]
    first_s: float
    last_s: float
    spent_s: float
    why: str

    @property
    def moves(self) -> int:
        """How often the field was divided anew."""
        return len(self.history) - 1

    @property
    def gain(self) -> float:
        """How many times as fast the slowest device is now."""
        return self.first_s / self.last_s if self.last_s else 1.0

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return {**asdict(self), "moves": self.moves, "gain": self.gain}

    def __str__(self) -> str:
        """
        >>> history = Shares(0, (0.5, 0.5)), Shares(40, (0.75, 0.25))
        >>> print(BalanceReport("start", history, 0.03, 0.02, 0.1, "settled"))
        balance: 1 move in 100 ms, the slowest device 1.50 times as fast; settled
        """
        moves = f"{self.moves} move{'s' * (self.moves != 1)}"
        gained = f" in {duration(self.spent_s)}, the slowest device {self.gain:.2f} times as fast"
        return f"balance: {moves}{gained if self.moves else ''}; {self.why}"
