# SPDX-License-Identifier: MIT
"""Repeats: stages of a step that are done again and again within it, until something holds."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, TypeAlias

from controllers.program.identifier import check_identifier
from hitmap.argument import whole, wrong

Until: TypeAlias = Callable[[Any], bool]
NOW = ("step", "time", "count", "repeats")  # what is seen next to results, which have other names


@dataclass(frozen=True)
class Repeat:
    """The stages from `first` to before `end`, in order, again and again within each step.

    at_most: so often; without `until` exactly so often.
    until: is asked after every `check_every` times, and the last time, with the results by then:
        `lambda now: now.residual < 1e-4`; next to them are `now.step` and `now.time`, as the step
        began, and `now.count`, how often the stages were done.  Where it holds, that was the last
        time.
    """

    name: str
    first: int
    end: int
    at_most: int
    until: Until | None = None
    check_every: int = 1

    def __post_init__(self) -> None:
        check_identifier(self.name, "repeat")
        what = f"repeat {self.name!r}"
        if not 0 <= whole(self.first, f"{what}: first") < whole(self.end, f"{what}: end"):
            raise ValueError(
                f"{what} is of the stages {self.first} to before {self.end}, which are none; give "
                f"one at least"
            )
        whole(self.at_most, f"{what}: at_most", 1)
        whole(self.check_every, f"{what}: check_every", 1)
        if self.until is not None and not callable(self.until):
            remedy = "as lambda now: now.residual < 1e-4"
            raise wrong(f"{what}: until", "a function", self.until, remedy)

    @property
    def in_a_row(self) -> int:
        """How often the stages are done before anybody asks, at most."""
        return self.at_most if self.until is None else min(self.check_every, self.at_most)

    def asks(self, count: int) -> bool:
        """Whether `until` is asked when the stages were done so often."""
        return self.until is not None and (
            count % self.check_every == 0 or count == self.at_most
        )

    def holds(self, now: SimpleNamespace) -> bool:
        """What `until` says of that."""
        assert self.until is not None, "it is asked"
        return bool(self.until(now))


def check_repeats(repeats: Sequence[Repeat], n_stages: int, renames: Sequence[str]) -> None:
    """ValueError where repeats are not apart from each other, within so many stages."""
    end = 0
    for repeat in repeats:
        if repeat.first < end or repeat.end > n_stages:
            raise ValueError(
                f"repeat {repeat.name!r} is of the stages {repeat.first} to before {repeat.end}, "
                f"but there are {n_stages}, and {end} of them come before it; give repeats in "
                f"order, one after another"
            )
        end = repeat.end
    names = [repeat.name for repeat in repeats]
    if len({*names}) < len(names):
        raise ValueError(f"two repeats have one name: {', '.join(names)}; rename one of them")
    if repeats and renames:
        raise ValueError(
            f"repeat {names[0]!r} is in a step that renames a field to {renames[0]!r}, while a "
            f"repeat writes on the buffers of its own fields; let a stage copy it"
        )


def moved(repeats: Sequence[Repeat], n_parts: Sequence[int]) -> Iterator[Repeat]:
    """The repeats of a program each of whose stages became so many.

    >>> [(one.first, one.end) for one in moved([Repeat("r", 1, 2, 9)], [2, 3, 1])]
    [(2, 5)]
    """
    for repeat in repeats:
        yield replace(
            repeat, first=sum(n_parts[: repeat.first]), end=sum(n_parts[: repeat.end])
        )
