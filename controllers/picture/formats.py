# SPDX-License-Identifier: MIT
"""What can be written: pictures by matplotlib, films by Pillow or by ffmpeg."""
from __future__ import annotations

import importlib.util
from pathlib import Path

from controllers.settings.plots import FILMS

EXTRA = 'pip install "opencl-controllers[local]"'


def check_matplotlib(what: str) -> None:
    """ImportError where it is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError(f"{what} needs matplotlib; {EXTRA}")


def check_format(path: Path, what: str, *, films: bool = False) -> None:
    """ValueError unless a file of such a name can be drawn; ImportError without matplotlib.

    films: whether it may be one.
    """
    check_matplotlib(what)
    from matplotlib.backend_bases import FigureCanvasBase

    suffix = path.suffix.lower()
    if suffix in FILMS and films:
        check_film(path, what)
        return
    known = {f".{one}" for one in FigureCanvasBase.get_supported_filetypes()}
    known = known - {".pgf", *FILMS}        # pgf needs TeX to write; a gif of one frame is none
    if suffix not in known:
        names = sorted(one[1:] for one in known) + [one[1:] for one in FILMS if films]
        raise ValueError(f"{what} {path}: the name must end with one of {', '.join(names)}")


def check_film(path: Path, what: str) -> None:
    """ValueError where it cannot be written here."""
    from matplotlib.animation import FFMpegWriter

    if path.suffix.lower() == ".mp4" and not FFMpegWriter.isAvailable():
        raise ValueError(
            f"{what} {path}: a film .mp4 is written by ffmpeg, which is not there; install it, or "
            f"name a file .gif, which needs no ffmpeg"
        )
