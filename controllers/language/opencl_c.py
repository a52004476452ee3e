# SPDX-License-Identifier: MIT
"""Steps in OpenCL C: the user writes what one cell becomes, and declares what that reads and sets.

All around it is generated, as for steps that are Python functions: loops, indices, boundaries.
"""
from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from controllers.language.element_text import ElementText
from controllers.language.neighbourhood import Around, offsets_of
from controllers.language.region import region_of
from controllers.language.source import KernelSource, SourceLike
from controllers.language.step import Function, Signature, Step, step
from controllers.language.struct import Struct
from controllers.language.value import Value, is_value, plain
from controllers.program.coordinates import Coordinates
from controllers.program.element import INDEX, Element, Outcome
from controllers.program.expression import Constant, Expression, Index, Read, walk
from controllers.program.expression import reads as reads_of
from controllers.program.identifier import check_identifier
from controllers.program.scalars import TIME
from hitmap.argument import number, short, wrong

Scalars = Union[Mapping[str, Any], Sequence[str], None]
_OWN_WORDS = ("ELEMENT", "INDEX", "VALUE")


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
    text, where = _found(KernelSource.of(source))
    stem = os.path.basename(text.file).removesuffix(".cl") if text.file.endswith(".cl") else ""
    name = check_identifier(name or re.sub(r"\W", "_", stem) or "element", "step")
    what = f"opencl_c {name!r} ({where})"
    right = None if reference is None else step(reference)
    body = _Body(
        name, text, where, _reads(reads, what), _writes(writes, what), _scalars(scalars, what), right
    )
    body.check(what)
    times = tuple(one for one in (TIME,) if body.scalars.get(one, 0) is None)
    rest = {one: default for one, default in body.scalars.items() if one not in times}
    return Step(body, name, Signature(body.fields, rest, times), region_of(over))


@dataclass(frozen=True, eq=False)
class _Body:
    """What a step calls: given values that stand for fields, it gives those that stand for results.
    """

    name: str
    text: ElementText
    where: str
    reads: Mapping[str, Around]
    writes: tuple[str, ...]
    scalars: Mapping[str, float | None]
    reference: Step | None

    @property
    def fields(self) -> tuple[str, ...]:
        """Those that it reads, in order, then the others that it sets."""
        said = (*self.reads, *self.writes)
        return (*dict.fromkeys(one.partition(".")[0] for one in said),)

    def check(self, what: str) -> None:
        """ValueError where names have two meanings, or the reference takes what is not there."""
        for one in (*self.fields, *self.scalars):
            if one in _OWN_WORDS or (one in self.fields and one in self.scalars):
                raise ValueError(
                    f"{what}: {one!r} has a meaning already; rename the field or scalar"
                )
        asked = None if self.reference is None else self.reference.signature
        for one in () if asked is None else (*asked.fields, *asked.scalars, *asked.times):
            if one not in self.fields and one not in self.scalars:
                raise ValueError(
                    f"{what}: its reference takes {one!r}, which it does not have itself; there "
                    f"are {', '.join((*self.fields, *self.scalars))}"
                )

    def __call__(self, *given: Any, **scalars: Any) -> dict[str, Any]:
        names = self.fields
        if len(given) != len(names):
            raise TypeError(
                f"it takes the fields {', '.join(names)}, got {len(given)}; give one for each"
            )
        fields = dict(zip(names, given))
        parts = {one: part for name, value in fields.items() for one, part in _parts(name, value)}
        places = next(iter(parts.values())).places
        element = self._element(parts, places)
        arguments = self._arguments(scalars)
        nodes = [plain_node(arguments[name]) for name in self.scalars]
        if element.arguments[len(nodes) :]:
            nodes += [Index(axis) for axis in range(places.n_axes)]
        right = self._specifications(element, fields, arguments)
        found = {one: Value(Outcome(element, one, nodes, right.get(one)), places)
                 for one in element.writes}  # fmt: skip
        return {name: _whole(name, value, found) for name, value in fields.items()
                if any(one in found for one, _ in _parts(name, value))}  # fmt: skip

    def _element(self, parts: Mapping[str, Value], places: Coordinates) -> Element:
        """What programs know of it."""
        around: dict[str, tuple[tuple[int, ...], ...]] = {}
        for said, where in self.reads.items():
            for one in _named(said, parts, "reads"):
                around[one] = offsets_of(where, places.axes, said)
        writes = [one for said in self.writes for one in _named(said, parts, "writes")]
        self.text.check(around, writes, tuple(parts), places.n_axes)
        indices = [f"{INDEX}{axis}" for axis in range(places.n_axes)] if self.text.indexed else []
        return Element(
            self.name, self.text.text, self.text.file, self.text.line,
            tuple((one, _field(part, self.name)) for one, part in parts.items()),
            tuple((one, offset) for one, offsets in around.items() for offset in offsets),
            tuple(dict.fromkeys(writes)), (*self.scalars, *indices),
        )  # fmt: skip

    def _arguments(self, scalars: Mapping[str, Any]) -> dict[str, Any]:
        """The value of each scalar."""
        for name in scalars:
            if name not in self.scalars:
                raise TypeError(
                    f"it has no scalar {name!r} (there are {', '.join(self.scalars) or 'none'})"
                )
        found = {**self.scalars, **scalars}
        for name, value in found.items():
            if value is None:
                raise TypeError(f"the scalar {name!r} has no value and no default; give it")
            if not is_value(value) or any(isinstance(n, (Read, Outcome)) for n in _walked(value)):
                raise TypeError(
                    f"the scalar {name!r} is a number or a coordinate, got {short(value)}; values "
                    f"of cells are fields"
                )
        return found

    def _specifications(
        self, element: Element, fields: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Expression]:
        """What the reference gives for each field that is set."""
        if self.reference is None:
            return {}
        asked = self.reference.signature
        given = [fields[name] for name in asked.fields]
        returned = self.reference.function(
            *given, **{name: arguments[name] for name in (*asked.scalars, *asked.times)}
        )
        if not isinstance(returned, Mapping):
            raise wrong("its reference", "new values by the names of fields", returned)
        found: dict[str, Expression] = {}
        for name, value in returned.items():
            for one, part in _parts(str(name), value):
                found[one] = plain_node(part)
        missing = [one for one in element.writes if one not in found]
        if missing:
            raise ValueError(
                f"its reference gives {', '.join(map(str, returned)) or 'nothing'}, but not "
                f"{missing[0]!r}, which it sets; give all of {', '.join(element.writes)}"
            )
        declared = {(element.field_of[one], offset) for one, offset in element.reads}
        for read in reads_of(*(found[one] for one in element.writes)):
            if (read.field, read.offset) not in declared:
                raise ValueError(
                    f"its reference reads {read.field!r} at {read.offset}, which is not declared; "
                    f"declare it in reads="
                )
        return found


def plain_node(value: Any) -> Expression:
    """The expression of a value, or of a number."""
    if isinstance(value, Value):
        if value.node.is_condition:
            raise TypeError("a condition is no value; choose by np.where(condition, 1, 0)")
        return value.node
    if not is_value(value):
        raise wrong("a value", "one value per cell or a number", value)
    return Constant(plain(value))


def _walked(value: Any) -> list[Expression]:
    return walk(value.node) if isinstance(value, Value) else []


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a program that one of a step is, as OpenCL C names them."""
    if isinstance(value, Struct):
        yield from ((f"{name}_{part}", one) for part, one in value.parts.items())
    else:
        yield name, value


def _whole(name: str, given: Any, found: Mapping[str, Value]) -> Any:
    """What one field of a step becomes: of a struct, the components that are set, and the others.
    """
    if not isinstance(given, Struct):
        return found[name]
    return Struct({part: found.get(f"{name}_{part}", one) for part, one in given.parts.items()})


def _named(said: str, parts: Mapping[str, Value], what: str) -> list[str]:
    """The fields of a program that `q`, `q.rho` or `u` means."""
    if said in parts:
        return [said]
    name, _, part = said.partition(".")
    begin = f"{name}_{part}"
    found = [one for one in parts if one == begin or (not part and one.startswith(begin))]
    if not found:
        raise ValueError(
            f"{what}: there is no {said!r}; there are {', '.join(parts)}; a component of a struct "
            f"is said as q.rho"
        )
    return found


def _field(value: Any, name: str) -> str:
    """The field that a value is."""
    node = value.node if isinstance(value, Value) else None
    if not isinstance(node, Read) or any(node.offset):
        raise TypeError(
            f"{name!r} takes fields themselves, since it reads their neighbours, got "
            f"{short(value)}; make it a field by a step before this one"
        )
    return node.field


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


def _found(source: KernelSource) -> tuple[ElementText, str]:
    """The text with its place, in a file of its own or of the caller's; where that is."""
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
