# SPDX-License-Identifier: MIT
"""Steps in OpenCL C: the user writes what one cell becomes, and declares what that reads and sets.

All around it is generated, as for steps that are Python functions: loops, indices, boundaries.
"""
from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Union

from controllers.language.element_call import ElementCall
from controllers.language.element_text import ElementText
from controllers.language.neighbourhood import Around
from controllers.language.region import region_of
from controllers.language.source import KernelSource, SourceLike
from controllers.language.step import Function, Signature, Step, step
from controllers.program.identifier import check_identifier
from controllers.program.scalars import TIME
from hitmap.argument import number, wrong

Scalars = Union[Mapping[str, Any], Sequence[str], None]


def opencl_c(
    source: SourceLike,
    *,
    reads: Mapping[str, Around],
    writes: str | Sequence[str],
    scalars: Scalars = None,
    name: str = "",
    over: object = None,
    reference: Function | Step | None = None,
) -> Step:
    """A step in OpenCL C: `source` computes one cell; where that lies, others say.

    source: statements; or functions, and then `ELEMENT { statements }`; or the path of a file of
        these, ending with .cl.  They may use, by their names: `u(0, 1)`, the neighbour of a field
        at an offset; `u_new`, which is to be set; scalars; `INDEX(0)`, the index of the cell along
        an axis; `VALUE`, the type of the first field that is set.
    reads: the fields that it reads, and where around the cell: 0, its own cell; n, all cells at
        most n away along each axis; `dict(x=(-1, 1))` or `((0, 0), (-1, 1))`, a box; a list of
        offsets, `[(0, -1), (0, 0)]`.
    writes: the fields that it sets.  A struct `q` has the fields `q_rho` in OpenCL C; reads and
        writes name all of it, as "q", or "q.rho".
    scalars: names with defaults, None where there is none.  They are what keyword-only parameters
        of a `step` are: `t` is the time, `dt` the time step, `x` the coordinate along that axis.
    name: of the step; by default that of the file.
    over: the cells that are computed, as for `step`.
    reference: the same as a Python function, as `step` takes it: `reference_run` and the checked
        mode compute it.

    >>> smooth = opencl_c("u_new = (u(-1) + u(1)) / 2;", reads=dict(u=1), writes="u", name="smooth")
    >>> smooth
    <Step smooth>
    """
    text, where = found_text(KernelSource.of(source))
    stem = os.path.basename(text.file).removesuffix(".cl") if text.file.endswith(".cl") else ""
    name = check_identifier(name or re.sub(r"\W", "_", stem) or "element", "step")
    what = f"opencl_c {name!r} ({where})"
    right = None if reference is None else step(reference)
    body = ElementCall(
        name, text, where, _reads(reads, what), _writes(writes, what), _scalars(scalars, what),
        right,
    )  # fmt: skip
    body.check(what)
    times = tuple(one for one in (TIME,) if body.scalars.get(one, 0) is None)
    rest = {one: default for one, default in body.scalars.items() if one not in times}
    return Step(body, name, Signature(body.fields, rest, times), region_of(over))


def _reads(given: object, what: str) -> dict[str, Around]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise wrong(f"{what}: reads", "a dict of fields", given, "write dict(u=1, v=0)")
    return dict(given)


def _writes(given: object, what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise wrong(f"{what}: writes", "names of fields", given, 'write ("u", "v")')
    if not names:
        raise ValueError(f"{what}: it writes no field; name at least one in writes=")
    return tuple(dict.fromkeys(names))


def _scalars(given: Scalars, what: str) -> dict[str, float | None]:
    if not isinstance(given, (Mapping, Sequence, type(None))) or isinstance(given, str):
        raise wrong(f"{what}: scalars", "a dict of names and defaults", given, "write dict(F=0.1)")
    defaults = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given or ())
    for name, value in defaults.items():
        check_identifier(name, "scalar")
        if value is not None:
            defaults[name] = float(number(value, f"{what}: the scalar {name!r}"))
    return defaults


def found_text(source: KernelSource) -> tuple[ElementText, str]:
    """The text with its place, in a file of its own or in that of who called the caller; where."""
    if source.file:
        return ElementText(source.text, source.file, 1), source.file
    frame = sys._getframe(2)
    path = frame.f_code.co_filename
    whole, file = "".join(linecache.getlines(path)), os.path.basename(path)
    at = whole.find(source.text)
    if at < 0 or whole.find(source.text, at + 1) >= 0:      # made by the program, or written twice
        return ElementText(source.text, "", 1), f"{file}:{frame.f_lineno}"
    line = 1 + whole.count("\n", 0, at)
    return ElementText(source.text, file, line), f"{file}:{line}"
