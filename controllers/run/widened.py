# SPDX-License-Identifier: MIT
"""How wide halos are, and how chunks are cut, which may change between two runs of the engine."""
from __future__ import annotations

import gc
import time
from dataclasses import replace

from controllers.balance.balancer import Balancer
from controllers.calls.call import collective, refuse_together
from controllers.calls.watchdog import Watched
from controllers.plan import ChunkPlan
from controllers.report.pipeline import PipelineLog
from controllers.report.timings import Timings
from controllers.run.interruption import Interruption
from controllers.run.overview import Overview
from controllers.tuning.sizes import TIMED, Seen, Size, SizeChooser
from controllers.tuning.widths import WidthChooser
from hitmap.argument import whole


class Widened(Overview):
    """Exchanges halos after as many steps as is wanted, or as turns out to be fastest."""

    _balancer: Balancer | None
    _chooser: WidthChooser | SizeChooser | None
    _chunks_log: PipelineLog | None     # of fields that pass through in chunks
    _size: Size | None                  # of chunks that are cut anew while they run
    _timings: Timings
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

    def _new_chooser(self) -> WidthChooser | SizeChooser | None:
        now, self._size = self._assembly, None
        plan, search, chunking = (
            now.engine.plan, now.terms.execution.halo_width_search, now.chunking
        )  # fmt: skip
        if chunking is not None and isinstance(plan, ChunkPlan):
            sizes = chunking.sizes(plan, now.relay.widths)
            found = SizeChooser(sizes, self.comm, self._seen_of, chunking.kept)
            if chunking.cuts_anew(plan):
                self._size = found.size
            return found
        if search is None:
            return None
        return WidthChooser(now.relay.widths, plan.halo_width, self.comm, search)

    def _seen_of(self, size: Size) -> Seen | None:
        """What was seen of passes of this size on this rank, if of enough."""
        found = None if self._chunks_log is None else self._chunks_log.report()
        if found is None or found.steps != size.span or found.passes < TIMED:
            return None
        between_s = found.seconds - found.pipeline.ends_s(found.chunks)
        return Seen(between_s / found.passes / found.steps, found.pipeline.kind)

    @property
    def _finding(self) -> WidthChooser | SizeChooser | None:
        """Who is finding out the halo width, if anybody is; shares come first, and stay so long."""
        balances = self._balancer is not None and not self._balancer.is_calm
        is_over = self._chooser is None or self._chooser.over
        return None if balances or is_over else self._chooser

    def _widen(self, interruption: Interruption) -> None:
        """Take the width or the size that is tried next, or the best one."""
        chooser = self._chooser
        if isinstance(chooser, SizeChooser) and self._size is not None:
            if chooser.size == self._size:
                return
            start = time.perf_counter()
            self._take_size(chooser.size)
            chooser.took(time.perf_counter() - start)
        elif chooser is not None and chooser.width != self.halo_width:
            self._take_width(chooser.width)
        else:
            return
        self.calls.go_on()
        interruption.follow(self._engine.course)

    def _take_size(self, size: Size) -> None:
        """Cut all chunks otherwise: their images stay, slots are made anew.  Collective."""
        before = self._assembly
        old, chunking = before.engine, before.chunking
        assert chunking is not None, "fields pass through"
        self._arrays.moves()
        with self.state.setting("run", self.fields, is_lost=True):
            before.relay.leave(old)
            old.release()
            gc.collect()        # engines refer to themselves
            now = before.cut_anew(size, self._messages, self._watched)
            now.engine.take_over(old)
        self._assembly, self._size = now, size
        self._arrays.moved(now.engine)
        self._timings.new_places()
