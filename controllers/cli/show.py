# SPDX-License-Identifier: MIT
"""`controllers show`: what is in files of fields, and pictures of it."""
from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from controllers.cli.companions import show
from controllers.cli.files import check_targets, reason
from controllers.cli.outcome import FAILED, USAGE, Failure
from controllers.cli.picture import check_format
from controllers.contents.content import Content, Instant
from controllers.contents.opening import opened
from controllers.picture.film import write_figure
from controllers.picture.frames import frames
from controllers.picture.panels import Panels
from controllers.picture.seen import MAX_FIELDS, Seen, named
from controllers.settings.plots import Plot, View

MOST = 8        # steps that are listed


def command(options: argparse.Namespace) -> None:
    """Print what is there; draw what is asked for."""
    path: Path = options.path
    with _reading(path):
        content = opened(path)
    if options.plot is not None:
        check_targets({"--plot": options.plot}, {"the file": path})
        check_format(options.plot, films=True)
        _draw(content, options)
    show(json.dumps(_as_dict(content)) if options.json else _table(path, content))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What is wrong with what is read, as errors of usage."""
    try:
        yield
    except FileNotFoundError as error:
        raise Failure(USAGE, f"{error.filename or path}: {reason(error)}") from None
    except (ImportError, OSError, ValueError) as error:
        raise Failure(USAGE, f"{path}: {reason(error)}") from None


def _draw(content: Content, options: argparse.Namespace) -> None:
    """A picture of one step, or a film of all."""
    plot = Plot(options.plot)
    numbers = _chosen(content, options.step, is_film=plot.is_film)
    try:
        view = View(
            options.field or None, dict(options.at), options.limits, options.stride
        )
        names = [name for one in options.field for name in named(one, [*content.fields])]
        names = names or [*content.fields][:MAX_FIELDS]
        seen = [Seen(name, content.fields[name].place, view) for name in names]
    except (TypeError, ValueError) as error:
        raise Failure(USAGE, f"{options.path}: {error}") from None
    panels = Panels(seen, view)
    film = frames(plot.path, plot.fps) if plot.is_film else None
    for number in numbers:
        with _reading(options.path):
            cells = [
                content.read(number, one.name, one.selection).reshape(one.shape) for one in seen
            ]
        panels.show(cells, _title(options.path, content, content.instants[number]))
        with _writing(plot.path):
            if film is None:
                write_figure(plot.path, panels.figure)
            else:
                film.add(panels.figure)
    if film is not None:
        with _writing(plot.path):
            film.close()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failure(FAILED, f"--plot {path}: cannot be written: {reason(error)}") from None


def _chosen(content: Content, step: int | None, *, is_film: bool) -> Iterable[int]:
    """The numbers of the instants that are drawn."""
    if step is None:
        return range(len(content.instants)) if is_film else [len(content.instants) - 1]
    found = [n for n, one in enumerate(content.instants) if one.step == step]
    if not found:
        steps = _listed([str(one.step) for one in content.instants if one.step is not None])
        raise Failure(USAGE, f"--step {step}: there is no such step; there are {steps or 'none'}")
    return found[-1:]


def _title(path: Path, content: Content, at: Instant) -> str:
    parts = [content.facts.get("program", path.name)]
    parts += [] if at.step is None else [f"step {at.step}"]
    parts += [f"t = {at.time:.6g}"] if at.time else []
    return ", ".join(parts)


def _as_dict(content: Content) -> dict[str, Any]:
    return {
        "kind": content.kind, "facts": {**content.facts}, "notes": [*content.notes],
        "fields": {
            name: {"dtype": str(one.dtype), "shape": one.place.extent, "axes": one.place.axes.axes}
            for name, one in content.fields.items()
        },
        "steps": [one.step for one in content.instants],
        "times": [one.time for one in content.instants],
    }  # fmt: skip


def _table(path: Path, content: Content) -> str:
    """What is there, in lines."""
    lines = [f"{path}: {content.kind}"]
    lines += [f"{name}: {value}" for name, value in content.facts.items() if value]
    rows = [("field", "dtype", "cells", "axes")] + [
        (name, str(one.dtype), " x ".join(map(str, one.place.extent)), _axes(one.place))
        for name, one in content.fields.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    steps = [f"{one.step}" for one in content.instants if one.step is not None]
    if steps:
        lines.append(f"steps: {_listed(steps)}")
    times = [f"{one.time:.6g}" for one in content.instants if one.time is not None]
    if any(one.time for one in content.instants):
        lines.append(f"times: {_listed(times)}")
    return "\n".join([*lines, *content.notes])


def _axes(place: Any) -> str:
    """Their names, and where they begin and end if there is a grid.

    >>> from controllers.settings.initial import Place
    >>> _axes(Place((3, 4)))
    'y, x'
    """
    axes, grid = place.axes.axes, place.grid
    if grid is None:
        return ", ".join(axes)
    ends = zip(axes, grid.lower, grid.spacing, place.extent)
    return ", ".join(f"{name} {low:.6g} to {low + by * n:.6g}" for name, low, by, n in ends)


def _listed(words: list[str]) -> str:
    """
    >>> _listed(["0", "5"]), _listed([str(n) for n in range(99)])
    ('0, 5', '0, 1, 2, 3, ..., 95, 96, 97, 98 (99 of them)')
    """
    if len(words) <= MOST:
        return ", ".join(words)
    half = MOST // 2
    return f"{', '.join(words[:half])}, ..., {', '.join(words[-half:])} ({len(words)} of them)"
