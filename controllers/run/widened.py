# SPDX-License-Identifier: MIT
"""How wide halos are, which may change between two runs of the engine: nothing else changes."""
from __future__ import annotations

from dataclasses import replace

from controllers.balance.balancer import Balancer
from controllers.calls.call import collective, refuse_together
from controllers.calls.watchdog import Watched
from controllers.report.pipeline import PipelineLog
from controllers.run.interruption import Interruption
from controllers.run.overview import Overview
from controllers.tuning.passes import PassChooser
from controllers.tuning.widths import WidthChooser
from hitmap.argument import whole


class Widened(Overview):
    """Exchanges halos after as many steps as is wanted, or as turns out to be fastest."""

    _balancer: Balancer | None
    _chooser: WidthChooser | PassChooser | None
    _chunks_log: PipelineLog | None     # of fields that pass through in chunks
    _watched: Watched

    @property
    def halo_width(self) -> int:
        """Time steps between two exchanges of halos, as it is now.  Not collective."""
        return self.plan.halo_width

    def use_halo_width(self, width: int) -> None:
        """From now on there are `width` time steps between two exchanges of halos.

        No tile is allocated for it: at most as many as the computation was made for, a multiple of
        the steps per launch; ValueError on all ranks else.  It ends a search for the best width.
        """
        self.state.check_idle("use_halo_width")
        count = refuse_together(self.comm, lambda: whole(width, "width", 1))
        self._use_halo_width(count)

    @collective("width", use="reads")
    def _use_halo_width(self, width: int) -> None:
        if width != self.halo_width:
            self._take_width(width)
        self._chooser = None

    def _take_width(self, width: int) -> None:
        """Let the engine of another width run the steps from now on.  Collective."""
        old, relay = self._assembly.engine, self._assembly.relay
        new = relay.engine(width)
        self._arrays.moves()
        new.take_over(old)
        self._assembly = replace(self._assembly, engine=new)
        self._watched.engine = new
        self._arrays.moved(new)
        if self._balancer is not None:
            self._balancer.follow(new)

    def _new_chooser(self) -> WidthChooser | PassChooser | None:
        now = self._assembly
        search = now.terms.execution.halo_width_search
        if search is None:
            return None
        first = now.engine.plan.halo_width
        if self._chunks_log is not None:
            look = self._chunks_log.report
            return PassChooser(now.relay.widths, first, self.comm, look, now.kept)
        return WidthChooser(now.relay.widths, first, self.comm, search)

    @property
    def _finding(self) -> WidthChooser | PassChooser | None:
        """Who is finding out the halo width, if anybody is; shares come first, and stay so long."""
        balances = self._balancer is not None and not self._balancer.rests
        is_over = self._chooser is None or self._chooser.over
        return None if balances or is_over else self._chooser

    def _widen(self, interruption: Interruption) -> None:
        """Take the width that is tried next, or the best one."""
        chooser = self._chooser
        if chooser is not None and chooser.width != self.halo_width:
            self._take_width(chooser.width)
            self.calls.go_on()
            interruption.follow(self._engine.course)
