# SPDX-License-Identifier: MIT
"""The functions of a "wavefront" kernel: they compute slices of a level from the level below.

    kgt_first_4     level 1, 4 slices side by side: from the field into a ring
    kgt_next_4      a level in between: from one ring into another
    kgt_last_4      the last level: from a ring into the new field
    kgt_last_1 ...  a single slice, where 4 are not needed or not all are computed
    kgt_keep        into a ring, the cells around those that are computed

Cells are counted from the tile's first one.  All is inlined: the pitches of rings are constants,
and vectors that several values need are loaded once.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from controllers.expression import Read, reads
from controllers.kgt.emitter import INDENT, OPENCL_TYPES, assignment, element
from controllers.kgt.lanes import WIDE, Lanes
from controllers.kgt.rings import Rings
from controllers.program import Program, Stage

INLINE = "static inline __attribute__((always_inline))"
FIRST, NEXT, LAST, STREAM = "first", "next", "last", "stream"


@dataclass(frozen=True)
class Levels:
    """The functions of one stage."""

    program: Program
    stage: Stage
    rings: Rings

    @property
    def cell(self) -> str:
        """The type of a cell."""
        return OPENCL_TYPES[self.program.dtype]

    @property
    def last(self) -> int:
        """The last axis."""
        return self.program.n_axes - 1

    @property
    def others(self) -> list[str]:
        """The fields that are read and not written."""
        found = dict.fromkeys(read.field for read in reads(self.stage.expression))
        return [field for field in found if field != self.stage.writes]

    @property
    def pitches(self) -> list[str]:
        """The pitches of all fields, as the functions get them."""
        axes = range(self.last)
        return [f"{field}_pitch_{a}" for field in [self.stage.writes, *self.others] for a in axes]

    def helpers(self, streaming: bool) -> list[str]:
        """C lines before the kernel."""
        itemsize = np.dtype(self.program.dtype).itemsize
        lines = [
            WIDE,
            f"typedef {Lanes(self.rings.lanes).type(self.cell)} kgt_cells;",
            f"typedef kgt_cells kgt_unaligned __attribute__((aligned({itemsize})));",
            "#define KGT_NEAR(at) (*(__global const kgt_unaligned *)(at))",
            "#define KGT_KEPT(at) (*(__local const kgt_unaligned *)(at))",
            "#define KGT_MIN(a, b) ((a) < (b) ? (a) : (b))",
            "#define KGT_MAX(a, b) ((a) > (b) ? (a) : (b))",
        ]
        if self.last:
            lines += [
                "// a slice in its ring, which may start before the tile",
                f"#define KGT_SLOT(ring, slice) ((ring) + (uint)((slice) + {self._shift}) "
                f"% {self.rings.slots} * {self.rings.pitch(0)})",
            ]
        kinds = [FIRST, *([NEXT] if self.rings.steps > 2 else []), LAST]
        for source in ("field", "ring"):
            lines += ["", *self._value(source)]
        for kind in kinds:
            for count in sorted({self.rings.slices, 1}, reverse=True):
                lines += ["", *self._slices(kind, count)]
        if streaming:
            lines += ["", *self._slices(STREAM, self.rings.slices)]
        return [*lines, "", *self._keep(), ""]

    def call(self, kind: str, count: int) -> str:
        """C text: a call of the function that computes `count` slices."""
        own, ring = self.stage.writes, self.rings.ring
        field = f"{own}{{}} + start_{own}"
        below = f"item_ring + (item_level - 2) * {ring}" if kind != FIRST else field.format("")
        level = f"item_ring + (item_level - 1) * {ring}"
        arguments = [below, level if kind in (FIRST, NEXT) else field.format("_new")]
        arguments += [f"{other} + start_{other}" for other in self.others]
        arguments += ["item_0"] if self.last else []
        for axis in range(min(1, self.last), self.last + 1):
            arguments += [f"item_start_{axis}", f"item_last_{axis}"]
        return f"kgt_{kind}_{count}({', '.join([*arguments, *self.pitches])});"

    def keep(self, slice: str) -> str:
        """C text: a call of `kgt_keep` for the slice of this number."""
        own, axes = self.stage.writes, range(min(1, self.last), self.last + 1)
        arguments = [f"{own} + start_{own}", f"item_ring + (item_level - 1) * {self.rings.ring}"]
        arguments += [slice] if self.last else []
        arguments.append("item_inside")
        for axis in axes:
            arguments += [f"item_{end}_{axis}" for end in ("kept", "end", "start", "last")]
        return f"kgt_keep({', '.join([*arguments, *self.pitches[: self.last]])});"

    @property
    def _shift(self) -> int:
        """A multiple of the slots that makes the number of any slice positive."""
        slices = self.rings.steps * sum(self.rings.reach[0]) + 2 * self.rings.slices
        return -(-slices // self.rings.slots) * self.rings.slots

    def _sources(self) -> list[str]:
        """The names of the slices that one value is computed from."""
        low, high = self.rings.reach[0] if self.last else (0, 0)
        return [f"at_{number}" for number in range(low + high + 1)]

    def _value(self, source: str) -> list[str]:
        """C lines: the function that computes a vector of cells."""
        own, last = self.stage.writes, self.last
        space, macro = ("__global", "KGT_NEAR") if source == "field" else ("__local", "KGT_KEPT")

        def near(read: Read) -> str:
            if read.field != own:
                return f"KGT_NEAR({read.field} + {element(read, f'c_{read.field}')})"
            number = read.offset[0] + self.rings.reach[0][0] if last else 0
            inside = Read(own, (0, *read.offset[1:])) if last else read
            return f"{macro}(at_{number} + {element(inside, 'item_at')})"

        parameters = [f"{space} const {self.cell} *const {name}" for name in self._sources()]
        parameters.append("const long item_at")
        for field in self.others:
            parameters += [f"__global const {self.cell} *const {field}", f"const long c_{field}"]
        inner = [f"{own}_pitch_{axis}" for axis in range(1, last)]
        parameters += [f"const long {name}" for name in self._value_pitches(source)]
        constants = [
            f"const long {name} = {self.rings.pitch(axis)};" for axis, name in enumerate(inner, 1)
        ]
        lanes = Lanes(self.rings.lanes, clang=True)
        value = assignment(
            "const kgt_cells item_value", self.stage, self.program.dtype, near, lanes
        )
        body = [*(constants if source == "ring" else []), *value, "return item_value;"]
        what = f"// {self.rings.lanes} cells of a row, from slices of a {source}"
        return [what, *_function(f"{INLINE} kgt_cells kgt_{source}_value", parameters, body)]

    def _value_pitches(self, source: str) -> list[str]:
        own = [f"{self.stage.writes}_pitch_{axis}" for axis in range(1, self.last)]
        others = [f"{field}_pitch_{axis}" for field in self.others for axis in range(self.last)]
        return [*(own if source == "field" else []), *others]

    def _slices(self, kind: str, count: int) -> list[str]:
        """C lines: the function that computes `count` slices of a level."""
        source = "field" if kind == FIRST else "ring"
        into = "field" if kind in (LAST, STREAM) else "ring"
        own, cell = self.stage.writes, self.cell
        parameters = [f"{_space(source)} const {cell} *const {own}"]
        parameters.append(f"{_space(into)} {cell} *const {own}_new")
        parameters += [f"__global const {cell} *const {field}" for field in self.others]
        parameters += ["const long item_0"] if self.last else []
        for axis in range(min(1, self.last), self.last + 1):
            parameters.append(f"const long item_start_{axis}, const long item_last_{axis}")
        parameters += [f"const long {name}" for name in self.pitches]
        rows = self._streamed(count) if kind == STREAM else self._row(source, into, count)
        for axis in range(self.last - 1, 0, -1):
            head = f"for (long item_{axis} = item_start_{axis}; item_{axis} < item_last_{axis}; "
            rows = [head + f"++item_{axis}) {{", *_indented(rows), "}"]
        body = [*self._slice_pointers(source, into, count), *rows]
        return _function(f"{INLINE} void kgt_{kind}_{count}", parameters, body)

    def _slice_pointers(self, source: str, into: str, count: int) -> Iterator[str]:
        """C lines: where the slices start that are read, and those that are written."""
        own, low = self.stage.writes, self.rings.reach[0][0]
        for number in range(count + len(self._sources()) - 1):
            at = self._slice(own, source, number - low)
            yield f"{_space(source)} const {self.cell} *const at_{number} = {at};"
        for number in range(count):
            at = self._slice(f"{own}_new", into, number)
            yield f"{_space(into)} {self.cell} *const at_new_{number} = {at};"

    def _slice(self, name: str, where: str, number: int) -> str:
        if not self.last:
            return name
        at = "item_0" + (f" {'-' if number < 0 else '+'} {abs(number)}" if number else "")
        if where == "ring":
            return f"KGT_SLOT({name}, {at})"
        return f"{name} + {f'({at})' if number else at} * {self.stage.writes}_pitch_0"

    def _row(self, source: str, into: str, count: int) -> list[str]:
        """C lines: one row of each slice, vector by vector."""
        x, lanes = self.last, self.rings.lanes
        return [
            *self._row_starts(source, into),
            "// vectors start at whole lines; the first one and the last one are moved inside",
            f"for (long group_{x} = item_start_{x} - ((item_start_{x} + item_skew) & {lanes - 1}); "
            f"group_{x} < item_last_{x}; group_{x} += {lanes}) {{",
            f"{INDENT}const long item_inner = group_{x} < item_last_{x} - {lanes} ? group_{x} : "
            f"item_last_{x} - {lanes};",
            f"{INDENT}const long item_{x} = "
            f"item_inner > item_start_{x} ? item_inner : item_start_{x};",
            *_indented(self._vectors(source, into, count)),
            "}",
        ]

    def _streamed(self, count: int) -> list[str]:
        """C lines: the same past the caches, but for the ends of the row."""
        x, lanes = self.last, self.rings.lanes
        plain = _indented(self._vectors("ring", "field", count))
        past = _indented(self._vectors("ring", "field", count, streaming=True))
        return [
            *self._row_starts("ring", "field"),
            f"const long item_grid = -(item_start_{x} + item_skew) & {lanes - 1};",
            f"long item_{x} = item_start_{x};",
            "// two vectors: no line that the first one touches is written past the caches",
            f"for (int item_end = 0; item_end < 2; ++item_end, item_{x} += item_grid) {{",
            *plain,
            "}",
            f"item_{x} = item_start_{x} + item_grid + {lanes};",
            f"for (; item_{x} <= item_last_{x} - {2 * lanes}; item_{x} += {lanes}) {{",
            *past,
            "}",
            f"for (; item_{x} < item_last_{x}; item_{x} += {lanes}) {{",
            f"{INDENT}item_{x} = "
            f"item_{x} < item_last_{x} - {lanes} ? item_{x} : item_last_{x} - {lanes};",
            *plain,
            "}",
        ]

    def _row_starts(self, source: str, into: str) -> Iterator[str]:
        """C lines: where the row is in the slices, and how far it is from a whole line."""
        own = self.stage.writes
        axes = range(1, self.last)
        for name, where in (("item_row", source), ("item_row_new", into)):
            terms = [
                f"item_{axis} * "
                + (f"{own}_pitch_{axis}" if where == "field" else str(self.rings.pitch(axis)))
                for axis in axes
            ]
            yield f"const long {name} = {' + '.join(terms) or '0'};"
        for field in self.others:
            terms = [f"item_{axis} * {field}_pitch_{axis}" for axis in range(self.last)]
            yield f"const long start_{field} = {' + '.join(terms) or '0'};"
        yield (
            "const long item_skew = (long)((ulong)(at_new_0 + item_row_new) "
            f"/ sizeof({self.cell})) & {self.rings.lanes - 1};"
        )

    def _vectors(
        self, source: str, into: str, count: int, streaming: bool = False
    ) -> Iterator[str]:
        """C lines: compute a vector of each slice, then store them all."""
        sources, x = self._sources(), self.last
        for number in range(count):
            arguments = [f"at_{number + at}" for at in range(len(sources))]
            arguments.append(f"item_row + item_{x}")
            for field in self.others:
                step = f" + {number} * {field}_pitch_0" if number else ""
                arguments += [field, f"start_{field} + item_{x}{step}"]
            arguments += self._value_pitches(source)
            yield f"const kgt_cells item_value_{number} ="
            yield f"{INDENT}kgt_{source}_value({', '.join(arguments)});"
        for number in range(count):
            at = f"at_new_{number} + item_row_new + item_{x}"
            value = f"item_value_{number}"
            if streaming:
                yield f"__builtin_nontemporal_store({value}, (__global kgt_cells *)({at}));"
            else:
                yield f"*({_space(into)} kgt_unaligned *)({at}) = {value};"

    def _keep(self) -> list[str]:
        """C lines: the function that copies what is not computed from the field into a ring."""
        own, cell, x = self.stage.writes, self.cell, self.last
        axes = range(min(1, x), x + 1)
        parameters = [f"__global const {cell} *const {own}", f"__local {cell} *const {own}_new"]
        parameters += ["const long item_0"] if x else []
        parameters.append("const int item_inside")
        for axis in axes:
            parameters.append(f"const long item_kept_{axis}, const long item_end_{axis}")
            parameters.append(f"const long item_start_{axis}, const long item_last_{axis}")
        parameters += [f"const long {own}_pitch_{axis}" for axis in range(x)]
        rows = [f" && item_{a} >= item_start_{a} && item_{a} < item_last_{a}" for a in range(1, x)]
        old = " + ".join([f"item_{a} * {own}_pitch_{a}" for a in range(x)] + [f"item_{x}"])
        new = " + ".join([f"item_{a} * {self.rings.pitch(a)}" for a in range(1, x)] + [f"item_{x}"])
        slot = f"KGT_SLOT({own}_new, item_0)" if x else f"{own}_new"
        body = [
            f"const int item_inner = item_inside{''.join(rows)};",
            f"for (long item_{x} = item_kept_{x}; item_{x} < item_end_{x}; ++item_{x}) {{",
            f"{INDENT}if (item_inner && item_{x} == item_start_{x})",
            f"{INDENT * 2}item_{x} = item_last_{x};  // those in between have been computed",
            f"{INDENT}if (item_{x} < item_end_{x})",
            f"{INDENT * 2}({slot})[{new}] = {own}[{old}];",
            "}",
        ]
        for axis in range(x - 1, 0, -1):
            head = f"for (long item_{axis} = item_kept_{axis}; item_{axis} < item_end_{axis}; "
            body = [head + f"++item_{axis}) {{", *_indented(body), "}"]
        return _function("static void kgt_keep", parameters, body)


def _function(head: str, parameters: list[str], body: list[str]) -> list[str]:
    lines = [f"{INDENT}{parameter}," for parameter in parameters]
    return [f"{head}(", *lines[:-1], f"{lines[-1][:-1]})", "{", *_indented(body), "}"]


def _indented(lines: Iterator[str] | list[str]) -> list[str]:
    return [INDENT + line for line in lines]


def _space(where: str) -> str:
    return "__global" if where == "field" else "__local"
