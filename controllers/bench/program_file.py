# SPDX-License-Identifier: MIT
"""Program files as computations of any extent: what the benchmark of applications measures.

A file with a function `computation` is asked for one.  Another one is executed as its users execute
it, until its first computation begins to run; that has the cells which are wanted then, from the
lower end of its grid on and as far from each other as it says.  A pattern file is one stencil.
"""
from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from controllers.language.pattern_file import is_literal, read_patterns
from controllers.run.computation import Computation
from controllers.settings.division import Division
from controllers.settings.overrides import Overrides, overriding
from hitmap.comm import SerialCommunicator

START = 0.5     # of what a pattern computes: an average of it is no smaller number


class _Reached(BaseException):
    """The first computation of a program is about to run."""

    def __init__(self, computation: Computation) -> None:
        super().__init__()
        self.computation = computation


def computation_of(
    path: Path, extent: tuple[int, ...], options: Mapping[str, Any],
    instead: Mapping[str, str] | None = None,
) -> Computation:  # fmt: skip
    """That of a file, on so many cells and in one process.

    options: of its division and execution.  instead: other words of its text.  ValueError where it
    has none of such an extent, RuntimeError where it runs none at all.
    """
    if is_literal(path):
        (stencil,) = read_patterns(path)
        alone = SerialCommunicator()
        return Computation(stencil, extent, dtype="float32", u=START, comm=alone, **options)
    text = path.read_text("utf-8")
    for words, others in (instead or {}).items():
        assert text.count(words) == 1, f"{path} says {words!r} once"
        text = text.replace(words, others)
    code = compile(text, str(path), "exec")
    names: dict[str, Any] = {"__name__": "application", "__file__": str(path)}
    if "\ndef computation(" in text:
        exec(code, names)
        sizes = sizes_of(names["computation"], extent)
        made: Computation = names["computation"](*sizes, comm=SerialCommunicator(), **options)
        return made
    cuts = {one.name for one in fields(Division)} & options.keys()
    said = Overrides(
        {name: options[name] for name in cuts},
        {name: value for name, value in options.items() if name not in cuts},
        extent=extent, runs=_reached,
    )  # fmt: skip
    try:
        with _as_main(path), overriding(said):
            exec(code, {**names, "__name__": "__main__"})
    except _Reached as reached:
        return reached.computation
    raise RuntimeError(f"{path} runs no computation; have it run one, or define `computation`")


def sizes_of(computation: Callable[..., Computation], extent: Sequence[int]) -> tuple[int, ...]:
    """What a `computation` is called with for an extent; ValueError where it has no such one.

    >>> sizes_of(lambda n, **options: None, (9, 9)), sizes_of(lambda y, x: None, (9, 8))
    ((9,), (9, 8))
    """
    taken = [one for one in inspect.signature(computation).parameters.values()
             if one.kind is one.POSITIONAL_OR_KEYWORD]  # fmt: skip
    if len(taken) == len(extent):
        return tuple(extent)
    if len(taken) == 1 and len({*extent}) == 1:
        return (extent[0],)
    text = "x".join(map(str, extent))
    raise ValueError(f"all axes have the same number of cells, got {text}; give such a size")


def _reached(computation: Computation, n_steps: int | None) -> None:
    raise _Reached(computation)


@contextmanager
def _as_main(path: Path) -> Iterator[None]:
    """In here the process has the arguments of a script that was given none."""
    before, sys.argv = sys.argv, [str(path)]
    try:
        yield
    finally:
        sys.argv = before
