# SPDX-License-Identifier: MIT
"""When a run ends: after so many steps, at a time, or when something holds of the results."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, Union

from controllers.engine import Engine
from controllers.program.scalars import TIME_STEP
from controllers.run.results import Results
from hitmap.agreement import on_all_ranks
from hitmap.argument import number, whole, wrong

Until: TypeAlias = Union[float, Callable[[Results], Any], None]


@dataclass(frozen=True)
class Ending:
    """`n_steps` is the most there are, None where only `time` says when it is enough.

    holds: asked after every `check_every` steps, on rank 0, with the results.  whole: of a part of
    a run, the step at which that has begun, and the one at which it ends at the latest, if any.
    """

    n_steps: int | None
    time: float | None = None
    holds: Callable[[Results], Any] | None = None
    check_every: int = 1
    whole: tuple[int, int | None] | None = None

    @classmethod
    def of(
        cls, n_steps: int | None, until: Until, check_every: int | None, at_most: int | None
    ) -> Ending:
        """From the arguments of `Computation.run`; TypeError or ValueError where they are none."""
        if at_most is not None:
            at_most = whole(at_most, "at_most", 0)
        if until is None:
            if n_steps is None or at_most is not None or check_every is not None:
                given = "neither" if n_steps is None else "at_most or check_every beside n_steps"
                raise ValueError(
                    f"a run takes n_steps, or until= with at_most= and check_every=; got {given}"
                )
            return cls(whole(n_steps, "n_steps"))
        if n_steps is not None:
            raise ValueError(
                f"a run takes n_steps or until=, got both; say at_most={n_steps} beside until="
            )
        if callable(until):
            if at_most is None:
                raise ValueError("a run until a function holds may never end; give at_most=, too")
            return cls(at_most, None, until, whole(check_every or 1, "check_every", 1))
        if check_every is not None:
            raise ValueError("check_every= is for until= a function; a time needs none")
        if isinstance(until, bool):
            raise wrong("until", "a time, or a function of results", until)
        time = float(number(until, "until"))
        if not math.isfinite(time):
            raise ValueError(f"until must be a finite time, got {time}; say n_steps instead")
        return cls(at_most, time)

    @property
    def facts(self) -> dict[str, object]:
        """What all ranks must give alike."""
        until = "a function" if self.holds is not None else self.time
        return {"n_steps": self.n_steps, "until": until, "check_every": self.check_every}

    def limited(self, n_steps: int) -> Ending:
        """The same after so many steps at most; instead of as many as there are."""
        return replace(self, n_steps=n_steps)

    def part(self, first: int, done: int, most: int | None) -> Ending:
        """What is left of it after `done` steps from the step `first` on, or `most` steps of that.

        >>> Ending(100).part(first=20, done=30, most=None).n_steps
        70
        """
        left = None if self.n_steps is None else self.n_steps - done
        counts = [count for count in (left, most) if count is not None]
        last = None if self.n_steps is None else first + self.n_steps
        return replace(self, n_steps=min(counts, default=None), whole=(first, last))

    def steps(self, engine: Engine) -> int | None:
        """How many steps there are at most from now on; None where steps themselves say."""
        if self.time is None:
            return self.n_steps
        numbers, done = engine.numbers, engine.n_steps
        if numbers.by_steps:
            return self.n_steps if numbers.time(done) < self.time else 0
        dt = numbers.parameters.get(TIME_STEP, 0.0)
        if not dt > 0:
            raise ValueError(
                f"until={self.time} is a time, but steps take none (dt is {dt}); give dt= to the "
                f"computation, or n_steps"
            )
        count = max(0, math.ceil((self.time - numbers.time(done)) / dt))
        while count > 0 and numbers.time(done + count - 1) >= self.time:
            count -= 1
        while numbers.time(done + count) < self.time:
            count += 1
        return count if self.n_steps is None else min(count, self.n_steps)

    def reached(self, engine: Engine) -> bool:
        """Whether it is the time."""
        return self.time is not None and engine.numbers.time(engine.n_steps) >= self.time


    def check_nearer(self, engine: Engine) -> None:
        """RuntimeError on all ranks where the time does not come any nearer."""
        dt = engine.numbers.step_time
        if not dt > 0:
            raise on_all_ranks(RuntimeError(
                f"the run until the time {self.time} does not come there: after step "
                f"{engine.n_steps}, at the time {engine.numbers.time(engine.n_steps)}, dt is {dt}; "
                f"look at the fields that it is made of"
            ))  # fmt: skip
