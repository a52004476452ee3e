# SPDX-License-Identifier: MIT
"""What an item of the strategy "marching" folds, and how its group walks over the box.

Where nothing is stored, and for sums of float64, a group takes many tiles, so that its items fold
many cells each before they fold together; else walking takes longer than the ends of groups.  Of
one tile an item folds when the values of all its steps are made, and stores then what is one field:
so all that it reads is asked for before anything waits.  Not in loops that are not unrolled, nor of
cells whose places are kept.
"""
from __future__ import annotations

from collections.abc import Iterator

from controllers.kgt.strategies.marching.parameters import MarchingParameters
from controllers.kgt.text.analysis import in_vectors
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.emitter import OPENCL_TYPES
from controllers.kgt.text.fold_text import fold_cells, sums_doubles
from controllers.kgt.text.fold_values import is_folding, values_of
from controllers.kgt.text.lanes import Lanes
from controllers.program.program import Program, Stage

AT_ONCE = 8     # cells that are handed on together: more of them take registers
STEPS_DONE, ROWS_DONE = "item_done", "item_rows_done"   # how many of them the item before makes


def named(name: str, stage: Stage, field: str) -> str:
    """The name of what belongs to an updated field."""
    return name if len(stage.updates) == 1 else f"{name}_{field}"


def walks(stage: Stage) -> bool:
    """Whether groups take many tiles each: where nothing is stored, or ends of groups take long."""
    return is_folding(stage) and (not stage.stored or sums_doubles(stage))


def walk(n_axes: int, config: MarchingParameters, march: list[str]) -> list[str]:
    """C lines: `march`, for each tile of the group; `item_walk` is in place of a global id."""
    return block("""
        for (long item_walk = get_global_id($dimension); item_walk < $end;
             item_walk += get_global_size($dimension)) {
            $march
        }
    """, dimension=walked(n_axes), end=_end(n_axes, config), march=march)


def walked(n_axes: int) -> int:
    """The dimension of OpenCL's along which groups walk."""
    return min(n_axes, 3) - 1


def _end(n_axes: int, config: MarchingParameters) -> str:
    """C text: the items there would be along that dimension, if no group walked."""
    if n_axes == 1:
        return f"(extent_0 - 1) / {config.lanes} + {1 + (config.lanes > 1)}"
    last, outer = (1, "extent_0 * ") if n_axes == 4 else (0, "")
    cells = config.along(last, n_axes)
    if cells == 1:
        return f"{outer}extent_{last}"
    return f"{outer}((extent_{last} + {cells - 1}) / {cells})"


def before_steps(program: Program, stage: Stage, config: MarchingParameters) -> list[str]:
    """C lines: which cells of a vector are folded, and room for the values of all steps."""
    if not values_of(stage):
        return []
    lines, lanes = [], config.lanes
    if lanes > 1:
        lines.append("const int item_low = (int)item_first, item_end = (int)item_last;")
        lines += [
            f"const int item_in_{lane} = item_low <= {lane} && {lane} < item_end;"
            for lane in range(lanes)
        ]
    for name, axis in _repeats(program, stage, config):
        lines.append(f"const int {name} = (int)(item_{axis} - start_{axis});")
    if not keeps(stage, config):
        return lines
    for field in _kept(stage, config):
        cell = OPENCL_TYPES[program.dtypes[field]]
        room = f"item_all_{field}[{config.steps * config.rows}]"
        if in_vectors(stage, program.dtypes):
            lines.append(f"{Lanes(lanes).type(cell)} {room};")
        else:
            lines.append(f"{cell} {room}{f'[{lanes}]' if lanes > 1 else ''};")
    return lines


def in_step(
    program: Program, stage: Stage, config: MarchingParameters, row: int
) -> list[str]:
    """C lines: fold the cells of a row in a step, or keep their values."""
    if not values_of(stage):
        return []
    if not keeps(stage, config):
        return _folds(program, stage, config, 1, row)
    lines = []
    for field in _kept(stage, config):
        value, room = named("item_value", stage, field), kept_value(field, config, row)
        if config.lanes == 1 or in_vectors(stage, program.dtypes):
            lines.append(f"{room} = {value};")
        else:
            lines += [f"{room}[{lane}] = {value}[{lane}];" for lane in range(config.lanes)]
    return lines


def kept_value(field: str, config: MarchingParameters, row: int) -> str:
    """C text: where a step keeps the values of a row."""
    at = f"item * {config.rows} + {row}" if config.rows > 1 else "item"
    return f"item_all_{field}[{at}]"


def after_steps(program: Program, stage: Stage, config: MarchingParameters) -> list[str]:
    """C lines: fold the values that were kept."""
    if not values_of(stage) or not keeps(stage, config):
        return []
    vectors = config.steps * config.rows
    most = min(vectors, max(1, AT_ONCE // config.lanes))
    at_once = next(n for n in range(most, 0, -1) if vectors % n == 0)
    return block("""
        #pragma unroll
        for (int item = 0; item < $vectors; item += $at_once) {
            $folds
        }
    """, vectors=vectors, at_once=at_once, folds=_folds(program, stage, config, at_once))


def _folds(
    program: Program, stage: Stage, config: MarchingParameters, n_vectors: int, row: int = 0
) -> list[str]:
    """C lines: what takes the values of some vectors, each cell of the box once.

    They are all that the item keeps, from the one numbered `item` on, or one of a row in a step.
    """
    lanes, in_a_vector = config.lanes, in_vectors(stage, program.dtypes)
    repeats, waits = dict(_repeats(program, stage, config)), keeps(stage, config)

    def value(field: str, cell: int) -> str:
        vector, lane = divmod(cell, lanes)
        name = named("item_value", stage, field)
        if waits:
            name = f"item_all_{field}[item + {vector}]"
        if lanes == 1:
            return name
        return f"{name}.s{lane}" if in_a_vector else f"{name}[{lane}]"

    def inside(cell: int) -> str:
        vector, lane = divmod(cell, lanes)
        at, its_row = f"item + {vector}", str(row)
        if waits and config.rows > 1:
            at, its_row = f"({at}) / {config.rows}", f"({at}) % {config.rows}"
        tests = [f"item_in_{lane}"] if lanes > 1 else []
        tests += [f"{at} >= {STEPS_DONE}"] if STEPS_DONE in repeats else []
        tests += [f"{its_row} >= {ROWS_DONE}"] if ROWS_DONE in repeats else []
        return " && ".join(tests)

    return fold_cells(stage, value, n_vectors * lanes, inside if lanes > 1 or repeats else None)


def keeps(stage: Stage, config: MarchingParameters) -> bool:
    """Whether values wait until all steps are made; places are of 64 bits, which take registers."""
    if not values_of(stage):
        return False
    places = any(one.place for one in values_of(stage))
    return config.steps > 1 and not config.looped and not places


def stores_late(stage: Stage, config: MarchingParameters) -> bool:
    """Whether stores wait, too: of one field, as the values of several take registers."""
    return keeps(stage, config) and len(stage.stored) == 1


def _kept(stage: Stage, config: MarchingParameters) -> list[str]:
    """The fields whose values wait: those that are folded, and perhaps what is stored."""
    late = stores_late(stage, config)
    return [field for field in stage.updates if late or field not in stage.stored]


def _repeats(
    program: Program, stage: Stage, config: MarchingParameters
) -> Iterator[tuple[str, int]]:
    """Where sums must leave out cells that other items compute too: a variable, and the axis."""
    if program.n_axes > 1 and any(one.kind == "sum" for one in values_of(stage)):
        if config.steps > 1:
            yield STEPS_DONE, config.axis
        if config.rows > 1:
            yield ROWS_DONE, config.across(program.n_axes)
