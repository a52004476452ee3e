# SPDX-License-Identifier: MIT
"""The one-off programs of an engine that are bound, to be done again."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

from controllers.array.lowering import Lowered
from controllers.array.one_off import OneOff
from controllers.array.pending import Pending
from controllers.array.streamed_one_off import StreamedOneOff
from controllers.array.streams import Streams
from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.memory.ledger import MemoryCapError
from controllers.placement.placement import failing_together
from hitmap.comm import Communicator

MOST_BOUND = 256        # assignments that are kept


class Bound:
    """By keys, equal for what one kernel computes; those that were used last are kept."""

    def __init__(
        self,
        engine: Engine,
        executors: Mapping[int, Executor],
        messages: Communicator,
        pending: Pending,
        streams: Streams | None = None,
    ) -> None:
        self._engine, self._executors, self._messages = engine, executors, messages
        self._pending, self._streams = pending, streams
        self._known: OrderedDict[object, OneOff | StreamedOneOff] = OrderedDict()

    def __str__(self) -> str:
        """For people; "" where there is none."""
        lines = [f"  {one}" for one in dict.fromkeys(map(str, self._known.values()))]
        return "\n".join(["", "", "array expressions", *lines]) if lines else ""

    def get(self, key: object, lowered: Callable[[], Lowered]) -> OneOff | StreamedOneOff:
        """What has this key, bound now where that is its first use.  Collective."""
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            return found
        try:
            found = self._made(lowered)
        except MemoryCapError as error:
            if self._streams is None or self._streams.is_on:
                raise
            self._streams.begin(error)
            found = self._made(lowered)
        self._known[key] = found
        if len(self._known) > MOST_BOUND:
            self._pending.finish()
            self._known.popitem(last=False)[1].close()
        return found

    def _made(self, lowered: Callable[[], Lowered]) -> OneOff | StreamedOneOff:
        with failing_together(self._messages):
            if self._streams is not None and self._streams.is_on:
                self._pending.finish()
                return StreamedOneOff(lowered(), self._engine, self._streams, self._messages)
            return OneOff(lowered(), self._engine, self._executors, self._messages)

    def close(self) -> None:
        """Give back what belongs to MPI, when nothing is under way any more."""
        self._pending.finish()
        for one in self._known.values():
            one.close()
        self._known.clear()
