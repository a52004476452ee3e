# SPDX-License-Identifier: MIT
"""Looking at fields while steps run: at all of them now and then, or at some cells by a record."""
from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from controllers.calls.array_calls import changed
from controllers.calls.call import collective, refuse_together
from controllers.engine import Progress
from controllers.fields.selection import Selection
from controllers.run.ending import Ending
from controllers.run.interruption import Interruption
from controllers.run.looks import Pause
from controllers.run.progress import Watcher, told_by
from controllers.run.record import Record
from controllers.run.results import Results
from controllers.run.running import Running, further
from controllers.run.walk import Walk
from controllers.settings.checkpoints import Checkpoint, Checkpoints
from controllers.settings.outputs import Given, Output
from controllers.settings.overrides import overrides
from controllers.settings.plots import PlotLike
from hitmap.argument import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Stepping(Running):
    """The verbs that run steps, and look at them on the way."""

    def steps(
        self,
        n_steps: int,
        every: int = 1,
        progress: Watcher = None,
        *,
        output: Given = None,
        checkpoint: Checkpoint = None,
        restart: str | None = None,
        restart_anyway: bool = False,
        plot: PlotLike = None,
        **scalars: float,
    ) -> Iterator[Moment]:
        """Run `n_steps` steps, and yield after each `every`, and after the last.

        What is yielded has `step` and `time`, the results, and the fields as they are then.
        Collective, each time.  output, plot, checkpoint, restart, restart_anyway: as of `run`; what
        is done with a moment comes before the checkpoint of it, and those before a restart do not
        come again.
        """
        self.state.check_idle("run")
        told = told_by(progress, self.comm)
        count = refuse_together(self.comm, lambda: whole(every, "every", 1))
        own = refuse_together(
            self.comm, lambda: Checkpoints.of(checkpoint, restart, restart_anyway)
        )
        moments = refuse_together(self.comm, lambda: Output.of(output))
        ending = self._begun(refuse_together(
            self.comm, lambda: Ending.of(n_steps, None, None, None)
        ))  # fmt: skip
        assert ending.n_steps is not None
        drawn = self._plot_of(plot, ending)
        if ending.n_steps < 1:      # refused where it is negative
            self._go(ending, told, scalars)
        kept, wanted = overrides().kept(self, own), overrides().written(self, moments)
        begun = self.step if kept is None else self._restore(kept, scalars)
        goes_on = kept is not None and self._kept_step >= 0
        with self._filming(drawn, ending), self._writing(wanted, goes_on=goes_on), (
            self._keeping(kept, begun)
        ):
            yield from self._moments(ending.n_steps, count, told, scalars, kept, begun)

    def _moments(
        self, total: int, count: int, told: Progress | None, scalars: dict[str, float],
        kept: Checkpoints | None, begun: int,
    ) -> Iterator[Moment]:  # fmt: skip
        """Each `count` steps of `total` since the step `begun`."""
        walk: Walk | None = None
        done = self.step - begun
        while done < total:
            self.state.check_idle("run")
            before, aligned = self.step, done % count == 0
            if self._can_walk and aligned:
                first = self.step if walk is None else walk.first
                tell = further(told, done - (self.step - first), total)
                course = self._engine.course
                with Interruption(course, self.comm, tell, self._listening) as interruption:
                    walk = self._walk(total - done, count, scalars, walk, interruption)
            else:
                tell = further(told, done, total)
                self._go(Ending(min(count - done % count, total - done)), tell, scalars)
            scalars = {}
            newest = self.step - before
            done += newest
            if done % count == 0 or done == total:
                known = self._results is not None and self._results.step == self.step
                yield Moment(self, self.results if known else self._found())
            if kept is not None and (
                kept.is_due(done, newest) or done == total or self._engine.course.ended
            ):
                self._keep(kept, begun)

    @property
    def _can_walk(self) -> bool:
        """Whether a run may stand still: where nobody else divides it, or is told of its steps."""
        divided = self._tuner is not None or self._trace is not None or self._chooses or self._tries
        divided = divided or self._finding is not None
        return self._engine.can_pause and not divided

    @collective("n_steps", "every", "scalars", use="reads", beside="goes on")
    def _walk(
        self, n_steps: int, every: int, scalars: dict[str, float], walk: Walk | None,
        interruption: Interruption,
    ) -> Walk:  # fmt: skip
        """Walk on where `walk` stands, or begin to walk so many steps; to the next pause."""
        engine, before = self._engine, self.step
        stands = self.state.standing is walk and not self._arrays.has_living
        if walk is None or not all(self.comm.allgather(stands)):
            self.state.meet("ends")
            self._parameters.change(engine, scalars)
            self._arrays.settle(changed(self.program), views=True)
            pause = Pause(every, before, before + n_steps)
            looks = self._all_looks(Ending(n_steps), n_steps, pause)
            assert looks is not None, "a pause"
            walk = Walk(engine, n_steps, looks, pause, self._timings)
        self.state.standing = None
        try:
            walk.go_on(interruption.progress, self.comm)
        except BaseException:
            if engine.torn:
                self.state.tear("run", self.fields, is_lost=self.comm.size > 1)
            raise
        self.state.standing = None if walk.is_over else walk
        reasons = self.comm.allgather(engine.course.reason)
        if any(reasons):
            self.state.meet("ends")
            engine.course.settle(reasons)
            self._settle(interruption, self.step - before, min(every, n_steps))
        return walk

    def record(self, what: str, *, every: int = 1, **where: object) -> Record:
        """From now on sample a field, or a result, after steps whose number `every` divides.

        where: by the names of axes, a number, which drops the axis, or a slice; all cells along the
        others.  Where there is a grid, numbers are coordinates of the nearest cells:
        `run.record("u", y=50.0, x=slice(100, 1900, 100))`.  Collective.
        """
        self.state.check_idle("record")
        return self._record(what, every, where)

    @collective("what", "every", use="nothing")
    def _record(self, what: str, every: int, where: dict[str, object]) -> Record:
        every, selection = whole(every, "every", 1), None
        if what in self.program.results:
            if where:
                raise ValueError(f"{what!r} is a result, a number; leave {', '.join(where)} out")
        elif what in self.fields:
            field = self[what]
            selection = Selection(field.where_cells_lie, field.shape, where)
        else:
            known = ", ".join((*self.fields, *self.program.results))
            raise ValueError(f"there is no field and no result {what!r}; there are {known}")
        record = Record(what, every, self.comm, lambda: self._engine, selection)
        self._looks.append(record)
        return record

    @property
    def records(self) -> tuple[Record, ...]:
        """All records, in order."""
        return tuple(one for one in self._looks if isinstance(one, Record))


class Moment(Results):
    """The results after a step, and the fields of a computation as they are then."""

    def __init__(self, run: Stepping, found: Results) -> None:
        super().__init__(found.step, found.time, found, found.repeats)
        self._run = run

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the fields as they are then, as `Computation.save` does.  Collective."""
        self._run.save(path, **options)

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Figure | None:
        """Draw the fields as they are then, as `Computation.plot` does.  Collective."""
        return self._run.plot(path, **options)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._run.fields:
            return self._run[name]
        return super().__getattr__(name)
