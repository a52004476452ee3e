# SPDX-License-Identifier: MIT
"""The strategy "marching", for GPUs: a work-item holds a few vectors in registers and marches on.

    items of a work-group                     one item, reading one cell around each of its own

    +----+----+----+- ... -+----+              u[-1]  vector                  kept from step to step
    |item|item|item|       |item|         left u[0]   vector  right     |
    |    |    |    |       |    |              u[+1]  vector            v     loaded by each step
    +----+----+----+- ... -+----+
    `lanes` cells wide, `steps` along the marching axis

Vectors are aligned in memory: those at the ends of a row may stick out of the box, and store only
the cells inside.  What an item reads lies in vectors that hold a cell which the box needs, so it
stays within the fields.  Where the last steps of an axis exceed the box, they start earlier: some
cells are written twice with the same value.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np

from controllers.kgt import frame
from controllers.kgt.division import divide, quotient_of
from controllers.kgt.emitter import INDENT, OPENCL_TYPES, assignment, cell_index, used_fields
from controllers.kgt.kernel import GeneratedKernel, WorkSizes
from controllers.kgt.lanes import Lanes
from controllers.kgt.registers import Registers
from controllers.program.expression import reads
from controllers.program.program import Program, Stage

LANES = (1, 2, 4)
MAX_ITEMS = 1024    # of a work-group, on NVIDIA's GPUs
FEW_READS, MANY_READS = 6, 18   # cells that a cell reads: more ask for more steps, then for fewer


@dataclass(frozen=True)
class MarchingConfiguration:
    """The parameters of "marching".

    lanes: cells of a vector, one of LANES.  steps: cells of an item along `axis`, the marching
    axis, one of the last three and not the last.  group: items of a work-group along the last
    axis, the last but one, and the last but two.  reciprocals: divide by constants as in
    `division`, where fma is fast.
    """

    strategy: ClassVar[str] = "marching"

    lanes: int = 4
    steps: int = 2
    axis: int = 0
    group: tuple[int, int, int] = (32, 4, 1)
    reciprocals: bool = False

    def __post_init__(self) -> None:
        if self.lanes not in LANES:
            raise ValueError(f"marching: lanes is one of {LANES}, got {self.lanes}")

    @classmethod
    def default(cls, program: Program, stage: Stage) -> MarchingConfiguration:
        """What is good for `stage` on an NVIDIA H200, for large boxes (docs/performance.md)."""
        n_axes, n_reads = program.n_axes, len(reads(stage.expression))
        wide = np.dtype(program.dtype).itemsize == 8
        if n_axes == 1:
            return cls(4, 1, 0, (256, 1, 1))
        if n_axes == 2:
            if n_reads <= FEW_READS:
                return cls(2 if wide else 4, 2, 0, (64, 4, 1))
            return cls(4, 4, 0, (32, 4, 1) if wide else (64, 2, 1))
        if n_reads > MANY_READS:
            return cls(4, 2, n_axes - 3, (32, 4, 1))
        return cls(2 if wide else 4, 8 if wide else 4, n_axes - 3, (32, 8, 1))

    def search_space(self, n_axes: int) -> Iterator[MarchingConfiguration]:
        """What may be tried on a device instead; `fits` says which a box is large enough for."""
        axes = (0,) if n_axes < 3 else (n_axes - 3, n_axes - 2)
        steps = (1,) if n_axes == 1 else (1, 2, 4, 8, 16)
        groups = [(x, y, 1) for x in (32, 64, 128, 256) for y in (1, 2, 4, 8, 16)]
        for lanes, step, axis, group in product(LANES, steps, axes, groups):
            if 64 <= prod(group) <= MAX_ITEMS and (n_axes > 1 or group[1] == 1):
                yield replace(self, lanes=lanes, steps=step, axis=axis, group=group)

    def within(self, extent: tuple[int, ...]) -> MarchingConfiguration:
        """The same with no more steps than the box has cells."""
        steps = self.steps
        while len(extent) > 1 and steps > extent[self.axis]:
            steps //= 2
        return replace(self, steps=steps)


def marching_kernel(
    program: Program, stage: Stage, configuration: MarchingConfiguration | None = None
) -> GeneratedKernel:
    """The kernel of `stage` whose items march along an axis."""
    made = configuration or MarchingConfiguration.default(program, stage)
    n_axes, lanes = program.n_axes, Lanes(made.lanes)
    least = [1] * n_axes
    if n_axes > 1:
        least[made.axis] = made.steps
    how = f"vectors of {made.lanes} cells" if made.lanes > 1 else "one cell wide"
    if made.steps > 1:
        how += f", marching {made.steps} steps along axis {made.axis}"
    return frame.kernel(
        program,
        stage,
        how,
        [*_position(program, stage, made), *_march(program, stage, made)],
        work_sizes(made, n_axes),
        helpers=_helpers(program, stage, made),
        lanes=lanes,
        least=tuple(least),
        multiple=made.lanes,
        group=(*made.group[: min(3, n_axes)], 1, 1)[:3],
    )


def work_sizes(made: MarchingConfiguration, n_axes: int) -> WorkSizes:
    """Items for all cells, one vector more per row than it holds, in whole work-groups.

    >>> work_sizes(MarchingConfiguration(), 2)((100, 1000), False)
    ((256, 52), (32, 4))
    """

    def sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        items = list(extent)
        items[-1] = (extent[-1] - 1) // made.lanes + 1 + (made.lanes > 1)
        if n_axes > 1:
            items[made.axis] = -(-items[made.axis] // made.steps)
        items = [prod(items[:-2]), *items[-2:]] if n_axes > 2 else items
        counts = zip(items[::-1], made.group)
        return (
            tuple(-(-count // size) * size for count, size in counts),
            made.group[: len(items)],
        )

    return sizes


def _helpers(program: Program, stage: Stage, made: MarchingConfiguration) -> list[str]:
    """C lines: the functions that the kernel calls."""
    lines = []
    if made.lanes > 1:
        lines += _store(OPENCL_TYPES[program.dtype], Lanes(made.lanes))
    found = quotient_of(stage.expression, program.dtype) if made.reciprocals else None
    if found:
        lines += [*divide("kgt_divide", found[1], program.dtype, made.lanes), ""]
    return lines


def _store(cell: str, lanes: Lanes) -> list[str]:
    """C lines: the function `kgt_store`, which stores the cells of a vector that are in the box."""
    vector = lanes.type(cell)
    return [
        "// the cells `first` to `last` - 1 of a vector",
        f"void kgt_store(__global {cell} *to, const {vector} cells,",
        "               const long first, const long last)",
        "{",
        f"{INDENT}if (first == 0 && last == {lanes.width})",
        f"{INDENT * 2}*(__global {vector} *)to = cells;",
        f"{INDENT}else {{",
        *(
            f"{INDENT * 2}if (first <= {lane} && {lane} < last) to[{lane}] = cells.s{lane};"
            for lane in range(lanes.width)
        ),
        f"{INDENT}}}",
        "}",
        "",
    ]


def _position(program: Program, stage: Stage, made: MarchingConfiguration) -> list[str]:
    """C lines: `start_A`, the item's first cell in the box, and the element of it in each field."""
    last = program.n_axes - 1
    if made.lanes == 1:
        lines = [f"const long start_{last} = (long)get_global_id(0);"]
    else:
        lines = [
            "// Vectors are aligned: the first may start before the box, the last end after it.",
            f"const long start_{last} = (long)get_global_id(0) * {made.lanes} "
            f"- ({stage.writes}_first & {made.lanes - 1});",
        ]
    tests = [f"start_{last} >= extent_{last}"]
    for axis, number in _numbers(program.n_axes, made):
        marches = axis == made.axis and made.steps > 1
        first = "item" if marches else "start"
        times = f" * {made.steps}" if marches else ""
        lines.append(f"const long {first}_{axis} = {number}{times};")
        if marches:
            start = frame.minimum(f"item_{axis}", f"extent_{axis} - {made.steps}")
            lines.append(f"const long start_{axis} = {start};")
        tests.append(f"{first}_{axis} >= extent_{axis}")
    lines += [f"if ({' || '.join(tests)})", f"{INDENT}return;"]
    pitches = "".join(f" + start_{axis} * {{0}}_pitch_{axis}" for axis in range(last))
    moves = "" if made.steps > 1 else "const "
    return lines + [
        f"{moves}long {cell_index(field, stage)} = "
        f"{field}_first{pitches.format(field)} + start_{last};"
        for field in used_fields(stage)
    ]


def _numbers(n_axes: int, made: MarchingConfiguration) -> Iterator[tuple[int, str]]:
    """Per axis but the last, C text of the item's number along it."""
    if n_axes == 4:
        steps = made.steps if made.axis == 1 else 1
        count = f"((extent_1 + {steps - 1}) / {steps})"
        yield 0, f"(long)get_global_id(2) / {count}"
        yield 1, f"((long)get_global_id(2) - start_0 * {count})"
    for axis in range(max(0, n_axes - 3), n_axes - 1):
        if n_axes < 4 or axis > 1:
            yield axis, f"(long)get_global_id({n_axes - 1 - axis})"


def _march(program: Program, stage: Stage, made: MarchingConfiguration) -> list[str]:
    """C lines: the marching, with what is loaded before it and in each step."""
    last, lanes, cell = program.n_axes - 1, Lanes(made.lanes), OPENCL_TYPES[program.dtype]
    registers = Registers.of(stage, made.lanes, made.axis, cell)
    target = f"{stage.writes}_new", cell_index(stage.writes, stage)
    found = quotient_of(stage.expression, program.dtype) if made.reciprocals else None
    part = replace(stage, updates={stage.writes: found[0]}) if found else stage
    kind = lanes.type(cell) if found else f"const {lanes.type(cell)}"
    value = assignment("kgt_cells item_value", part, program.dtype, registers.read, lanes)
    value = [line.replace("kgt_cells", kind) for line in value]
    if found:
        value.append(f"kgt_divide(({cell} *)&item_value);")
    store = f"{target[0]}[{target[1]}] = item_value;"
    if made.lanes > 1:
        store = f"kgt_store({target[0]} + {target[1]}, item_value, item_first, item_last);"
    before, first, after = registers.loads()
    step = [*first, *value, store]
    if made.steps > 1:
        fields = used_fields(stage)
        moves = [f"{cell_index(field, stage)} += {field}_pitch_{made.axis};" for field in fields]
        step = [
            "#pragma unroll",
            f"for (int item = 0; item < {made.steps}; ++item) {{",
            *(INDENT + line for line in [*step, *after, *moves]),
            "}",
        ]
    return [*registers.sides(last), "", *before, *step]
