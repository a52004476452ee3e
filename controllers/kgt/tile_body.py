# SPDX-License-Identifier: MIT
"""The body of a kernel of the strategy "streaming", as lines of OpenCL C."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from controllers.expression import Constant, Expression, Operation, Read, reads
from controllers.kgt.division import Reciprocal, divide, reciprocal
from controllers.kgt.emitter import INDENT, OPENCL_TYPES, assignment, has_exact_reciprocal
from controllers.kgt.pipeline import KEPT, Pipeline
from controllers.kgt.tile import Shape, Tile
from controllers.program import Program, Stage

ANY_SHAPE = ((-(2**31) + 1, 2**31 - 1),) * 4
LOOPS = "ijk"   # of the cells of a block along the last axis, the last but one, the last but two


class Parameters(Shape, Protocol):
    """What the body takes of a configuration."""

    @property
    def length(self) -> int: ...
    @property
    def ahead(self) -> int: ...
    @property
    def unroll(self) -> int: ...
    @property
    def reciprocals(self) -> bool: ...


class TileBody:
    """Writes the body for one stage."""

    def __init__(self, program: Program, stage: Stage, made: Parameters, tile: Tile) -> None:
        self.dtype, self.stage, self.made, self.tile = program.dtype, stage, made, tile
        self.cell = OPENCL_TYPES[program.dtype]
        self.n_axes, self.own = program.n_axes, stage.writes
        self.pipeline = Pipeline.of(stage, tile.streams)
        self.others = sorted({r.field for r in reads(stage.expression)} - {self.own})
        self.loops = [LOOPS[self.n_axes - 1 - axis] for axis in tile.axes]
        self.steps, self.vector = made.steps_per_launch, made.vector

    # ---- helpers -------------------------------------------------------------------------------

    def helpers(self) -> list[str]:
        """Functions before the kernel."""
        lines = [*_LIMIT]
        lines += self._load_helper()
        lines += self._store_helper()
        if any(h.shuffled for h in self.tile.hand_overs):
            lines += _shuffles(self.cell)
        found = self._division()
        if found:
            lines += [*divide("kgt_divide", found, self.dtype, self._n_cells()), ""]
        return lines

    def _n_cells(self) -> int:
        n = 1
        for a in self.tile.axes:
            n *= self.tile.cells[a]
        return n

    def _division(self) -> Reciprocal | None:
        """How the result is divided, where it is a quotient by a constant."""
        tree = self.pipeline.result
        if self.made.reciprocals and isinstance(tree, Operation) and tree.symbol == "/":
            if isinstance(tree.right, Constant) and not has_exact_reciprocal(
                tree.right.value, self.dtype
            ):
                return reciprocal(tree.right.value, self.dtype)
        return None

    def _load_helper(self) -> list[str]:
        cell, n = self.cell, self.vector
        many = cell if n == 1 else f"{cell}{n}"
        parts = ["cells[0] = all_;"] if n == 1 else [
            f"cells[{i}] = all_.s{i};" for i in range(n)
        ]
        return [
            f"// {n} cells from element `at` on",
            f"void kgt_load({cell} *cells, __global const {cell} *from, const long at)",
            "{",
            f"{INDENT}const {many} all_ = *(__global const {many} *)(from + at);",
            *(INDENT + part for part in parts),
            "}",
            "",
            "// the same, without touching what lies outside of the elements first to last",
            f"void kgt_load_near({cell} *cells, __global const {cell} *from, const long at,",
            "                   const long first, const long last)",
            "{",
            f"{INDENT}if (at >= first && at + {n - 1} <= last)",
            f"{INDENT*2}kgt_load(cells, from, at);",
            f"{INDENT}else {{",
            *(f"{INDENT*2}cells[{i}] = from[kgt_limit(at + {i}, first, last)];" for i in range(n)),
            f"{INDENT}}}",
            "}",
            "",
        ]

    def _store_helper(self) -> list[str]:
        cell, n = self.cell, self.vector
        if n == 1:
            return []
        listed = ", ".join(f"cells[{i}]" for i in range(n))
        return [
            "// the cells `first` to `last` - 1 of a vector",
            f"void kgt_store(__global {cell} *to, const {cell} *cells,",
            "               const int first, const int last)",
            "{",
            f"{INDENT}if (first <= 0 && last >= {n})",
            f"{INDENT*2}*(__global {cell}{n} *)to = ({cell}{n})({listed});",
            f"{INDENT}else if (first < {n} && last > 0) {{",
            *(
                f"{INDENT*2}if (first <= {i} && {i} < last) to[{i}] = cells[{i}];"
                for i in range(n)
            ),
            f"{INDENT}}}",
            "}",
            "",
        ]

    # ---- the body ------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        return [
            *self._position(),
            *self._memory(),
            *self._planes(),
            *self._state(),
            "",
            *self._march(),
        ]

    def _position(self) -> list[str]:
        tile, n = self.tile, self.n_axes
        lines = ["// The tile and the item in it: their first cells in the box."]
        rest = "(int)get_local_id(0)"
        if tile.n_items == tile.items[-1]:
            lines.append(f"const int item_{n - 1} = {rest};")
        else:
            lines.append(f"const int item = {rest};")
            rest = "item"
            for axis in reversed(tile.axes):
                count = tile.items[axis]
                outer = axis == tile.axes[0]
                value = rest if outer else f"{rest} % {count}"
                lines.append(f"const int item_{axis} = {value};")
                rest = rest if count == 1 else f"{rest} / {count}"
        for axis in tile.axes:
            group = self._group(axis)
            margin = f" - {tile.margin[axis]}" if tile.margin[axis] else ""
            if axis == n - 1 and self.vector > 1:
                margin += f" - ({self.own}_first & {self.vector - 1})"
            lines.append(
                f"const long tile_{axis} = {group} * {tile.useful[axis]}{margin};"
            )
            own = f"item_{axis} * {tile.cells[axis]}" if tile.cells[axis] > 1 else f"item_{axis}"
            lines.append(f"const long start_{axis} = tile_{axis} + {own};")
        lines.append("// Which of the item's cells are written.")
        for axis in tile.axes:
            cells = tile.cells[axis]
            first = f"tile_{axis} + {tile.margin[axis]}"
            low = f"max({first}, 0L) - start_{axis}"
            high = f"min({first} + {tile.useful[axis]}, extent_{axis}) - start_{axis}"
            lines.append(f"const int first_{axis} = (int)kgt_limit({low}, 0, {cells});")
            lines.append(f"const int last_{axis} = (int)kgt_limit({high}, 0, {cells});")
        return lines

    def _group(self, axis: int) -> str:
        """C text of the number of the tile along an axis."""
        n, streams = self.n_axes, self.tile.streams
        place = n - 1 - axis
        if place < 2 or not streams:
            return f"(long)get_group_id({place})"
        return f"(long)get_group_id(2) / ((extent_0 + {self.made.length - 1}) / {self.made.length})"

    def _chunk(self) -> str:
        if self.n_axes == 4:
            chunks = f"((extent_0 + {self.made.length - 1}) / {self.made.length})"
            return f"(long)get_group_id(2) % {chunks}"
        return f"(long)get_group_id({self.n_axes - 1})"

    def _memory(self) -> list[str]:
        """C lines: the first and last elements that may be read, and the item's first element."""
        lines = ["// Per field: the elements that may be read, and the item's first one."]
        for field in [self.own, *self.others]:
            low, high = self._hull(field)
            ends = []
            for word, steps_reach, sign in (("lowest", self.tile.low, "-"),
                                            ("highest", self.tile.high, "+")):
                terms = [f"{field}_first"]
                for axis in range(self.n_axes):
                    reach = (self.steps - 1) * steps_reach[axis]
                    if word == "lowest":
                        edge = f"max({-reach}L, computed_first_{axis}){_plus(low[axis])}"
                    else:
                        more = f"extent_{axis}{_plus(reach)}"
                        edge = f"min({more}, computed_last_{axis}){_plus(high[axis] - 1)}"
                    terms.append(self._times(f"({edge})", field, axis))
                ends.append((word, terms))
            for word, terms in ends:
                lines.append(f"const long {word}_{field} = {terms[0]}")
                lines += [f"{INDENT}+ {term}" for term in terms[1:]]
                lines[-1] += ";"
            inner = " + ".join(
                [f"{field}_first", *(self._times(f"start_{a}", field, a) for a in self.tile.axes)]
            )
            lines.append(f"const long at_{field} = {inner};")
        return lines

    def _times(self, text: str, field: str, axis: int) -> str:
        return text if axis == self.n_axes - 1 else f"{text} * {field}_pitch_{axis}"

    def _hull(self, field: str) -> tuple[list[int], list[int]]:
        offsets = [r.offset for r in reads(self.stage.expression) if r.field == field]
        if field == self.own:
            offsets.append((0,) * self.n_axes)
        return [min(o) for o in zip(*offsets)], [max(o) for o in zip(*offsets)]

    def _planes(self) -> list[str]:
        """C lines: the planes of the group, and those of them that need no tests."""
        tile, steps, lag = self.tile, self.steps, self.pipeline.lag
        lines = []
        if tile.streams:
            reach = steps * tile.low[0]
            lines += [
                "// The planes that are written, and those that are loaded for them.",
                f"const long from = {self._chunk()} * {self.made.length};",
                f"const long to = min(from + {self.made.length}, extent_0);",
                f"long plane = max(from - {reach}, computed_first_0 - {tile.low[0]});",
                f"const long end = to{_plus(steps * lag)};",
            ]
        else:
            lines += ["long plane = 0;", "const long end = 1;"]
        inside = " && ".join(
            f"tile_{a} >= computed_first_{a} && "
            f"tile_{a} + {tile.items[a] * tile.cells[a]} <= computed_last_{a}"
            for a in tile.axes
        )
        lines.append(f"const bool inside = {inside};")
        lines.append("// Planes without tests: the tile lies in memory, and all of it is computed.")
        if tile.streams:
            lines += [
                f"long easy = max(plane, computed_first_0{_plus(max(lag, steps * lag))});",
                f"long hard = min(end, computed_last_0{_plus(min(lag, steps * lag))});",
            ]
        else:
            lines += ["long easy = 0, hard = 1;"]
        for field in [self.own, *self.others]:
            lines += self._narrow(field)
        lines += [
            f"if (!inside || hard - easy < {self.made.unroll})",
            f"{INDENT}easy = hard = end;",
        ]
        inner = [
            f"start_{a} >= computed_first_{a} && start_{a} + {tile.cells[a]} <= computed_last_{a}"
            for a in tile.axes
        ]
        lines.append("const bool all_computed = " + f"\n{INDENT}&& ".join(inner) + ";")
        return [part for line in lines for part in line.split("\n")]

    def _narrow(self, field: str) -> list[str]:
        tile, steps, lag = self.tile, self.steps, self.pipeline.lag
        low, high = self._hull(field)
        before, after = [f"{field}_first"], [f"{field}_first"]
        for a in tile.axes:
            width = tile.items[a] * tile.cells[a]
            lo, hi = (0, 0) if field == self.own else (low[a], high[a])
            before.append(self._times(f"(tile_{a}{_plus(lo)})", field, a))
            after.append(self._times(f"(tile_{a}{_plus(width - 1 + hi)})", field, a))
        lines = [
            f"const long before_{field} = {' + '.join(before)};",
            f"const long after_{field} = {' + '.join(after)};",
        ]
        if not tile.streams:
            return lines + [
                f"if (before_{field} < lowest_{field} || after_{field} > highest_{field})",
                f"{INDENT}hard = 0;",
            ]
        if field == self.own:
            first, last = 0, self.made.ahead
        else:
            first, last = low[0] - max(lag, steps * lag), high[0] - min(lag, steps * lag)
        pitch = f"{field}_pitch_0"
        return lines + [
            f"while (easy < hard && before_{field} + (easy{_plus(first)}) * {pitch} < lowest_{field})",
            f"{INDENT}++easy;",
            f"while (easy < hard && after_{field} + (hard{_plus(last - 1)}) * {pitch} > highest_{field})",
            f"{INDENT}--hard;",
        ]

    def _block(self) -> str:
        return "".join(f"[{self.tile.cells[a]}]" for a in self.tile.axes)

    def _state(self) -> list[str]:
        steps, block = self.steps, self._block()
        lines = ["// What is kept from plane to plane, per step."]
        lines += [
            f"{self.cell} kept_{number}[{steps}][{value.depth}]{block};"
            for number, value in enumerate(self.pipeline.values)
        ]
        if self.made.ahead and self.tile.streams:
            lines.append(f"{self.cell} ahead[{self.made.ahead}]{block};")
        if self._slots():
            lines += [
                f"__local {self.cell} edges[{2 * self._buffer()}];",
                f"int turn = {self._pad()};",
            ]
        for number, value in enumerate(self.pipeline.values):
            lines += self._nest(
                [f"kept_{number}[step][age]{self._at()} = 0;"],
                [("step", steps), ("age", value.depth)],
            )
        if self.made.ahead and self.tile.streams:
            for age in range(self.made.ahead):
                lines += self._load(f"ahead[{age}]", _plus(age).strip() or "+ 0", True)
        return lines

    def _at(self, before: Sequence[int] = ()) -> str:
        shifts = before or [0] * len(self.loops)
        return "".join(f"[{name}{_plus(shift)}]" for name, shift in zip(self.loops, shifts))

    def _nest(
        self, lines: Sequence[str], outer: Sequence[tuple[str, int]] = (), cells: bool = True
    ) -> list[str]:
        """C lines: `lines` in unrolled loops over the cells of the block."""
        loops = [*outer]
        if cells:
            loops += [(n, self.tile.cells[a]) for n, a in zip(self.loops, self.tile.axes)]
        loops = [(n, count) for n, count in loops]
        result: list[str] = []
        indent = ""
        for name, count in loops:
            result.append(f"{indent}#pragma unroll")
            result.append(f"{indent}for (int {name} = 0; {name} < {count}; ++{name})")
            indent += INDENT
        if len(lines) > 1:
            result[-1] += " {"
        result += [indent + line for line in lines]
        if len(lines) > 1:
            result.append(indent[: -len(INDENT)] + "}")
        return result

    def _load(self, target: str, away: str, limited: bool) -> list[str]:
        """C lines: load the item's cells of plane `plane` + away into the block `target`."""
        field = self.own
        element = f"at_{field}"
        if self.tile.streams:
            element += f" + (plane {away}) * {field}_pitch_0" if away != "+ 0" else f" + plane * {field}_pitch_0"
        for name, a in zip(self.loops[:-1], self.tile.axes[:-1]):
            element += f" + {name} * {field}_pitch_{a}"
        element += " + i"
        to = target + "".join(f"[{n}]" for n in self.loops[:-1]) + " + i"
        call = f"kgt_load({to}, {field}, {element});"
        if limited:
            call = f"kgt_load_near({to}, {field}, {element}, lowest_{field}, highest_{field});"
        result, indent = [], ""
        for name, a in zip(self.loops, self.tile.axes):
            step = f"{name} += {self.vector}" if name == "i" else f"++{name}"
            result += [
                f"{indent}#pragma unroll",
                f"{indent}for (int {name} = 0; {name} < {self.tile.cells[a]}; {step})",
            ]
            indent += INDENT
        return [*result, indent + call]

    def _march(self) -> list[str]:
        unroll = self.made.unroll
        if not self.tile.streams:
            unroll = 1
        fast = self._plane(limited=False)
        if unroll > 1:
            fast = [
                "#pragma unroll",
                f"for (int again = 0; again < {unroll}; ++again, ++plane) {{",
                *(INDENT + line for line in fast),
                "}",
            ]
        else:
            fast = [*fast, "++plane;"]
        return [
            "while (plane < end) {",
            f"{INDENT}const long until = plane < easy ? easy : end;",
            f"{INDENT}if (plane >= easy && plane + {unroll} <= hard) {{",
            f"{INDENT*2}for (; plane + {unroll} <= hard;) {{",
            *(INDENT * 3 + line for line in fast),
            f"{INDENT*2}}}",
            f"{INDENT}}} else {{",
            f"{INDENT*2}for (; plane < until; ++plane) {{",
            *(INDENT * 3 + line for line in self._plane(limited=True)),
            f"{INDENT*2}}}",
            f"{INDENT}}}",
            "}",
        ]

    def _plane(self, limited: bool) -> list[str]:
        """C lines: what is done when a plane arrives."""
        tile, block = self.tile, self._block()
        extended = "".join(f"[{n}]" for n in tile.extended())
        own = f"cells{self._at(tile.before)}"
        lines = [f"{self.cell} next{block};"]
        if self.made.ahead and tile.streams:
            lines += self._nest([f"next{self._at()} = ahead[0]{self._at()};"])
            for age in range(1, self.made.ahead):
                lines += self._nest([f"ahead[{age - 1}]{self._at()} = ahead[{age}]{self._at()};"])
            lines += self._load(f"ahead[{self.made.ahead - 1}]", f"+ {self.made.ahead}", limited)
        else:
            lines += self._load("next", "+ 0", limited)
        step = [
            f"{self.cell} cells{extended};",
            *self._nest([f"{own} = next{self._at()};"]),
            *self._exchange(),
            *self._compute(limited),
        ]
        lines += [
            "#pragma unroll",
            f"for (int step = 0; step < {self.steps}; ++step) {{",
            *(INDENT + line for line in step),
            "}",
            *self._store(),
        ]
        return lines

    def _slots(self) -> list[tuple[int, ...]]:
        return sorted({h.cell for h in self.tile.hand_overs if not h.shuffled})

    def _pad(self) -> int:
        return max([0, *(abs(h.away) for h in self.tile.hand_overs if not h.shuffled)])

    def _buffer(self) -> int:
        return len(self._slots()) * self.tile.n_items + 2 * self._pad()

    def _exchange(self) -> list[str]:
        """C lines: the cells of other items."""
        tile, lines, slots = self.tile, [], self._slots()
        place = [tuple(c + b for c, b in zip(h.cell, tile.before)) for h in tile.hand_overs]
        target = [tuple(c + b for c, b in zip(h.to, tile.before)) for h in tile.hand_overs]
        item = "item" if tile.n_items != tile.items[-1] else f"item_{self.n_axes - 1}"
        for number, slot in enumerate(slots):
            at = "".join(f"[{c + b}]" for c, b in zip(slot, tile.before))
            lines.append(f"edges[turn{_plus(number * tile.n_items)} + {item}] = cells{at};")
        if slots:
            lines.append("barrier(CLK_LOCAL_MEM_FENCE);")
        for h, own, to in zip(tile.hand_overs, place, target):
            left = "cells" + "".join(f"[{n}]" for n in to)
            if h.shuffled:
                word = "before" if h.away < 0 else "after"
                value = f"kgt_{word}(cells{''.join(f'[{n}]' for n in own)}, {abs(h.away)})"
            else:
                offset = slots.index(h.cell) * tile.n_items + h.away
                value = f"edges[turn + {item}{_plus(offset)}]"
            lines.append(f"{left} = {value};")
        if slots:
            lines.append(f"turn = {self._buffer() + 2 * self._pad()} - turn;")
        return lines

    def _compute(self, limited: bool) -> list[str]:
        found = self._division()
        result = self.pipeline.result
        if found:
            assert isinstance(result, Operation)
            result = result.left
        lines = self._nest(self._value(f"next{self._at()}", result, self.pipeline.lag, limited))
        if found:
            lines.append(f"kgt_divide(({self.cell} *)next);")
        if limited:
            lines += self._restore()
        for number, value in self.pipeline.order():
            kept = f"kept_{number}[step]"
            for age in range(value.depth - 1, 0, -1):
                lines += self._nest([f"{kept}[{age}]{self._at()} = {kept}[{age - 1}]{self._at()};"])
            lines += self._nest(
                self._value(f"{kept}[0]{self._at()}", value.tree, value.arrival, limited)
            )
        return lines

    def _value(self, target: str, tree: Expression, arrival: int, limited: bool) -> list[str]:
        return assignment(
            target,
            replace(self.stage, expression=tree, shape=ANY_SHAPE[: self.n_axes]),
            self.dtype,
            lambda read: self._read(read, arrival, limited),
        )

    def _read(self, read: Read, arrival: int, limited: bool) -> str:
        if read.field == KEPT:
            number, delay = read.offset[:2]
            return f"kept_{number}[step][{delay - 1}]{self._at()}"
        inner = read.offset[1:] if self.tile.streams else read.offset
        if read.field == self.own:
            shifts = [o + b for o, b in zip(inner, self.tile.before)]
            return "cells" + self._at(shifts)
        element = f"at_{read.field}"
        if self.tile.streams:
            lag = self.pipeline.lag
            back = f" - step * {lag}" if lag > 0 else f" + step * {-lag}" if lag else ""
            element += f" + (plane{back}{_plus(read.offset[0] - arrival)}) * {read.field}_pitch_0"
        for name, a, o in zip(self.loops, self.tile.axes, inner):
            element += f" + {self._times(f'({name}{_plus(o)})', read.field, a)}"
        if limited:
            element = f"kgt_limit({element}, lowest_{read.field}, highest_{read.field})"
        return f"{read.field}[{element}]"

    def _restore(self) -> list[str]:
        """C lines: cells that are not computed have the value of the field."""
        lag, u = self.pipeline.lag, self.own
        tests, element = [], f"at_{u}"
        lines = []
        whole = "all_computed"
        if self.tile.streams:
            back = f" - (step + 1) * {lag}" if lag > 0 else f" + (step + 1) * {-lag}" if lag else ""
            lines.append(f"const long target = plane{back};")
            lines.append(
                "const bool computed = target >= computed_first_0 && target < computed_last_0;"
            )
            whole = "computed && all_computed"
            tests.append("computed")
            element += f" + target * {u}_pitch_0"
        for name, a in zip(self.loops, self.tile.axes):
            tests.append(f"start_{a} + {name} >= computed_first_{a}")
            tests.append(f"start_{a} + {name} < computed_last_{a}")
            element += f" + {self._times(name, u, a)}"
        body = [
            f"if (!({' && '.join(tests)}))",
            f"{INDENT}next{self._at()} = {u}[kgt_limit({element}, lowest_{u}, highest_{u})];",
        ]
        return [
            *lines,
            f"if (!({whole})) {{",
            *(INDENT + line for line in self._nest(body)),
            "}",
        ]

    def _store(self) -> list[str]:
        tile, u = self.tile, self.own
        lag = self.steps * self.pipeline.lag
        element = f"at_{u}"
        if tile.streams:
            element += f" + (plane{_plus(-lag)}) * {u}_pitch_0"
        for name, a in zip(self.loops[:-1], tile.axes[:-1]):
            element += f" + {name} * {u}_pitch_{a}"
        inner = "".join(f"[{n}]" for n in self.loops[:-1])
        last = tile.axes[-1]
        if self.vector == 1:
            store = [
                f"if (i >= first_{last} && i < last_{last})",
                f"{INDENT}{u}_new[{element} + i] = next{inner}[i];",
            ]
        else:
            store = [
                f"kgt_store({u}_new + {element} + i, next{inner} + i, "
                f"first_{last} - i, last_{last} - i);"
            ]
        result, indent = [], ""
        if tile.streams:
            result += [f"if (plane{_plus(-lag)} >= from && plane{_plus(-lag)} < to) {{"]
            indent = INDENT
        body = []
        for name, a in zip(self.loops, tile.axes):
            step = f"{name} += {self.vector}" if name == "i" else f"++{name}"
            body += [
                f"{indent}#pragma unroll",
                f"{indent}for (int {name} = 0; {name} < {tile.cells[a]}; {step})",
            ]
            indent += INDENT
            if name != "i":
                body += [f"{indent}if ({name} >= first_{a} && {name} < last_{a})"]
                indent += INDENT
        body += [indent + line for line in store]
        return [*result, *body, *(["}"] if tile.streams else [])]


_LIMIT = """\
// the number next to `at` from first to last
long kgt_limit(const long at, const long first, const long last)
{
    return at < first ? first : at > last ? last : at;
}
""".splitlines()


def _shuffles(cell: str) -> list[str]:
    """C lines: functions that hand a value over within a warp."""
    if cell == "float":
        moves = [
            ('asm volatile("shfl.sync.{0}.b32 %0, %1, %2, {1}, -1;"', '    : "=f"(other) : "f"(value), "r"(away));')
        ]
    lines = []
    for word, mode, clamp in (("before", "up", 0), ("after", "down", 31)):
        lines += [
            f"// the value of the item that is `away` items {word} this one in its warp",
            f"{cell} kgt_{word}(const {cell} value, const uint away)",
            "{",
            f"{INDENT}{cell} other;",
        ]
        if cell == "float":
            lines += [
                f'{INDENT}asm volatile("shfl.sync.{mode}.b32 %0, %1, %2, {clamp}, -1;"',
                f'{INDENT*2}: "=f"(other) : "f"(value), "r"(away));',
            ]
        else:
            lines += [
                f'{INDENT}asm volatile("{{ .reg .b32 low, high; mov.b64 {{low, high}}, %1;"',
                f'{INDENT*2}"shfl.sync.{mode}.b32 low, low, %2, {clamp}, -1;"',
                f'{INDENT*2}"shfl.sync.{mode}.b32 high, high, %2, {clamp}, -1;"',
                f'{INDENT*2}"mov.b64 %0, {{low, high}}; }}"',
                f'{INDENT*2}: "=d"(other) : "d"(value), "r"(away));',
            ]
        lines += [f"{INDENT}return other;", "}", ""]
    return lines


def _plus(offset: int) -> str:
    return f" {'-' if offset < 0 else '+'} {abs(offset)}" if offset else ""
