# SPDX-License-Identifier: MIT
"""What the options say of pictures and films."""
from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from controllers.cli.outcome import USAGE, Failure
from controllers.picture import formats
from controllers.picture.seen import Seen, named
from controllers.settings.initial import Place
from controllers.settings.plots import Plot, View


def check_format(path: Path, option: str = "--plot", *, films: bool = False) -> None:
    """`Failure` unless matplotlib is there and can draw a file with the name `path`."""
    try:
        formats.check_format(path, option, films=films)
    except (ImportError, ValueError) as error:
        raise Failure(USAGE, str(error)) from None


def view_of(options: argparse.Namespace) -> View:
    """Of what a picture is to be."""
    try:
        return View(
            options.plot_field or None, dict(options.plot_at or ()), options.plot_limits
        )
    except (TypeError, ValueError) as error:
        raise Failure(USAGE, f"--plot: {error}") from None


def plot_of(options: argparse.Namespace, number: int = 1) -> Plot | None:
    """The picture or film of --plot, of the computation of this number; None for none."""
    if options.plot is None:
        return None
    return Plot(numbered(options.plot, number), options.plot_every, view=view_of(options))


def numbered(path: Path, number: int) -> Path:
    """A name for each of several files.

    >>> str(numbered(Path("a.png"), 1)), str(numbered(Path("a.png"), 2))
    ('a.png', 'a-2.png')
    """
    return path.with_stem(f"{path.stem}-{number}") if number > 1 else path


def check_view(view: View, fields: Sequence[str], place: Place) -> None:
    """`Failure` for fields and axes that are not there, of fields that lie like this."""
    try:
        for name in view.fields or ():
            named(name, fields)
        Seen(fields[0], place, view)
    except (TypeError, ValueError) as error:
        raise Failure(USAGE, f"--plot: {error}") from None
