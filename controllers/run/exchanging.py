# SPDX-License-Identifier: MIT
"""Between two windows of steps: in which way halos are exchanged from here on."""
from __future__ import annotations

from dataclasses import replace

from controllers.engine import Engine, PacedEngine
from controllers.run.assembly import Draft
from controllers.run.balanced import Balanced
from controllers.run.interruption import Interruption
from controllers.run.looks import AllLooks
from controllers.run.ways import Ways
from controllers.settings.request import Request
from hitmap.redistribute import Redistribution


class Exchanging(Balanced):
    """Tries other ways to exchange while steps run, if that was asked for."""

    def _new_ways(self) -> Ways | None:
        """Once it is known how wide halos are.  Collective."""
        engine, execution = self._assembly.engine, self._request.execution
        is_usual = type(engine) in (Engine, PacedEngine)
        tried = execution.exchange == "auto" and is_usual and not execution.tune
        is_open = self._chooser is not None and not self._chooser.over
        return Ways(engine, self._messages) if tried and not is_open else None

    def _divide(self, request: Request, draft: Draft) -> Redistribution:
        moves = super()._divide(request, draft)
        self._ways = self._new_ways()
        return moves

    @property
    def _trying(self) -> Ways | None:
        """Who has a say in how steps are run now: once devices and shares are settled."""
        return None if self._chooses or not self._tries else self._ways

    @property
    def _tries(self) -> bool:
        """Whether there are ways left to try."""
        return self._ways is not None and not self._ways.over

    def _to_trial(self, left: int, looks: AllLooks | None) -> int:
        """How many of the steps left to run before another way may be taken."""
        ways = self._trying
        if ways is None or (looks is not None and self._engine.plan.span > 1):
            return left
        return ways.until_decision(left)

    def _take_width(self, width: int) -> None:
        if self._ways is not None and not self._ways.over:   # tried with another width
            self._ways.end()
            self._ways = None
        super()._take_width(width)

    def _change_ways(self, interruption: Interruption) -> None:
        """Go on in another way, where that is to be tried, or was found.  Collective."""
        if self._ways is None and self._chooser is not None:
            self._ways = self._new_ways()
        ways = self._trying
        engine = None if ways is None else ways.next_engine(self._engine)
        if engine is None:
            return
        self._arrays.moves()
        self._assembly = replace(self._assembly, engine=engine)
        self._assembly.relay.replaced(engine)
        self._arrays.moved(engine)
        self._watched.engine = engine
        if self._request.execution.limit_s is not None:
            engine.watch()
        interruption.follow(engine.course)
