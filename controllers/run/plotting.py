# SPDX-License-Identifier: MIT
"""Pictures of fields as they are, and films of them while steps run."""
from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from controllers.calls.array_calls import changed
from controllers.calls.call import collective, refuse_together
from controllers.engine.decision import decided
from controllers.picture.film import Film
from controllers.picture.formats import check_format, check_matplotlib
from controllers.picture.live import Live
from controllers.picture.panels import title_of
from controllers.picture.seen import Seen, seen_by, snapshot
from controllers.process.errand import errand
from controllers.run.ending import Ending
from controllers.run.keeping import Keeping
from controllers.run.results import Results
from controllers.settings.overrides import overrides
from controllers.settings.plots import Limits, Plot, PlotLike, View
from hitmap.argument import file_name
from hitmap.files import check_target

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Plotting(Keeping):
    """The verb that draws, and the films of runs."""

    _live: Live | None = None       # on rank 0

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        fields: str | Sequence[str] | None = None,
        limits: Limits = None,
        stride: int | None = None,
        colours: str = "gist_earth",
        **where: object,
    ) -> Figure | None:
        """Draw fields as they are; matplotlib's figure on rank 0, None on the others.

        Called again for the same it updates that figure in place: on the page of a notebook, in a
        window where matplotlib opens one, or in the file `path`.

        fields: names, of structs too; by default those that steps change, 6 at most, side by side.
        where: a number or a slice by the names of axes, as of `record`: `z=1.5`; of more than two
        axes the first are cut in the middle.  limits: of the colours, (low, high) or by field; by
        default all that was seen so far.  stride: each n-th cell; by default at most 1000 along an
        axis.  Each rank sends those cells alone.  ImportError without matplotlib; OSError on rank 0
        and RuntimeError on the others where the file cannot be written.  Collective.
        """
        self.state.check_idle("plot")
        view = refuse_together(
            self.comm, lambda: self._checked(path, View(fields, where, limits, stride, colours))
        )
        return self._plot(None if path is None else Path(path), view)

    def _checked(self, path: str | os.PathLike[str] | None, view: View) -> View:
        check_matplotlib("plot")
        if path is not None:
            file_name(path, "path")
            check_format(Path(path), "plot")
        self._seen(view)
        return view

    def _seen(self, view: View) -> list[Seen]:
        steps_change = {*changed(self.program)}
        usual = [one for one in self.fields if one in steps_change] or self.fields
        return seen_by(self._engine, view, usual)

    @collective("path", "view", use="reads", beside="reads")
    def _plot(self, path: Path | None, view: View) -> Figure | None:
        seen, figure = self._seen(view), None
        cells = snapshot(self._engine, self.comm, seen)

        def draw() -> None:
            nonlocal figure
            assert cells is not None, "on rank 0"
            if self._live is None or self._live.view != view:
                self._live = Live(seen, view)
            title = title_of(self.program.name, self.step, self.time)
            with errand("the drawing of a picture"):
                figure = self._live.show(cells, title, path)

        decided(self.comm, draw, "plot")
        return figure

    def _begun(self, ending: Ending) -> Ending:
        """What whoever starts the program says in place of it."""
        said = overrides()
        ending = ending if said.n_steps is None else ending.limited(said.n_steps)
        said.runs(self, ending.steps(self._engine))
        return ending

    def _plot_of(self, plot: PlotLike, ending: Ending) -> Plot | None:
        """What a run is asked for, checked: an error on all ranks before a step is run."""
        found = refuse_together(self.comm, lambda: self._drafted_plot(plot, ending))
        if found is not None:
            self._check_plot(found)
        return found

    def _drafted_plot(self, plot: PlotLike, ending: Ending) -> Plot | None:
        found = Plot.of(plot)
        if found is not None:
            check_format(found.path, "plot=", films=True)
            self._seen(found.view)
            if found.is_film:
                found.steps_between(ending.steps(self._engine))
        return found

    @collective("plot", use="nothing")
    def _check_plot(self, plot: Plot) -> None:
        """OSError on rank 0, RuntimeError on the others, where its file cannot be written."""
        decided(self.comm, lambda: check_target(plot.path), "plot=")

    @contextmanager
    def _filming(self, plot: Plot | None, ending: Ending) -> Iterator[None]:
        """In here a run is filmed; a picture is drawn when it ends."""
        if plot is None:
            yield
            return
        if not plot.is_film:
            yield
            self._plot(plot.path, plot.view)
            return
        n_steps = ending.steps(self._engine)
        film = self.film(plot, n_steps, None if n_steps is None else self.step + n_steps)
        try:
            yield
            self.finish_film(film)
        finally:
            self._looks.remove(film)
            with suppress(OSError):     # the error that ended the run says more
                film.close()

    def film(self, plot: Plot, n_steps: int | None, last: int | None = None) -> Film:
        """A film of all runs from now on, of which the first has so many steps, until it is closed.

        last: the step at which it ends, if that is known.  ValueError for a view of what is not
        there.  Not collective by itself.
        """
        film = Film(
            plot, self.program.name, self._seen(plot.view), self.comm, lambda: self._engine,
            self.step, plot.steps_between(n_steps), last,
        )  # fmt: skip
        self._looks.append(film)
        return film

    @collective(use="reads", beside="reads")
    def finish_film(self, film: Film) -> None:
        """Its last frame, and the file; OSError on rank 0, RuntimeError on the others if it fails.
        """
        with errand("the writing of a film"):
            film.finish(self._now())

    def _now(self) -> Results:
        """Step and time alone."""
        return Results(self.step, self.time, {})

    def _begin_films(self) -> None:
        """Their first frames, before the first step.  Collective."""
        for film in [one for one in self._looks if isinstance(one, Film)]:
            film.begin(self._now())
