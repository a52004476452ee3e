# SPDX-License-Identifier: MIT
"""What a step in OpenCL C gives while it is traced: the outcomes of its element function."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controllers.language.element_text import ElementText
from controllers.language.half_points import Half, common
from controllers.language.neighbourhood import Around, offsets_of
from controllers.language.step import Step
from controllers.language.struct import Struct
from controllers.language.value import Value, is_value, node_at, plain
from controllers.program.coordinates import Coordinates
from controllers.program.element import INDEX, Element, Outcome
from controllers.program.expression import Constant, Expression, Index, Read, walk
from controllers.program.expression import reads as reads_of
from hitmap.argument import short, wrong

_OWN_WORDS = ("ELEMENT", "INDEX", "VALUE")


@dataclass(frozen=True, eq=False)
class ElementCall:
    """What such a step calls: of values that stand for fields it makes those of the results."""

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
            is_new = one.removesuffix("_new") != one and one in self.scalars
            if one in _OWN_WORDS or (one in self.fields and one in self.scalars) or is_new:
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
        element = self._element(fields, parts, places)
        arguments = self._arguments(scalars)
        half = common([parts[one].half for one in element.writes], places.axes)
        assert half is not None, "fields lie somewhere"
        nodes = [_plain_node(arguments[name], half) for name in self.scalars]
        if element.arguments[len(nodes) :]:
            nodes += [Index(axis) for axis in range(places.n_axes)]
        right = self._specifications(element, fields, arguments, half)
        found = {one: Value(Outcome(element, one, nodes, right.get(one)), places, half=half)
                 for one in element.writes}  # fmt: skip
        return {name: _whole(name, value, found) for name, value in fields.items()
                if any(one in found for one, _ in _parts(name, value))}  # fmt: skip

    def _element(
        self, fields: Mapping[str, Any], parts: Mapping[str, Value], places: Coordinates
    ) -> Element:
        """What programs know of it."""
        around: dict[str, tuple[tuple[int, ...], ...]] = {}
        for said, where in self.reads.items():
            for one in _named(said, fields, "reads"):
                around[one] = offsets_of(where, places.axes, said)
        writes = [one for said in self.writes for one in _named(said, fields, "writes")]
        self.text.check(around, writes, tuple(parts), places.n_axes)
        bound = {one: _field(part, self.name) for one, part in parts.items()}
        indices = [f"{INDEX}{axis}" for axis in range(places.n_axes)] if self.text.indexed else []
        return Element(
            self.name, self.text.text, self.text.file, self.text.line, self.where,
            tuple((one, field) for one, field in bound.items() if around.get(one) or one in writes),
            tuple((one, offset) for one, offsets in around.items() for offset in offsets),
            tuple(dict.fromkeys(writes)), (*self.scalars, *indices),
            self.text.is_fixed(tuple(parts)),
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
        self,
        element: Element,
        fields: Mapping[str, Any],
        arguments: Mapping[str, Any],
        half: Half,
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
                found[one] = _plain_node(part, half)
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


def _plain_node(value: Any, half: Half) -> Expression:
    """The expression of a value, where what is set lies, or of a number."""
    if isinstance(value, Value):
        if value.node.is_condition:
            raise TypeError("a condition is no value; choose by np.where(condition, 1, 0)")
        common([value.half, half], value.places.axes)
        return node_at(value, half)
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


def _named(said: str, fields: Mapping[str, Any], what: str) -> list[str]:
    """The fields of a program that `q`, `q.rho` or `u` means."""
    name, _, part = said.partition(".")
    known = [one for one, _ in _parts(name, fields[name])]
    found = [one for one in known if one == f"{name}_{part}"] if part else known
    if not found:
        names = ", ".join(one.replace("_", ".", 1) for one in known)
        raise ValueError(f"{what}: there is no {said!r}; there are {names}")
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
