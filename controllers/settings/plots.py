# SPDX-License-Identifier: MIT
"""What a picture or a film shows of the fields of a computation, and where it goes."""
from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias, Union

from controllers.settings.every import Every
from hitmap.argument import file_name, number, short, whole, wrong

Limits: TypeAlias = "tuple[float, float] | Mapping[str, tuple[float, float]] | None"
FILMS = (".gif", ".mp4")
USUAL_FRAMES = 100      # of a film of which is not said how often


@dataclass(frozen=True)
class View:
    """What is seen of fields.

    fields: names, or one, those of structs meaning all their components; by default the fields
        that steps change.  where: by the names of axes, a number, which drops the axis, or a slice;
        numbers are coordinates where there is a grid, else indices.  Of more than two axes that are
        left, the first ones are seen in the middle.
    limits: of the colours or of the vertical axis, (low, high) for all fields or by field; by
        default all that was seen so far.  stride: each n-th cell along both axes; by default what
        makes a picture of 1000 cells.  colours: the name of a colour map of matplotlib.
    """

    fields: Sequence[str] | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = None
    stride: int | None = None
    colours: str = "gist_earth"

    def __post_init__(self) -> None:
        if isinstance(self.fields, str):
            object.__setattr__(self, "fields", (self.fields,))
        elif self.fields is not None:
            object.__setattr__(self, "fields", _names(self.fields))
        if not isinstance(self.where, Mapping):
            raise wrong("where", "a mapping of axes such as {'z': 3}", self.where)
        if self.stride is not None:
            whole(self.stride, "stride", 1)
        if not isinstance(self.colours, str):
            raise wrong("colours", "the name of a colour map", self.colours)
        limits = self.limits
        for one in limits.values() if isinstance(limits, Mapping) else [limits]:
            if one is not None:
                _check_limits(one)

    def limits_of(self, name: str) -> tuple[float, float] | None:
        """Those of a field; None where what is seen says them.

        >>> View(limits={"u": (0, 1)}).limits_of("u"), View(limits=(2, 3)).limits_of("v")
        ((0.0, 1.0), (2.0, 3.0))
        """
        found = self.limits.get(name) if isinstance(self.limits, Mapping) else self.limits
        return None if found is None else (float(found[0]), float(found[1]))

    @property
    def facts(self) -> dict[str, object]:
        """What all ranks must give alike."""
        return {f"{one.name} of the picture": repr(getattr(self, one.name)) for one in fields(self)}


@dataclass(frozen=True)
class Plot:
    """A picture of the fields when a run ends, or a film of them while it goes on.

    path: a film where it ends with .gif or .mp4, which needs ffmpeg; else a picture, .png and so
    on.  every: steps between two frames; by default so many that there are about 100.  fps: frames
    that are shown in a second.  view: what is seen.
    """

    path: Path
    every: int | None = None
    fps: float = 10.0
    view: View = View()

    @classmethod
    def of(cls, plot: Any) -> Plot | None:
        """From the argument of `Computation.run`; None where there is to be none.

        ValueError or TypeError for what it cannot be.

        >>> Plot.of(("u.gif", Every(steps=5))).every
        5
        """
        if plot is None or isinstance(plot, Plot):
            return plot
        steps = None
        if isinstance(plot, tuple):
            if len(plot) != 2 or not isinstance(plot[1], Every):
                raise wrong("plot", 'a file, or ("run.gif", ct.every(steps=10))', plot)
            plot, often = plot
            steps = often.steps
            if steps is None:
                raise ValueError("plot= takes every(steps=), as all ranks must know when")
        file_name(plot, "plot")
        return cls(Path(plot), steps)

    @property
    def is_film(self) -> bool:
        """Whether it shows several steps, one after the other."""
        return self.path.suffix.lower() in FILMS

    def steps_between(self, n_steps: int | None) -> int:
        """From frame to frame of a run of so many steps; ValueError where nobody knows how many.

        >>> Plot(Path("u.gif")).steps_between(1234), Plot(Path("u.gif"), 5).steps_between(None)
        (12, 5)
        """
        if self.every is not None:
            return self.every
        if n_steps is None:
            raise ValueError(
                f"plot {self.path}: nobody knows how many steps there will be; say how often a "
                f'frame is drawn, as in plot=("{self.path}", ct.every(steps=10)), or at_most='
            )
        return max(1, n_steps // USUAL_FRAMES)

    @property
    def facts(self) -> dict[str, object]:
        """What all ranks must give alike."""
        return {
            "plot": self.path, "steps between pictures": self.every, "fps": self.fps,
            **self.view.facts,
        }  # fmt: skip


PlotLike: TypeAlias = Union[
    "str | os.PathLike[str] | tuple[str | os.PathLike[str], Every] | Plot | None"
]


def plot(
    path: str | os.PathLike[str],
    every: Every | None = None,
    *,
    fps: float = 10.0,
    fields: str | Sequence[str] | None = None,
    limits: Limits = None,
    stride: int | None = None,
    colours: str = "gist_earth",
    **where: object,
) -> Plot:
    """What `plot=` of a run takes where there is more to say than a file and how often.

    path: a film (.gif, .mp4) or a picture.  every: `ct.every(steps=)`.  fps: frames in a second.
    The others are those of `run.plot`, `z=1.5` included (docs/looking.md).  ValueError or TypeError
    for what they cannot be.

    >>> plot("u.gif", fields="u", z=3).is_film
    True
    """
    found = Plot.of(path if every is None else (path, every))
    assert found is not None, "a path"
    if not (math.isfinite(number(fps, "fps")) and 0 < fps <= 100):
        raise ValueError(f"fps is above 0 and at most 100, got {fps}")
    view = View(fields, where, limits, stride, colours)
    return Plot(found.path, found.every, float(fps), view)


def _names(given: Any) -> tuple[str, ...]:
    if not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
        raise wrong("fields", "the name of a field, or several", given)
    if not given:
        raise ValueError("fields: name one field at least, or leave it out")
    return tuple(given)


def _check_limits(one: Any) -> None:
    if not isinstance(one, Sequence) or isinstance(one, str) or len(one) != 2:
        raise wrong("limits", "a pair (low, high), or one by field", one)
    low, high = (number(end, "limits") for end in one)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"limits are two finite numbers, the first below, got {short(one)}")
