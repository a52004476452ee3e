# SPDX-License-Identifier: MIT
"""What a "streaming" kernel copies, between two of its steps, of the cells behind mirrors.

Planes behind the last one show planes that came before: some are kept.  Planes behind the first one
come before what they show, so that groups at such an end hold back, between two steps, as many
planes as that takes:

    made of a step      -2  -1   0   1   2   3        reach 2: a plane goes on 3 planes late
    the next one gets   ..  ..  ..  -2  -1   0        -2 as 1 is made, which it shows; -1 shows 0

Along the other axes the cells of a plane are handed over through local memory.  Which cells show
which says `Mirrors.renew`: the last axis decides, and what lies beyond other ends stays as it is.
"""
# docs/decisions/0018-several-steps-per-launch.md
from __future__ import annotations

from collections.abc import Iterator
from math import prod

from controllers.kgt.strategies.streaming.design import Design
from controllers.kgt.strategies.streaming.tile_text import sizes, unrolled
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.c_text import plus


class TileMirrors:
    """Writes the lines."""

    def __init__(self, design: Design) -> None:
        self.design, self.tile, self.signs = design, design.tile, design.mirrors.signs
        self._lengths = [design.tile.items[axis] * design.tile.cells[axis]
                         for axis in design.tile.axes]  # fmt: skip

    @property
    def within_planes(self) -> bool:
        """Whether cells of a plane show others of it."""
        return any(any(self.signs[axis]) for axis in self.tile.axes if self.signs)

    def memory(self) -> list[str]:
        """C lines: the local memory."""
        if not self.within_planes:
            return []
        return [f"__local {self.design.cell} seen[{self.n_seen}];"]

    @property
    def n_seen(self) -> int:
        """Cells that there is room for in local memory: those of the tile."""
        return prod(self._lengths) if self.within_planes else 0

    def state(self) -> list[str]:
        """C lines: what groups at an end keep of a plane and of those before it."""
        if not self.design.mirrors_planes:
            return []
        delay = self.design.most_delay
        held = self._planes_of("held", delay) if self.design.follower and delay else []
        return [
            "// the planes that each step has made last", *self._planes_of("made", self._n_made),
            *held,
        ]  # fmt: skip

    def _planes_of(self, name: str, count: int) -> list[str]:
        """C lines: an array of so many planes, for each step but the last."""
        shape = (self.design.steps - 1, count, *self.tile.block)
        loops = [("step", shape[0], 1), ("age", shape[1], 1)]
        loops += [(each, count, 1) for each, count in zip(self.tile.loops, self.tile.block)]
        return block("""
            $cell $name$sizes;
            $zero
        """, cell=self.design.cell, name=name, sizes=sizes(shape),
            zero=unrolled(loops, [f"{name}[step][age]{self.design.index()} = 0;"]))

    def held_back(self) -> list[str]:
        """C lines: the next step gets the field that follows as late as the planes of its own."""
        here, delay = self.design.index(), self.design.most_delay
        aged = [f"held[step][{age}]{here} = held[step][{age - 1}]{here};"
                for age in range(delay - 1, 0, -1)]  # fmt: skip
        return block("""
            if (step < $last && delay) {
                $each
            }
        """, last=self.design.steps - 1, each=self.design.each_cell(block("""
            const $cell late = held[step][$oldest]$here;
            $aged
            held[step][0]$here = behind$here;
            behind$here = late;
        """, cell=self.design.cell, oldest=delay - 1, here=here, aged=aged)))

    def ends(self) -> list[str]:
        """C lines: where the mirrors along the tile are, counted from its first cell."""
        lines = []
        for axis, length in zip(self.tile.axes, self._lengths):
            lines += block("""
                const int wall_$x = (int)kgt_limit(computed_first_$x - tile_$x, -$far, $far);
                const int back_$x = (int)kgt_limit(computed_last_$x - tile_$x, -$far, $far);
            """, x=axis, far=2 * length)
        return lines if self.within_planes else []

    def lines(self) -> list[str]:
        """C lines: what the next step gets of the plane that one has made, in `next`."""
        if not self.signs:
            return []
        held = block("""
            if (step < $last) {
                $planes
            }
        """, last=self.design.steps - 1, planes=self._planes())
        # after the last step, too: barriers are better in no branch, and what changes is not stored
        within = self._within() if self.within_planes else []
        return [*(held if self.design.mirrors_planes else []), *within]

    @property
    def _n_made(self) -> int:
        """Planes that are kept: those that are held back, and as many as mirrors show."""
        low, high = self.signs[0]
        shown = 2 * self.design.tile.high[0] if high else 1
        return shown + (self.design.most_delay if low else 0)

    def _planes(self) -> list[str]:
        """C lines: planes behind the first or the last one are those that they show."""
        lines = []
        for age in range(self._n_made - 1, 0, -1):
            lines += self.design.copied(f"made[step][{age}]", f"made[step][{age - 1}]")
        lines += self.design.copied("made[step][0]", "next")
        here = self.design.index()
        if self.design.most_delay:
            held = f"delay ? made[step][{self.design.most_delay}]{here} : next{here}"
            lines += self.design.each_cell([f"next{here} = {held};"])
        for behind, value in self._shown(here):
            lines += block("""
                if ($behind) {
                    $copied
                }
            """, behind=behind, copied=self.design.each_cell(block("""
                if ($inside)
                    next$here = $value;
            """, inside=self._inside(), here=here, value=value)))
        return lines

    def _shown(self, here: str) -> Iterator[tuple[str, str]]:
        """C text: whether the next step gets the plane so far behind an end, and what it shows."""
        low, high = self.signs[0]
        delay = self.design.most_delay
        gone = f"(step + 1) * {self.design.apart('delay' if delay else '')}"
        for far in range(1, self.tile.low[0] + 1) if low else ():
            made = f"made[step][{delay - (2 * far - 1)}]{here}"
            yield f"delay && since - {gone} == {-far}", _signed(low, made)
        for far in range(1, self.tile.high[0] + 1) if high else ():
            made = f"made[step][{2 * far - 1}]{here}"
            if delay:
                made = f"(delay ? made[step][{delay + 2 * far - 1}]{here} : {made})"
            yield f"past - {gone} == {far - 1}", _signed(high, made)

    def _inside(self) -> str:
        """C text: whether the cell of the loops is computed, as far as its plane is."""
        return " && ".join(
            f"{name} >= lowest_{axis} && {name} < highest_{axis}"
            for name, axis in zip(self.tile.loops, self.tile.axes)
        )

    def _within(self) -> list[str]:
        """C lines: cells of a plane become those of it that they show."""
        here, axes = self.design.index(), self.tile.axes
        own = [f"item_{axis} * {self.tile.cells[axis]} + {name}"
               for axis, name in zip(axes, self.tile.loops)]  # fmt: skip
        given = self.design.each_cell([f"seen[{self._element(own)}] = next{here};"])
        places = [f"int at_{axis} = {text};" for axis, text in zip(axes, own)]
        nearest = [f"(int)kgt_limit(at_{axis}, 0, {length - 1})"
                   for axis, length in zip(axes, self._lengths)]  # fmt: skip
        odd = any(sign < 0 for axis in axes for sign in self.signs[axis])
        value = f"seen[{self._element(nearest)}]"
        taken = self.design.each_cell(block("""
            if (!($inside)) {
                $places
                bool stays = false$odd;
                $found
                next$here = $value;
            }
        """, inside=self._inside(), places=places, odd=", odd = false" if odd else "",
            found=[line for axis in reversed(axes) for line in self._found(axis)], here=here,
            value=f"odd ? -{value} : {value}" if odd else value))
        return block("""
            $given
            barrier(CLK_LOCAL_MEM_FENCE);
            $taken
            barrier(CLK_LOCAL_MEM_FENCE);
        """, given=given, taken=taken)

    def _found(self, axis: int) -> list[str]:
        """C lines: along one axis, the place that is seen, unless the cell stays as it is."""
        low, high = self.signs[axis]
        return block("""
            if (!stays && at_$x < wall_$x) {
                $below
            } else if (!stays && at_$x >= back_$x) {
                $above
            }
        """, x=axis, below=_seen(low, f"at_{axis}", f"wall_{axis}"),
            above=_seen(high, f"at_{axis}", f"back_{axis}"))

    def _element(self, places: list[str]) -> str:
        """C text of the element of `seen` at a place of the tile."""
        text = places[0]
        for place, length in zip(places[1:], self._lengths[1:]):
            text = f"({text}) * {length} + {place}"
        return text


def _signed(sign: int, value: str) -> str:
    return value if sign > 0 else f"-{value}"


def _seen(sign: int, at: str, end: str) -> list[str]:
    """C lines: from a place behind an end to the one that a mirror shows there, if it is one."""
    if not sign:
        return ["stays = true;"]
    return [f"{at} = 2 * {end}{plus(-1)} - {at};", *(["odd = !odd;"] if sign < 0 else [])]
