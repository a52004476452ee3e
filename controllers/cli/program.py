# SPDX-License-Identifier: MIT
"""`controllers run program.py`: a program that makes computations, with options from outside.

The file is executed as `__main__`.  Every computation that it makes asks for the options, and says
when it is made, runs and is closed, as do pools of tasks (`settings/overrides.py`); that is where
this acts.
"""
from __future__ import annotations

import argparse
import json
import runpy
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import controllers
import hitmap
from controllers.checkpoint.error import CheckpointError
from controllers.cli.checkpoints import checkpoints_of
from controllers.cli.files import check_targets, reason
from controllers.cli.kernels import write_kernels_of
from controllers.cli.outcome import FAILED, NO_DEVICE, USAGE, Failure, on_root
from controllers.cli.outputs import output_of
from controllers.cli.picture import check_format, numbered, plot_of
from controllers.device import NoDeviceError
from controllers.language.pattern_file import is_literal
from controllers.memory.ledger import MemoryCapError
from controllers.picture.film import Film
from controllers.picture.panels import title_of
from controllers.picture.records import plotted
from controllers.pool.pool import Pool
from controllers.run.computation import Computation
from controllers.run.listening import STOPPED, Stopped
from controllers.settings.division import Division
from controllers.settings.execution import Execution
from controllers.settings.overrides import Overrides, overriding
from hitmap.comm import Communicator

_USAGE = (ValueError, TypeError, MemoryCapError)    # of options, as for patterns


class _Explained(BaseException):
    """The program is about to run steps, and was only to be explained."""


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Run the program, from its first line to its end.  Collective."""
    checkpoints_of(options)     # refused before anything is computed
    on_root(comm, lambda: _check(options))
    run = _Run(options)
    with _as_main(options.pattern, options.arguments), overriding(run.overrides()):
        try:
            _execute(options.pattern, run)
        finally:
            run.end()
    if not run.n_made and not run.n_opened:
        raise Failure(
            USAGE,
            f"{options.pattern}: it has made no computation, so no option held; a program makes a "
            f"controllers.Computation, a workspace or a pool of tasks, a pattern file needs --size "
            f"or --input",
        )
    if options.checkpoint is not None and not run.n_made:
        raise Failure(
            USAGE,
            f"{options.pattern}: it has made no computation, whose runs --checkpoint would keep; a "
            f"workspace has no steps: save its arrays",
        )
    for option, what in (("trace", "timeline"), ("plot", "picture")):
        if getattr(options, option) is not None and not options.explain and not run.n_closed:
            raise Failure(
                USAGE,
                f"{options.pattern}: it has closed no computation, so no {what} was written; make "
                f"them in a with statement",
            )


class _Run:
    """What is done with the computations of a program."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.n_made = self.n_closed = self.n_opened = 0
        self.films: WeakKeyDictionary[Computation, Film] = WeakKeyDictionary()
        self.refusals: list[Exception] = []     # of what the options say
        self._numbers: WeakKeyDictionary[Computation, int] = WeakKeyDictionary()
        self._options = options

    def overrides(self) -> Overrides:
        """What the options say, and whom computations tell of themselves."""
        options = self._options
        given = {name: value for name, value in vars(options).items() if value is not None}
        execution = _known(given, Execution) | ({"trace": True} if options.trace else {})
        if options.device:
            execution["devices"] = tuple(options.device)
        return Overrides(
            _known(given, Division), execution, options.iterations,
            self._made, self._runs, self._closes, self.refusals.append, opened=self._opened,
            tasks_over=self._tasks_over,
            checkpoints=lambda one: checkpoints_of(options, self._numbers[one]),
            outputs=lambda one: output_of(options, self._numbers[one]),
        )  # fmt: skip

    def _opened(self, opened: object) -> None:
        self.n_opened += 1

    def _tasks_over(self, pool: Pool) -> None:
        """Tell what each rank has done; a pool's tasks are known when they are over."""
        path, report = self._options.trace, pool.report()
        if path is not None:
            self.n_closed += 1
            own = numbered(path, self.n_closed)
            rank = pool.comm.rank
            pool.save_timeline(own.with_stem(f"{own.stem}-rank-{rank}") if rank else own)
        if report.n_jobs and self._options.json and not self._options.explain:
            print(json.dumps(report.as_dict()), flush=True)
        elif report.n_jobs:
            lines = [f"tasks of rank {pool.comm.rank}"] if pool.comm.size > 1 else []
            lines += [report.explain()] if self._options.explain else []
            file = sys.stderr if self._options.json else sys.stdout
            print("\n".join([*lines, str(report)]), file=file, flush=True)

    def _made(self, computation: Computation) -> None:
        self.n_made += 1
        self._numbers[computation] = self.n_made
        if self._options.kgt_out is not None:
            write_kernels_of(computation, self._options.kgt_out)
        if self._options.explain:
            text = computation.explain()
            if computation.comm.rank == 0:
                file = sys.stderr if self._options.json else sys.stdout
                print(text + "\n", file=file, flush=True)

    def _runs(self, computation: Computation, n_steps: int | None) -> None:
        if self._options.explain:
            raise _Explained
        plot = plot_of(self._options, self._numbers[computation])
        if plot is None or not plot.is_film or computation in self.films:
            return
        try:
            self.films[computation] = computation.film(plot, n_steps)
        except (TypeError, ValueError) as error:
            self.refusals.append(error)
            raise

    def _closes(self, computation: Computation) -> None:
        self.n_closed += 1
        path = self._options.trace
        if path is not None:
            computation.save_trace(numbered(path, self.n_closed))
        self._draw(computation)
        report = computation.report()
        if report.steps and computation.comm.rank == 0:
            as_json = self._options.json
            print(json.dumps(report.as_dict()) if as_json else report.table(), flush=True)


    def _draw(self, computation: Computation) -> None:
        """The film, all that was recorded, or else the fields as they are."""
        plot = plot_of(self._options, self._numbers[computation])
        if plot is None:
            return
        film = self.films.get(computation)
        if film is not None:
            computation.finish_film(film)
        elif not plot.is_film and any(map(len, computation.records)) and not plot.view.fields:
            title = title_of(computation.program.name, computation.step, computation.time)
            plotted(computation.records, title, computation.comm, plot.path)
        elif not plot.is_film:
            view = plot.view
            computation.plot(
                plot.path, fields=view.fields, limits=view.limits, **view.where
            )

    def end(self) -> None:
        """After an error: what is there of films is kept."""
        for film in self.films.values():
            with suppress(OSError):     # the error says more
                film.close()


def _known(given: dict[str, Any], group: type) -> dict[str, Any]:
    """The options that are fields of a group, but for those that a program says itself."""
    return {
        one.name: given[one.name]
        for one in fields(group)
        if one.name in given and one.name not in ("kernel", "trace")
    }


def _check(options: argparse.Namespace) -> None:
    """What can be found wrong beforehand."""
    path = options.pattern
    try:
        literal = is_literal(path)
    except OSError as error:
        raise Failure(
            USAGE, f"{path}: {reason(error)}; give a pattern file or a program"
        ) from None
    if literal:
        raise Failure(
            USAGE, f"{path}: is a pattern file: one of --input --size is required"
        )
    targets = {"--trace": options.trace, "--plot": options.plot}
    check_targets(targets, {"the program": path})
    if options.plot is not None:
        check_format(options.plot, films=True)
    for option in ("iterations", "trace", "tune", "plot"):
        if options.explain and getattr(options, option) is not None:
            raise Failure(
                USAGE,
                f"--{option}: --explain ends a program before its first steps; leave out one of "
                f"the two",
            )


@contextmanager
def _as_main(path: Path, arguments: list[str]) -> Iterator[None]:
    """In here the process has the arguments and the first folder of modules of a script."""
    before = sys.argv, sys.path[:]
    sys.argv = [str(path), *arguments]
    sys.path[:0] = [str(path.resolve().parent)]
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before


def _execute(path: Path, run: _Run) -> None:
    try:
        runpy.run_path(str(path), run_name="__main__")
    except _Explained:
        pass
    except Failure:
        raise
    except Stopped as stopped:
        raise Failure(STOPPED, f"{path}: {stopped}") from None
    except CheckpointError as error:
        raise Failure(USAGE, f"{path}: {error}") from None
    except SystemExit as end:
        if end.code not in (None, 0):
            code = end.code if isinstance(end.code, int) else FAILED
            said = f"exit code {code}" if isinstance(end.code, int) else str(end.code)
            raise Failure(code, f"{path}: {said}") from None
    except NoDeviceError as error:
        raise Failure(NO_DEVICE, f"{path}: {error}") from None
    except SyntaxError as error:
        raise Failure(USAGE, _told(path, error)) from None
    except Exception as error:
        if any(error is one for one in run.refusals) and isinstance(error, _USAGE):
            raise Failure(USAGE, f"{path}: {error}") from None
        raise Failure(FAILED, _told(path, error)) from None


def _told(path: Path, error: Exception) -> str:
    """The error and where it came from, in the program and in what it imports, not in here."""
    own = [Path(one).parent for one in (controllers.__file__, hitmap.__file__) if one is not None]
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen")
        and not any(Path(frame.filename).is_relative_to(one) for one in own)
        and frame.filename != runpy.__file__
    ]  # fmt: skip
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    return f"{path} has failed\n{''.join(lines)}".rstrip()
