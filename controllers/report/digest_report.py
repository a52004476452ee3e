# SPDX-License-Identifier: MIT
"""The digests that a run has taken of its fields: a line for each field, and plain data."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class AnyDigest(Protocol):
    """Of the cells of a field."""

    @property
    def n_nan(self) -> int: ...
    @property
    def plain(self) -> list[object]: ...


@dataclass(frozen=True)
class DigestReport:
    """taken: the step, and by field its digest, after every so many steps."""

    every: int
    taken: Sequence[tuple[int, Mapping[str, AnyDigest]]]

    def __str__(self) -> str:
        """The last ones, and since when there are NaNs."""
        if not self.taken:
            return f"digests every {self.every} steps: none yet"
        step, newest = self.taken[-1]
        first = next((n for n, each in self.taken if any(d.n_nan for d in each.values())), None)
        nan = "" if first is None else f"; NaN first seen after step {first}"
        lines = [f"  {name}: {one}" for name, one in newest.items()]
        head = f"digests every {self.every} steps, the last after step {step}{nan}"
        return "\n".join([head, *lines])

    def as_dict(self) -> dict[str, object]:
        """Plain values, as for JSON."""
        taken = [
            {"step": step, **{name: one.plain for name, one in digests.items()}}
            for step, digests in self.taken
        ]
        return {"every": self.every, "taken": taken}
