# SPDX-License-Identifier: MIT
"""Which shares devices had in a run, what moves have cost and gained: a line, and plain data."""
from __future__ import annotations

from dataclasses import asdict, dataclass

from controllers.report.duration import duration

MOST_SHARES = 8     # of a line
MOST_LINES = 6


@dataclass(frozen=True)
class Shares:
    """The shares of all devices, in order of rank, from a step on.

    gain_s, cost_s: what the move to them was to gain in the steps that were left, and to cost.
    """

    step: int
    shares: tuple[float, ...]
    gain_s: float = 0.0
    cost_s: float = 0.0

    def __str__(self) -> str:
        """
        >>> print(Shares(6, (0.75, 0.25), 1.2, 0.1))
        from step 6 on: 75.0%, 25.0% (to gain 1.2 s for 100 ms)
        """
        shares = ", ".join(f"{share:.1%}" for share in self.shares[:MOST_SHARES])
        more = ", ..." if len(self.shares) > MOST_SHARES else ""
        gain = f" (to gain {duration(self.gain_s)} for {duration(self.cost_s)})"
        return f"from step {self.step} on: {shares}{more}{gain if self.gain_s else ''}"


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
          from step 0 on: 50.0%, 50.0%
          from step 40 on: 75.0%, 25.0%
        """
        moves = f"{self.moves} move{'s' * (self.moves != 1)}"
        gained = f" in {duration(self.spent_s)}, the slowest device {self.gain:.2f} times as fast"
        lines = [f"balance: {moves}{gained if self.moves else ''}; {self.why}"]
        lines += [f"  {one}" for one in self.history[-MOST_LINES:]]
        return "\n".join(lines)
