# SPDX-License-Identifier: MIT
"""Moments of runs that go to files: as steps run, or when somebody saves one."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from controllers.calls.call import collective, refuse_together, together
from controllers.checkpoint.matching import facts_of
from controllers.outputs.moment import Facts, same_of
from controllers.outputs.series import Series
from controllers.outputs.variable import variables_of
from controllers.outputs.vti_store import VtiStore
from controllers.outputs.zarr_store import ZarrStore
from controllers.picture.film import Film
from controllers.plan import ChunkPlan
from controllers.run.digesting import Digested, Digesting
from controllers.run.record import Record
from controllers.settings.outputs import KINDS, Output, output
from hitmap.agreement import is_on_all_ranks


class Outputting(Digesting):
    """Writes moments of runs."""

    _looks: list[Record | Series | Digested | Film]
    _restored_step = -1     # of the checkpoint from which the computation has gone on last
    _serieses: dict[Path, tuple[Output, Series]]

    @contextmanager
    def _writing(self, wanted: Output | None, *, goes_on: bool = False) -> Iterator[None]:
        """In here a run writes moments.  goes_on: it does so from a checkpoint."""
        if wanted is None:
            yield
            return
        series = self._begin_series(wanted, goes_on)
        self._looks.append(series)
        try:
            yield
        except BaseException as error:
            if is_on_all_ranks(error) and not self._engine.torn:
                with suppress(OSError):     # the first error counts
                    series.flush()
            raise
        finally:
            self._looks.remove(series)
        self._end_series(wanted)

    @collective("wanted", use="reads", beside="reads")
    def _begin_series(self, wanted: Output, goes_on: bool) -> Series:
        series = self._series(wanted)
        series.begin(wanted.every, goes_on=goes_on)
        return series

    @collective("wanted", use="reads", beside="reads")
    def _end_series(self, wanted: Output) -> None:
        self._series(wanted).end()

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write all fields as they are now; what is written is there when it returns.

        path: `run.zarr`, to which the moment is appended along `step`; options are those of
            `ct.output`, `fields=`, `stride=`, `dtype=` and the names of axes.  Of a program of one
            field also a .npy file.  A computation that has gone on from a checkpoint goes on in a
            store, too, and any other one begins it anew.
        OSError on all ranks if it fails on any of them.  Collective.
        """
        if isinstance(path, (str, os.PathLike)) and Path(path).suffix in KINDS:
            self.state.check_idle("save")
            wanted = refuse_together(self.comm, lambda: output(path, **options))
            self._save_moment(wanted)
        elif options:
            raise TypeError(f"{', '.join(options)}= is for {', '.join(KINDS)}, got {str(path)!r}")
        else:
            super().save(path)

    @collective("wanted", use="reads", beside="reads")
    def _save_moment(self, wanted: Output) -> None:
        series = self._series(wanted)
        series.take(at_once=True)
        series.flush()

    def _series(self, wanted: Output) -> Series:
        """That of a path, the same one for the life of the computation.  Collective."""
        path = Path(os.path.abspath(wanted.path))
        before, series = self._serieses.get(path, (None, None))
        if before is not None and series is not None:
            if _cells(before) != _cells(wanted):
                raise ValueError(
                    f"{wanted.path} is written with other fields, cells or dtype; give all of what "
                    f"goes to one output the same, or another name"
                )
            series.limit = self._restored_step
            return series
        variables = variables_of(self.plan, self.fields, wanted)
        with together(self.comm, str(wanted.path)):
            kind = ZarrStore if path.suffix == ".zarr" else VtiStore
            store = kind(wanted.path, variables)

        def facts() -> Facts:
            same = {**facts_of(self.program, self.plan), **same_of(variables)}
            return Facts(self.program.name, same, self._engine.numbers.parameters)

        series = Series(
            store, variables, facts, lambda: self._engine, self.comm, str(wanted.path),
            beside=not isinstance(self.plan, ChunkPlan),
        )  # fmt: skip
        series.limit = self._restored_step
        self._serieses[path] = wanted, series
        return series

    def _flush_outputs(self) -> None:
        """All moments that were taken are listed.  Collective."""
        for _, series in self._serieses.values():
            series.flush()

    def _close_outputs(self) -> None:
        """The same, and nothing more is written.  Collective."""
        for _, series in self._serieses.values():
            series.close()


def _cells(wanted: Output) -> object:
    """What of the fields it has."""
    return {k: v for k, v in wanted.facts.items() if k not in ("output: every", "output: path")}
