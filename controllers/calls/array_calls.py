# SPDX-License-Identifier: MIT
"""What a computation does around each call of its array expressions."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from controllers.calls.call import Calls
from controllers.calls.state import State
from controllers.program.program import Program
from hitmap.agreement import on_all_ranks


class ArrayCalls:
    """Collective calls that cost little where there is nobody to agree with."""

    def __init__(self, calls: Calls, state: State) -> None:
        self._calls, self._state = calls, state

    def begin(
        self, verb: str, facts: Callable[[], Mapping[str, object]], mine: tuple[int, ...] = ()
    ) -> Sequence[tuple[int, ...]]:
        """All ranks are here, with the same facts; RuntimeError where fields cannot be read.

        What each of them has as `mine`.
        """
        self._state.check_idle(verb)
        self._state.meet("ends")
        everyone: Sequence[tuple[int, ...]] = (mine,)
        if not self._calls.alone:
            with self._calls.remembered(verb):
                same = {**facts(), **self._state.facts("reads")}
                everyone = self._calls.agree_telling(verb, same, mine)
        self._state.check(verb, "reads")
        return everyone

    def apply_each(
        self, function: Any, arrays: Mapping[str, Any], numbers: Mapping[str, float]
    ) -> Any:
        """TypeError: the fields of a computation are divided otherwise."""
        raise on_all_ranks(TypeError(
            f"{function.__name__} is a function of items, and fields of a computation have none; "
            f"take their arrays, by np.asarray, or those of a workspace"
        ))  # fmt: skip

    def tear(self, verb: str, fields: Iterable[str]) -> None:
        """The verb was broken off: some cells of these may be set, others not."""
        self._state.tear(verb, fields)


def changed(program: Program) -> tuple[str, ...]:
    """The fields that steps change."""
    return tuple(dict.fromkeys((*program.written, *program.renames, *program.renames.values())))
