# SPDX-License-Identifier: MIT
"""The strategy "wavefront", for CPUs: several time steps of a tile while it is in the cache.

    axis 0   old level      level 1       level 2       level 3, the new one
      |      ========       ........      ........      ........
      |      ========       ========      ........      ........      ==  known
      v      ========       ========      ========      ........      ..  known no more: its slot
             ========       ========      ========      ========          holds a later slice
             ========       > now  <      ========      ========
             (memory)                     > now  <      ========      (memory)
                                                        > now  <

A work-item streams the slices of its tile (rows; planes) along axis 0 through all levels: each
level follows the one below it by its reach, a few slices side by side.  The levels in between lie
in rings (`controllers.kgt.rings`), so memory sees one read and one write for all steps.  Only the
cells around a tile are computed twice.  Cells that the stage does not compute are copied from the
old level to each ring.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np

from controllers.kgt import frame
from controllers.kgt.emitter import INDENT, arithmetic_type, used_fields
from controllers.kgt.kernel import GeneratedKernel, WorkSizes
from controllers.kgt.lanes import Lanes
from controllers.kgt.levels import FIRST, LAST, NEXT, STREAM, Levels
from controllers.kgt.rings import Rings, own_reach
from controllers.program import Program, Stage

_BYTES = {"int": 4, "long": 8, "ulong": 8, "float": 4, "double": 8}


@dataclass(frozen=True)
class WavefrontConfiguration:
    """The parameters of "wavefront".

    lanes: cells of a vector, 2 to 16.  slices: of a level, computed side by side.  band, depth,
    height, segment: the most cells of an item's tile along the first axis, the second of four, the
    last but one, the last.  streaming: stores bypass the caches (for fields that exceed them).
    """

    strategy: ClassVar[str] = "wavefront"

    steps_per_launch: int = 8
    lanes: int = 16
    slices: int = 4
    band: int = 512
    depth: int = 1
    height: int = 1
    segment: int = 2048
    streaming: bool = False

    def __post_init__(self) -> None:
        if self.steps_per_launch < 2:
            raise ValueError(
                f"a wavefront makes at least 2 steps per launch, got {self.steps_per_launch}; "
                f"use the strategy 'rows' for one"
            )

    @classmethod
    def default(
        cls, program: Program, stage: Stage, streaming: bool = False
    ) -> WavefrontConfiguration:
        """What is good for `stage` on a CPU (docs/performance.md); 64 bytes to a vector."""
        lanes = 64 // _BYTES[arithmetic_type(stage, program.dtype)]
        width = 64 // np.dtype(program.dtype).itemsize
        if program.n_axes == 1:
            return cls(8, lanes, 1, band=1, segment=128 * width, streaming=streaming)
        if program.n_axes == 2:
            return cls(8, lanes, 4, segment=128 * width, streaming=streaming)
        if program.n_axes == 3:
            return cls(3, lanes, 3, band=192, height=24, segment=32 * width)
        return cls(2, lanes, 2, band=48, depth=8, height=8, segment=16 * width)

    def search_space(self, n_axes: int) -> Iterator[WavefrontConfiguration]:
        """What may be tried instead, with the same stores."""
        steps = (2, 3, 4, 6, 8, 12, 16)
        slices = (1, 2, 3, 4, 6) if n_axes > 1 else (1,)
        bands = sorted({64, 192, 512, self.band}) if n_axes > 1 else [1]
        heights = sorted({8, 16, 24, 32, 48}) if n_axes > 2 else [1]
        depths = (4, 8, 16) if n_axes > 3 else (1,)
        segments = sorted({self.segment // 2, self.segment, self.segment * 2})
        lanes = (self.lanes, self.lanes // 2)
        for values in product(steps, lanes, slices, bands, depths, heights, segments):
            yield WavefrontConfiguration(*values, self.streaming)

    def within(self, extent: tuple[int, ...]) -> WavefrontConfiguration:
        """The same for a box of this extent: no more slices side by side than it has."""
        slices = extent[0] if len(extent) > 1 else 1
        return replace(self, slices=min(self.slices, slices))

    def fitting(
        self, program: Program, stage: Stage, local_bytes: int
    ) -> WavefrontConfiguration | None:
        """The same with tiles whose rings fit this much local memory; None where none do."""
        made, least = self, 4 * self.lanes
        while made.local_bytes(program, stage) > local_bytes:
            if made.segment > least and made.segment >= 8 * made.height:
                made = replace(made, segment=max(least, made.segment // 2))
            elif made.height > 1:
                made = replace(made, height=made.height // 2)
            elif made.depth > 1:
                made = replace(made, depth=made.depth // 2)
            elif made.segment > least:
                made = replace(made, segment=max(least, made.segment // 2))
            else:
                return None
        return made

    def tile(self, n_axes: int) -> tuple[int, ...]:
        """The most cells of an item's tile."""
        return (
            (self.segment,),
            (self.band, self.segment),
            (self.band, self.height, self.segment),
            (self.band, self.depth, self.height, self.segment),
        )[n_axes - 1]

    def rings(self, program: Program, stage: Stage) -> Rings:
        """Where the levels in between are kept."""
        tile = self.tile(program.n_axes)
        return Rings(own_reach(stage), self.steps_per_launch, self.lanes, self.slices, tile)

    def local_bytes(self, program: Program, stage: Stage) -> int:
        """The local memory of a device that the kernel needs."""
        return self.rings(program, stage).n_elements * np.dtype(program.dtype).itemsize


def wavefront_kernel(
    program: Program, stage: Stage, configuration: WavefrontConfiguration | None = None
) -> GeneratedKernel:
    """The kernel of `stage` that computes several steps of a tile."""
    made = configuration or WavefrontConfiguration.default(program, stage)
    levels = Levels(program, stage, made.rings(program, stage))
    how = f"{made.steps_per_launch} steps of a tile in the cache, in vectors of {made.lanes} cells"
    body = [*_tile(levels, made), *_wavefront(levels, made)]
    least = (*(1,) * (program.n_axes - 1), made.lanes)
    return frame.kernel(
        program, stage, how, body, work_sizes(made), helpers=levels.helpers(made.streaming),
        lanes=Lanes(made.lanes, clang=True), least=least, steps_per_launch=made.steps_per_launch,
    )  # fmt: skip


def work_sizes(made: WavefrontConfiguration) -> WorkSizes:
    """One item per tile; each is a work-group, so that cores share them out.

    Segments end with whole lines of memory, so there may be one more of them.

    >>> work_sizes(WavefrontConfiguration(segment=1024))((1000, 8191), True)
    ((9, 2), (1, 1))
    """

    def sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        tile = made.tile(len(extent))
        cells = (*extent[:-1], extent[-1] + made.lanes - 1)
        counts = [-(-n // most) for n, most in zip(cells, tile)]
        if len(counts) == 4:
            counts[:2] = [counts[0] * counts[1]]
        return tuple(counts[::-1]), (1,) * len(counts)

    return sizes


def _tile(levels: Levels, made: WavefrontConfiguration) -> list[str]:
    """C lines: per axis `start_A` and `last_A`, the cells of the item's tile, and its places."""
    n_axes, own, lanes = levels.program.n_axes, levels.stage.writes, made.lanes
    tile, last = made.tile(n_axes), levels.last
    lines = [
        f"// {made.steps_per_launch - 1} rings of {levels.rings.slots} slices",
        f"__local {levels.cell} item_rings[{levels.rings.n_elements}] "
        "__attribute__((aligned(128)));",
        "",
        "// the item's tile; segments of a row start with whole lines",
        f"const long item_line = (long)((ulong)({own}_new + {own}_first) / sizeof({levels.cell})) "
        f"& {lanes - 1};",
        f"const long group_{last} = (long)get_group_id(0) * {tile[last]} - item_line;",
        f"const long item_side = group_{last} > 0 ? group_{last} : 0;",
        f"const long start_{last} = item_side < extent_{last} - {lanes} ? item_side : "
        f"extent_{last} - {lanes};",
        f"const long last_{last} = "
        + frame.minimum(f"group_{last} + {tile[last]}", f"extent_{last}") + ";",
    ]
    for axis in range(last - 1, -1, -1):
        number = f"(long)get_group_id({last - axis})"
        if n_axes == 4 and axis < 2:
            tiles = f"((extent_1 + {tile[1] - 1}) / {tile[1]})"
            number = f"(long)get_group_id(2) {'/' if axis == 0 else '%'} {tiles}"
        lines += [
            f"const long start_{axis} = {number} * {tile[axis]};",
            f"const long last_{axis} = "
            + frame.minimum(f"start_{axis} + {tile[axis]}", f"extent_{axis}") + ";",
        ]
    return [*lines, *_places(levels)]


def _places(levels: Levels) -> list[str]:
    """C lines: the element of the tile's first cell in each field, and in the first ring."""
    own, cell = levels.stage.writes, levels.cell
    lines = []
    for field in used_fields(levels.stage):
        terms = [f"start_{axis} * {field}_pitch_{axis}" for axis in range(levels.last)]
        at = " + ".join([f"{field}_first", *terms, f"start_{levels.last}"])
        lines.append(f"const long start_{field} = {at};")
    return [
        *lines,
        f"__local {cell} *const item_ring = item_rings + {levels.rings.origin}",
        f"{INDENT}+ ((long)((ulong)({own} + start_{own}) / sizeof({cell})) "
        f"& {levels.rings.lanes - 1});",
        "",
    ]


def _wavefront(levels: Levels, made: WavefrontConfiguration) -> list[str]:
    """C lines: the wavefront through the tile."""
    rings, steps = levels.rings, made.steps_per_launch
    body = [
        f"for (int item_level = 1; item_level <= {steps}; ++item_level) {{",
        *_indented([*_ranges(levels, steps), *_level(levels, made)]),
        "}",
    ]
    if levels.last == 0:
        return body
    warm = -(-(steps - 1) * sum(rings.reach[0]) // rings.slices) * rings.slices
    return [
        "// item_front: the slices of the last level; the others are ahead of it",
        f"for (long item_front = {-warm}; item_front < last_0 - start_0; "
        f"item_front += {rings.slices})",
        *_indented(body),
    ]


def _ranges(levels: Levels, steps: int) -> list[str]:
    """C lines: per axis the cells that a level needs, and those of them that are computed."""
    lines = [
        f"const int item_left = {steps} - item_level;  // steps to go",
        "// counted from the tile's first cell: the cells of the level, and those computed",
    ]
    for axis, (low, high) in enumerate(levels.rings.reach):
        first, end = f"computed_first_{axis} - start_{axis}", f"computed_last_{axis} - start_{axis}"
        cells = f"last_{axis} - start_{axis} + item_left * {high}"
        lines += [
            f"const long item_kept_{axis} = KGT_MAX(-item_left * {low}L, {first} - {low});",
            f"const long item_end_{axis} = KGT_MIN({cells}, {end} + {high});",
            f"const long item_start_{axis} = KGT_MAX(-item_left * {low}L, {first});",
            f"const long item_last_{axis} = KGT_MIN({cells}, {end});",
        ]
    return lines


def _level(levels: Levels, made: WavefrontConfiguration) -> list[str]:
    """C lines: all that one level does while the front is at one place."""
    framed = " || ".join(
        f"item_kept_{axis} != item_start_{axis} || item_end_{axis} != item_last_{axis}"
        for axis in range(min(1, levels.last), levels.last + 1)
    )
    lines = [f"const int item_framed = {framed};"]
    if levels.last == 0:
        return [
            *lines, "const int item_inside = 1;", *_compute(levels, made, 1),
            "if (item_framed && item_left)", f"{INDENT}{levels.keep('')}",
        ]  # fmt: skip
    slices, high = made.slices, levels.rings.reach[0][1]
    ahead = f"item_front + item_left * {high}"
    if slices == 1:
        count, compute = "1", ["if (item_inside) {", *_indented(_compute(levels, made, 1)), "}"]
    else:
        fits = f"item_until - item_0 == {slices} && item_until <= item_last_0"
        count = f"item_inside && {fits} ? {slices} : 1"
        compute = [
            "if (item_count > 1) {", *_indented(_compute(levels, made, slices)),
            "} else if (item_inside) {", *_indented(_compute(levels, made, 1)), "}",
        ]  # fmt: skip
    return [
        *lines,
        f"const long item_until = KGT_MIN({ahead} + {slices}, item_end_0);",
        "int item_count;",
        f"for (long item_0 = KGT_MAX({ahead}, item_kept_0); item_0 < item_until; "
        "item_0 += item_count) {",
        f"{INDENT}const int item_inside = item_0 >= item_start_0 && item_0 < item_last_0;",
        f"{INDENT}item_count = {count};",
        *_indented(compute),
        f"{INDENT}if (item_left && (item_framed || !item_inside))",
        f"{INDENT * 2}for (int item = 0; item < item_count; ++item)",
        f"{INDENT * 3}{levels.keep('item_0 + item')}",
        "}",
    ]


def _compute(levels: Levels, made: WavefrontConfiguration, count: int) -> list[str]:
    """C lines: compute `count` slices of the level `item_level`."""
    lines = ["if (item_level == 1)", INDENT + levels.call(FIRST, count)]
    if made.steps_per_launch > 2:
        lines += ["else if (item_left)", INDENT + levels.call(NEXT, count)]
    if made.streaming and count == made.slices:
        last, pitches = levels.last, levels.pitches[: levels.last]
        whole = [f"item_last_{last} - item_start_{last} >= {2 * made.lanes}"]
        whole += [f"{pitch} % {made.lanes} == 0" for pitch in pitches]
        lines += [f"else if ({' && '.join(whole)})", INDENT + levels.call(STREAM, count)]
    return [*lines, "else", INDENT + levels.call(LAST, count)]


def _indented(lines: list[str]) -> list[str]:
    return [INDENT + line for line in lines]
