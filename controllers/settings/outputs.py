# SPDX-License-Identifier: MIT
"""Where moments of a run are written, which of their cells, and how often."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias, Union

from controllers.settings.every import Every
from hitmap.argument import file_name, short, whole, wrong

KINDS = {".zarr": "a zarr store", ".pvd": "a series for ParaView"}
FLOATS = ("float32", "float64")
Path_: TypeAlias = "str | os.PathLike[str]"


@dataclass(frozen=True)
class Output:
    """Moments of a run, in files.

    every: how often; None for its beginning and its end alone.  fields: which; None for all.
    where: by axis, a number, which drops it, or a slice.  stride: every so many-th cell along all
    axes, or by axis.  dtype: of floats in the files; None for that of the fields.
    """

    path: Path
    every: Every | None = None
    fields: tuple[str, ...] | None = None
    stride: int | Mapping[str, int] = 1
    dtype: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Given) -> Output | None:
        """From the argument of `Computation.run`; TypeError or ValueError for what it cannot be.

        >>> Output.of(("a.zarr", Every(steps=5))).every.steps
        5
        """
        if given is None or isinstance(given, Output):
            return given
        if isinstance(given, Sequence) and not isinstance(given, str):
            if len(given) != 2 or not isinstance(given[1], Every):
                raise wrong(
                    "output", '"run.zarr", ("run.zarr", ct.every(steps=100)), or ct.output(...)',
                    given,
                )  # fmt: skip
            return output(given[0], given[1])
        return output(given)

    @property
    def facts(self) -> dict[str, object]:
        """What all ranks must give alike."""
        return {f"output: {one.name}": _plain(getattr(self, one.name)) for one in fields(self)}


Given: TypeAlias = Union[Output, Path_, "tuple[Path_, Every]", None]


def output(
    path: Path_,
    every: Every | None = None,
    *,
    fields: str | Sequence[str] | None = None,
    stride: int | Mapping[str, int] = 1,
    dtype: str | None = None,
    **where: object,
) -> Output:
    """Moments of a run, written to `path` as it goes: `run.run(1000, output=ct.output(...))`.

    path: `run.zarr` for a zarr store, `run.pvd` for files of ParaView.
    every: `ct.every(steps=100)`, `ct.every(time=0.1)` or `ct.every(seconds=60)`; by default the
        beginning and the end of the run alone, which are always written.
    fields: names of those that are written; of a field of structs also its own.  stride: only
        every so many-th cell, along all axes, or by their names.  dtype: "float32" writes float64
        in half the bytes.  where: by the names of axes a number, which drops the axis, or a slice,
        as of `run.record`: where there is a grid, coordinates.
    """
    file_name(path, "path")
    found = Path(path)
    if found.suffix not in KINDS:
        known = ", ".join(f"{kind} ({what})" for kind, what in KINDS.items())
        raise ValueError(f"output: {str(path)!r} is none of {known}; give it such a name")
    if every is not None and not isinstance(every, Every):
        raise wrong("every", "ct.every(steps=100)", every)
    if dtype is not None and dtype not in FLOATS:
        raise ValueError(f"dtype is one of {', '.join(FLOATS)}, got {short(dtype)}")
    names = (fields,) if isinstance(fields, str) else fields
    steps: int | Mapping[str, int]
    if isinstance(stride, Mapping):
        steps = {axis: whole(n, f"stride along {axis}", 1) for axis, n in stride.items()}
    else:
        steps = whole(stride, "stride", 1)
    return Output(found, every, None if names is None else tuple(names), steps, dtype, where)


def _plain(value: object) -> object:
    """The same for what means the same."""
    return sorted(value.items()) if isinstance(value, Mapping) else value
