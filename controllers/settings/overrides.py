# SPDX-License-Identifier: MIT
"""Overrides: what whoever starts a program says in place of what the program says itself.

`controllers run program.py` holds them while the program runs, in a context variable, as the
program knows nothing of them: every computation asks for them when it is made, and tells of itself.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from controllers.language.grid import Grid
from controllers.settings.checkpoints import Checkpoints
from controllers.settings.division import Division
from controllers.settings.execution import Execution
from controllers.settings.outputs import Output
from hitmap.argument import short

_CUTS = ("partition", "weights", "block", "dims", "layout")     # together they say how to cut


def _nothing(computation: Any, *others: Any) -> None:
    pass


@dataclass(frozen=True)
class Overrides:
    """By default none.

    division, execution: fields of these, by name.  n_steps: what every run takes.  extent: how many
    cells there are along each axis of a grid, whose lower ends and spacing stay.
    made, runs, closes: told of each computation, on all ranks alike: when it is made, before it
    runs steps, with how many if that is known, before it is closed.  refused: told why one cannot
    be made or run as is said here.
    opened: told of each workspace and each pool of tasks, when it is made.
    tasks_over: told of each pool, on all ranks, when all its tasks are over and went well.
    checkpoints, outputs: asked which a computation is to have; None for those that it says itself.
    """

    division: Mapping[str, Any] = field(default_factory=dict)
    execution: Mapping[str, Any] = field(default_factory=dict)
    n_steps: int | None = None
    made: Callable[[Any], None] = _nothing
    runs: Callable[[Any, int | None], None] = _nothing
    closes: Callable[[Any], None] = _nothing
    refused: Callable[[Exception], None] = _nothing
    extent: tuple[int, ...] | None = None
    opened: Callable[[Any], None] = _nothing
    tasks_over: Callable[[Any], None] = _nothing
    checkpoints: Callable[[Any], Checkpoints | None] = _nothing
    outputs: Callable[[Any], Output | None] = _nothing

    def kept(self, computation: Any, own: Checkpoints | None) -> Checkpoints | None:
        """The checkpoints of a run of a computation, which says `own` itself."""
        return self.checkpoints(computation) or own

    def written(self, computation: Any, own: Output | None) -> Output | None:
        """Where moments of a run of a computation go, which says `own` itself."""
        return self.outputs(computation) or own

    def divided(self, division: Division) -> Division:
        """`division` as it is to be; who says how to cut says all of that.

        >>> Overrides({"weights": [1, 2]}).divided(Division("blocks", align=4))
        Division(partition=None, weights=(1, 2), align=4, block=None, dims=None, layout=None, ...
        """
        cuts = any(name in self.division for name in _CUTS)
        with self.answering():
            return replace(division, **{**(dict.fromkeys(_CUTS) if cuts else {}), **self.division})

    def executed(self, execution: Execution) -> Execution:
        """`execution` as it is to be."""
        with self.answering():
            return replace(execution, **self.execution)

    def resized(self, sizes: Any) -> Any:
        """What a computation is of, with as many cells as are wanted; ValueError of no grid.

        >>> Overrides(extent=(9, 8)).resized(Grid(y=2, x=2, upper=(1, 4)))
        Grid(y=9, x=8, lower=(0.0, 0.0), spacing=(0.5, 2.0))
        """
        if self.extent is None:
            return sizes
        if not isinstance(sizes, Grid) or len(sizes.shape) != len(self.extent):
            raise ValueError(
                f"a computation of {len(self.extent)} axes is wanted, on a Grid, whose cells are "
                f"said from outside, got {short(sizes)}; have the program make such a grid"
            )
        return Grid(
            lower=sizes.lower, spacing=sizes.spacing, boundary=sizes.boundary,
            **dict(zip(sizes.axes, self.extent)),
        )  # fmt: skip

    @contextmanager
    def answering(self) -> Iterator[None]:
        """In here a computation is made as is said here, which answers for what is refused."""
        try:
            yield
        except Exception as error:
            if self.division or self.execution:
                self.refused(error)
            raise


_current: ContextVar[Overrides | None] = ContextVar("controllers.overrides", default=None)


def overrides() -> Overrides:
    """Those that hold here."""
    return _current.get() or Overrides()


@contextmanager
def overriding(wanted: Overrides) -> Iterator[None]:
    """In here `wanted` hold."""
    token = _current.set(wanted)
    try:
        yield
    finally:
        _current.reset(token)
