# SPDX-License-Identifier: MIT
"""Assignments and folds of arrays that live on the host, chunk by chunk through the devices."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.array.lowering import FOLD, PREFIX, Lowered
from controllers.array.mapped import Placed
from controllers.array.source import ArraySource, HeldSource
from controllers.array.stream_run import StreamRun
from controllers.array.streams import Streams
from controllers.device.event import Event
from controllers.engine import Engine
from controllers.program.accumulator import Result
from hitmap.comm import Communicator


class StreamedOneOff:
    """An assignment or a fold of arrays of the host, as `OneOff`.  Collective."""

    is_light = False

    def __init__(
        self, made: Lowered, main: Engine, streams: Streams, comm: Communicator
    ) -> None:
        layout = main.plan.layout
        given: dict[str, Placed] = {}
        for name, source in made.sources.items():
            assert isinstance(source, HeldSource), "arrays of workspaces"
            given[name] = Placed(layout, source.tiles)
        said = {name: _name(source) for name, source in made.sources.items()}
        self._run = StreamRun(made.program, given, layout, streams, comm, said=said)
        self._names = [f"{PREFIX}{n}" for n in range(len(made.program.scalars))]

    def __str__(self) -> str:
        return str(self._run)

    def run(self, numbers: Sequence[float]) -> list[Event]:
        """Do it with these arguments; nothing may be under way before, nor is after.  Collective.
        """
        return self._run.run(dict(zip(self._names, numbers)))

    @property
    def result(self) -> Result:
        """What the fold has given, on every rank."""
        return self._run.folds[FOLD]

    def close(self) -> None:
        """Give back what belongs to MPI."""
        self._run.close()


def _name(source: object) -> str:
    return source.name if isinstance(source, ArraySource) else "held values"
