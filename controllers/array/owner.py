# SPDX-License-Identifier: MIT
"""What array expressions ask of the computation that they belong to."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol


class Owner(Protocol):
    """What a computation does around each call."""

    def begin(
        self, verb: str, facts: Callable[[], Mapping[str, object]], mine: tuple[int, ...] = ()
    ) -> Sequence[tuple[int, ...]]:
        """All ranks are here, with the same facts; RuntimeError where fields cannot be read.

        What each of them has as `mine`.
        """

    def apply_each(
        self, function: Any, arrays: Mapping[str, Any], numbers: Mapping[str, float]
    ) -> Any:
        """What a function of items makes of arrays, some of them of this owner.  Collective."""

    def tear(self, verb: str, fields: Iterable[str]) -> None:
        """The verb was broken off: some cells of these may be set, others not."""
