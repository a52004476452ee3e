# SPDX-License-Identifier: MIT
"""Running steps: so many, to a time, or until something holds; and what they have found.

A run is one run of the engine, in which others look (run/looks.py).
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from controllers.calls.array_calls import changed
from controllers.calls.call import collective, refuse_together
from controllers.engine import Progress, RunLog
from controllers.integrity.message_error import MessageError
from controllers.placement.own_kernel import check_rest
from controllers.report.trace import Trace
from controllers.run.ending import Ending, Until
from controllers.run.finite import not_finite, watched_fields
from controllers.run.interruption import Interruption
from controllers.run.kept import Kept
from controllers.run.looks import AllLooks, Check, Look, Pause
from controllers.run.plotting import Plotting
from controllers.run.progress import Watcher, told_by
from controllers.run.results import Results
from controllers.settings.checkpoints import Checkpoint, Checkpoints
from controllers.settings.outputs import Given, Output
from controllers.settings.overrides import overrides
from controllers.settings.plots import PlotLike
from hitmap.argument import whole

KEEP_EVERY = 64     # steps between two times that fields are kept, to find where one went wrong
AT_ONCE = 1024      # steps of a run of which nobody knows how many there are


class Running(Plotting):
    """The verbs that run steps."""

    _trace: Trace | None

    def run(
        self,
        n_steps: int | None = None,
        progress: Watcher = None,
        *,
        until: Until = None,
        check_every: int | None = None,
        at_most: int | None = None,
        stop_if: bool | str | Sequence[str] = False,
        output: Given = None,
        checkpoint: Checkpoint = None,
        restart: str | None = None,
        restart_anyway: bool = False,
        plot: PlotLike = None,
        **scalars: float,
    ) -> Results | None:
        """Run `n_steps` steps, or `until` something; what the last one has found, if it names any.

        until: a time: no step begins at it or later, and where steps compute their own `dt` the
            last one ends there.  Or a function of the results (`Results`), which rank 0 asks after
            every `check_every` steps, and after `at_most`, where the run ends in any case:
            `run.run(until=lambda now: now.residual < 1e-6, check_every=10, at_most=10000)`.
        stop_if: True, or names of fields: FloatingPointError on all ranks, which names step and
            cell, once one of them has become NaN or infinite.  Looked at after every `check_every`
            steps, by default every 10; then the steps before are done again to find the first one,
            from a copy of the fields where there is memory for it.
        scalars: new values of parameters of the program, from now on; nothing is built for them.
        progress: True for a bar of rank 0 on standard error, a function that is called with the
            steps done and their total, or a bar such as tqdm's, with `update` and `total`; it is
            told now and then how far this rank is.

        output: where moments of the run go while it runs: `"run.zarr"`, its beginning and its end,
            `("run.zarr", ct.every(steps=100))`, also `time=` or `seconds=`, or `ct.output(...)`,
            which says which fields and cells.  OSError on all ranks, at the latest where the next
            moment is taken, if one cannot be written (docs/output.md).
        checkpoint: the folder in which the state is kept every 10 minutes and when the run ends, or
            `("run.checkpoint", ct.every(seconds=60))`, or `ct.every(steps=1000)`; the last two are
            kept.  A run that finds one goes on there instead of where it would have begun: so the
            same program, run again, goes on where it was, with the same bits, on any number of
            ranks, places and devices.  SIGTERM, SIGUSR1 and Ctrl-C end it after a checkpoint, the
            first two by `Stopped`, a SystemExit with the code 75 (docs/checkpoints.md).
        restart: "auto", or "require", which says that there must be a checkpoint, or "no": begin
            anew.  restart_anyway: also where parameters or records are others than then; those of
            now count.  CheckpointError on all ranks where it cannot go on from what is there, and
            OSError where none can be written.
        plot: a film of the fields (.gif, or .mp4 where ffmpeg is there), of about 100 frames or by
            `("run.gif", ct.every(steps=10))`, or a picture (.png) of them in the end; `ct.plot`
            says which fields, where, in which colours (docs/looking.md).

        Ctrl-C, on any rank, or an error of `progress` end the run at a step that all ranks share:
        the exception is raised on all of them, the field can be saved, and `run` goes on from
        there.  After another error, or a second Ctrl-C, the field is torn until it is set anew.
        """
        self.state.check_idle("run")
        told = told_by(progress, self.comm)
        watched = refuse_together(self.comm, lambda: watched_fields(self.program, stop_if, until))
        looks_every = whole(10 if check_every is None else check_every, "check_every", 1)
        ending = refuse_together(self.comm, lambda: Ending.of(
            n_steps, until, None if watched else check_every, at_most
        ))  # fmt: skip
        kept = refuse_together(
            self.comm, lambda: Checkpoints.of(checkpoint, restart, restart_anyway)
        )
        own = refuse_together(self.comm, lambda: Output.of(output))
        ending, kept = self._begun(ending), overrides().kept(self, kept)
        wanted = overrides().written(self, own)
        drawn = self._plot_of(plot, ending)

        def go(ending: Ending, told: Progress | None, scalars: dict[str, float]) -> Results | None:
            if watched:
                return self._run_watched(ending, told, scalars, watched, looks_every)
            return self._go(ending, told, scalars)

        with self._filming(drawn, ending):
            if kept is not None:
                return self._run_kept(kept, ending, told, scalars, go, wanted)
            with self._writing(wanted):
                return go(ending, told, scalars)

    def _go(
        self, ending: Ending, told: Progress | None, scalars: dict[str, float]
    ) -> Results | None:
        course = self._engine.course
        with Interruption(course, self.comm, told, self._listening) as interruption:
            return self._run(ending, interruption, scalars)

    def _run_watched(
        self,
        ending: Ending,
        told: Progress | None,
        scalars: dict[str, float],
        fields: Sequence[str],
        every: int,
    ) -> Results | None:
        """Run some steps at a time, and look at the fields."""
        first, found = self.step, None
        kept = Kept.of(self._engine, self.comm) if every > 1 else None
        while ending.n_steps is None or self.step - first < ending.n_steps:
            before, done = self.step, self.step - first
            left = every if ending.n_steps is None else min(every, ending.n_steps - done)
            tell = further(told, done, ending.n_steps or done + left)
            if kept is not None and before - kept.step >= KEEP_EVERY:
                kept.take()
            found = self._go(replace(ending, n_steps=left), tell, scalars) or found
            scalars = {}
            if kept is not None and not kept.is_of(self._engine):   # divided anew
                kept = Kept.of(self._engine, self.comm)
            if self.step == before:
                break
            error = not_finite(self, fields, before)
            if error is not None:
                raise error if kept is None else self._first(error, kept, ending, fields)
            if self._engine.course.ended:   # for a checkpoint
                break
        return found

    def _first(
        self, error: FloatingPointError, kept: Kept, ending: Ending, fields: Sequence[str]
    ) -> FloatingPointError:
        """Do the steps since `kept` again, one by one, to the first that is to blame."""
        last, records, first = self.step, self._looks, None
        self._looks = []        # they have looked
        kept.bring_back()
        try:
            while self.step < last and first is None:
                self._go(replace(ending, n_steps=1), None, {})
                first = not_finite(self, fields, self.step - 1)
        finally:
            self._looks = records
        for record in records:
            record.cut(self.step)
        return first or error

    @property
    def repeats(self) -> dict[str, int]:
        """How often each repeat was done in the last step, by its name."""
        return {**self._engine.counts}

    @property
    def results(self) -> Results:
        """What the last step has found; RuntimeError where none was run since fields were set."""
        if self._results is None or self._results.step != self._engine.n_steps:
            raise RuntimeError("there are no results yet: no step was run since fields were set")
        return self._results

    @collective("ending", "scalars", use="reads")
    def _run(
        self, ending: Ending, interruption: Interruption, scalars: dict[str, float]
    ) -> Results | None:
        if ending.n_steps is not None and ending.n_steps < 0:
            raise ValueError(f"the number of steps must not be negative, got {ending.n_steps}")
        self._parameters.change(self._engine, scalars)
        self._arrays.settle(changed(self.program), views=True)
        n_steps, first = ending.steps(self._engine), self._engine.n_steps
        self._n_before = self._timings.n_steps
        looks = self._all_looks(ending, n_steps)
        if n_steps is not None:
            self._check_rest(n_steps, looks)
        try:
            self._advance(n_steps, ending, looks, interruption)
            self._stopped = looks is not None and looks.stopped
        except BaseException:
            if self._engine.torn:
                self.state.tear("run", self.fields, is_lost=self.comm.size > 1)
            raise
        n_done = self._engine.n_steps - first
        found = self._found() if self.program.results and n_done else None
        begun, last = ending.whole or (first, None if n_steps is None else first + n_steps)
        n_whole = (self.step if last is None else last) - begun
        self._settle(interruption, self.step - begun, n_whole)
        return found

    def _settle(self, interruption: Interruption, n_done: int, n_steps: int) -> None:
        """Raise on all ranks if any of them has wanted the end; all know by now."""
        try:
            interruption.settle(n_done, n_steps)
        except MessageError:
            self._engine.torn = True
            self.state.tear("run", self.fields)
            raise

    def _advance(
        self, n_steps: int | None, ending: Ending, looks: AllLooks | None,
        interruption: Interruption,
    ) -> None:  # fmt: skip
        """Run the steps: so many, or some at a time until it is the time."""
        first = self._engine.n_steps
        goes_on = n_steps is None or n_steps > 0
        while goes_on:
            done = self._engine.n_steps - first
            left = AT_ONCE if n_steps is None else n_steps - done
            self._rebalance(left, interruption)
            self._widen(interruption)
            self._change_ways(interruption)
            engine = self._engine
            count = self._to_trial(self._to_decision(left, looks), looks)
            tell = further(interruption.progress, done, n_steps or done + left)
            with self._digested_after():
                self._piece(count, tell, math.inf if ending.time is None else ending.time, looks)
            goes_on = not engine.course.ended and engine.n_steps - first != n_steps
            goes_on = goes_on and not (engine.numbers.by_steps and ending.reached(engine))
            goes_on = goes_on and (looks is None or not looks.stopped)
            if n_steps is None and goes_on:
                ending.check_nearer(engine)

    def _piece(
        self, count: int, progress: Progress | None, until: float, looks: AllLooks | None
    ) -> None:
        """Some steps, as one run of the engine."""
        engine, run, before = self._engine, self._timings.run, self._engine.n_steps
        if self._tuner is not None and self._finding is None:   # of the width that was found
            self._tuner = self._tuner.on(engine)
            self._tuner.run(count, self._timings, progress, self._trace, until, looks)
            return
        balancer = None if self._finding is not None else self._balancer     # it rests meanwhile
        chunks = self._chunks_log
        log: RunLog | None = chunks if balancer is None else balancer.log
        if chunks is not None:
            chunks.begin(engine)
        ways, seconds = self._trying, self._timings.seconds
        run(engine, count, self.comm, progress, self._trace, log, until=until, looks=looks)
        self._ran(engine.n_steps - before, self._timings.seconds - seconds)
        if ways is not None:
            ways.ran(engine.n_steps - before, self._timings.seconds - seconds)
        if self._finding is not None:
            self._finding.ran(engine.n_steps - before, self._timings.seconds - seconds)

    def _all_looks(
        self, ending: Ending, n_steps: int | None, pause: Pause | None = None
    ) -> AllLooks | None:
        """Who looks in this run, if anybody does."""
        self._begin_films()
        looks: list[Look] = [*self._looks]
        if ending.holds is not None:
            assert n_steps is not None, "at_most"
            now = self._engine.n_steps
            first, last = ending.whole or (now, now + n_steps)
            assert last is not None, "at_most"
            looks.append(Check(ending.holds, self.comm, ending.check_every, first, last))
        return AllLooks(looks, self._found, pause) if looks or pause is not None else None

    def _check_rest(self, n_steps: int, looks: AllLooks | None) -> None:
        """ValueError where the steps up to a look cannot be launched."""
        kernel, per_launch = self._assembly.terms.kernel, self.plan.steps_per_launch
        counts = [n_steps] if looks is None else [n_steps, looks.left(self._engine.n_steps)]
        for count in counts:
            check_rest(kernel, count, per_launch)

    def _found(self) -> Results:
        """What the last step has found, on all ranks the same."""
        engine = self._engine
        step, time = engine.n_steps, engine.numbers.time(engine.n_steps)
        self._results = found = Results(step, time, engine.folds.results, engine.counts)
        return found


def further(told: Progress | None, before: int, total: int) -> Progress | None:
    """Who is told, of steps that come after `before` others."""
    return None if told is None else lambda done, _: told(before + done, total)

