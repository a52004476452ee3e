# SPDX-License-Identifier: MIT
"""How a "marching" kernel stores what its items have made: at once, or behind all their steps."""
from __future__ import annotations

from controllers.kgt.strategies.marching.folds import kept_value, named, stores_late
from controllers.kgt.strategies.marching.parameters import MarchingParameters
from controllers.kgt.text.analysis import in_vectors
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.emitter import OPENCL_TYPES, cell_index, used_fields
from controllers.kgt.text.lanes import Lanes
from controllers.program.program import Program, Stage


def storing_helpers(program: Program, stage: Stage, config: MarchingParameters) -> list[str]:
    """C lines: the functions that store vectors."""
    lines: list[str] = []
    if config.lanes > 1:
        for dtype in dict.fromkeys(program.dtypes[field] for field in stage.stored):
            lines += _store(_storing(dtype, program, stage), dtype, Lanes(config.lanes))
    return lines


def _storing(dtype: str, program: Program, stage: Stage) -> str:
    """The function that stores cells of a dtype."""
    first = program.dtypes[stage.stored[0]]
    return "kgt_store" if dtype == first else f"kgt_store_{OPENCL_TYPES[dtype]}"


def _store(name: str, dtype: str, lanes: Lanes) -> list[str]:
    """C lines: the function that stores the cells of a vector that are in the box."""
    cell = OPENCL_TYPES[dtype]
    one = "if (first <= {0} && {0} < last) to[{0}] = cells.s{0};"
    return [*block("""
        // the cells `first` to `last` - 1 of a vector
        void $name(__global $cell *to, const $vector cells,
        $indent const long first, const long last)
        {
            if (first == 0 && last == $width)
                *(__global $vector *)to = cells;
            else {
                $one_by_one
            }
        }
    """, name=name, indent=" " * (len(name) + 5), cell=cell, vector=lanes.type(cell),
        width=lanes.width,
        one_by_one=[one.format(lane) for lane in range(lanes.width)]), ""]


def stores(
    program: Program, stage: Stage, config: MarchingParameters, row: int
) -> list[str]:
    """C lines: what stores them."""
    lines, one_by_one = [], not in_vectors(stage, program.dtypes)
    for field in stage.stored:
        target, at = f"{field}_new", cell_index(field, stage)
        if row:
            times = f"{row} * " if row > 1 else ""
            at += f" + {times}{field}_pitch_{config.across(program.n_axes)}"
        value = named("item_value", stage, field)
        if stores_late(stage, config):
            at += f" + (item - {config.steps}) * {field}_pitch_{config.axis}"
            value = kept_value(field, config, row)
        store = f"{target}[{at}] = {value};"
        if config.lanes > 1:
            dtype = program.dtypes[field]
            if one_by_one:
                cells = ", ".join(f"{value}[{lane}]" for lane in range(config.lanes))
                value = f"({Lanes(config.lanes).type(OPENCL_TYPES[dtype])})({cells})"
            name = _storing(dtype, program, stage)
            store = f"{name}({target} + {at}, {value}, item_first, item_last);"
        lines.append(store)
    return lines


def late_stores(program: Program, stage: Stage, config: MarchingParameters) -> list[str]:
    """C lines: what stores the values that were kept; by now all indices are those of the end."""
    if not stores_late(stage, config):
        return []
    rows = [line for row in range(config.rows) for line in stores(program, stage, config, row)]
    return block("""
        #pragma unroll
        for (int item = 0; item < $steps; ++item) {
            $alike
            $rows
        }
    """, steps=config.steps, alike=alike(stage, config), rows=rows)


def alike(stage: Stage, config: MarchingParameters) -> list[str]:
    """C lines: the indices of the others."""
    first, *others = (cell_index(field, stage) for field in used_fields(stage))
    return [f"const long {index} = {first};" for index in others] if config.one_index else []
