# SPDX-License-Identifier: MIT
"""Accessors that look before they touch: OpenCL C that follows kernels_cl/accessors.cl.

`TILE(u)` declares further parameters: where the first fault is reported, and which cells of u may
be touched, counted from the first one of the box.  What may not be touched is replaced by something
that may, so that a fault does no harm.  A kernel that passes the parameters of TILE on to functions
of its own does not compile with these; it is then built without.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from controllers.kgt.text.fixed import accessors
from controllers.kgt.text.report import (
    OUTSIDE,
    REPORT,
    UNDECLARED,
    complain,
    is_declared,
    touched,
)
from hitmap.shape import Shape

# The offsets at which each tile may be read, by its parameter.
Declared: TypeAlias = Mapping[str, Sequence[tuple[int, ...]]]


def checked_accessors(
    n_axes: int, macros: Mapping[str, str], declared: Declared | None, reverse: bool
) -> str:
    """The accessors for tiles of `n_axes` axes.

    declared: the offsets that HERE, NEAR and AT may read of each tile, None for all of any.
    reverse: work-items compute the cells of the box from its end.
    """
    parts = [accessors(n_axes, macros), "#undef TILE\n#undef HERE\n#undef NEAR\n#undef AT"]
    parts += ["#undef AT_LOCAL", *_functions(n_axes, declared), *_macros(n_axes, declared)]
    if reverse:
        parts.append(_reversed("ONCE" in macros))
    return "\n".join(parts) + "\n"


def box_arguments(name: str, cells: Shape) -> dict[str, np.int64]:
    """The values of the parameters of TILE(name) that bound what may be touched."""
    values: dict[str, np.int64] = {}
    for axis, (lower, upper) in enumerate(zip(cells.lower, cells.upper)):
        values[f"cell_low_{axis}_{name}"] = np.int64(lower)
        values[f"cell_high_{axis}_{name}"] = np.int64(upper)
    return values


def _functions(n_axes: int, declared: Declared | None) -> list[str]:
    """The tests, as functions, so that arguments are evaluated once."""
    axes = range(n_axes)
    where = [("__global const long *", "report"), ("const long ", "first")]
    where += [("const long ", f"pitch_{axis}") for axis in axes[:-1]]
    where += [("const long ", f"{end}_{axis}") for axis in axes for end in ("low", "high")]
    cells = [("const long ", f"{name}_{axis}") for name in ("i", "own") for axis in axes]
    parameters = ", ".join(f"{kind}{name}" for kind, name in where + cells)
    given = ", ".join(name for _, name in where + cells)
    inside = " && ".join(f"low_{axis} <= i_{axis} && i_{axis} < high_{axis}" for axis in axes)
    return [
        *complain(n_axes),
        f"long cell_inside({parameters})",
        "{",
        f"    if ({inside}) return {_element('i_{}', n_axes)};",
        f"    cell_complain(report, {OUTSIDE}, {touched(n_axes)}, 0);",
        f"    return {_element('low_{}', n_axes)};",
        "}",
        *_tests(n_axes, declared, parameters, given),
    ]


def _tests(
    n_axes: int, declared: Declared | None, parameters: str, given: str
) -> Iterator[str]:
    """A function for each tile, which looks at what is declared of it."""
    for name, offsets in (declared or {}).items():
        yield f"long cell_declared_{name}({parameters})"
        yield "{"
        yield f"    if ({is_declared(offsets)}) return cell_inside({given});"
        yield f"    cell_complain(report, {UNDECLARED}, {touched(n_axes)}, 0);"
        yield f"    return {_element('own_{}', n_axes)};"
        yield "}"


def _touched(n_axes: int) -> str:
    return ", ".join(f"{name}_{axis}" for name in ("i", "own") for axis in range(n_axes))


def _element(name: str, n_axes: int) -> str:
    pitched = [f"{name.format(axis)} * pitch_{axis}" for axis in range(n_axes - 1)]
    return " + ".join(["first", *pitched, name.format(n_axes - 1)])


def _macros(n_axes: int, declared: Declared | None) -> list[str]:
    axes = range(n_axes)
    pitches = [f"tile##_pitch_{axis}" for axis in axes[:-1]]
    bounds = [f"cell_{end}_{axis}_##tile" for axis in axes for end in ("low", "high")]
    parameters = [
        *(f"const long {name}" for name in ["tile##_first", *pitches]),
        f"__global const long *{REPORT}##tile", *(f"const long {name}" for name in bounds),
    ]  # fmt: skip
    where = ", ".join([f"{REPORT}##tile", "tile##_first", *pitches, *bounds])
    cell = ", ".join(f"cell_{axis}" for axis in axes)
    i = ", ".join(f"i{axis}" for axis in axes)
    near = ", ".join(f"cell_{axis} + (i{axis})" for axis in axes)
    at = ", ".join(f"(i{axis}) - lower_{axis}" for axis in axes)
    local = ", ".join(f"(i{axis})" for axis in axes)
    test = "cell_inside" if declared is None else "cell_declared_##tile"
    # AT_LOCAL may be used where no cell is known, and AT too where any cell may be read
    known = f"tile[{test}({where}, {at}, {cell})]"
    return [
        f"#define TILE(tile) {', '.join(parameters)}",
        f"#define HERE(tile) tile[{test}({where}, {cell}, {cell})]",
        f"#define NEAR(tile, {i}) tile[{test}({where}, {near}, {cell})]",
        f"#define AT_LOCAL(tile, {i}) tile[cell_inside({where}, {local}, {local})]",
        f"#define AT(tile, {i}) "
        + (known if declared is not None else f"tile[cell_inside({where}, {at}, {at})]"),
    ]


def _reversed(once: bool) -> str:
    """The work-item's coordinate, counted from the end of the box; not on axes 0 and 1 of four."""
    if once:
        return (
            "#undef CELL_\n#define CELL_(axis, dimension) "
            "const long cell_item_##axis = (long)get_global_id(dimension); "
            "if (cell_item_##axis >= extent_##axis) return; "
            "const long cell_##axis = extent_##axis - 1 - cell_item_##axis"
        )
    return (
        "#undef CELL_\n#define CELL_(axis, dimension) const long cell_group_##axis = "
        "(long)get_group_id(dimension) * (long)get_local_size(dimension); "
        "const long cell_last_##axis = extent_##axis - (long)get_local_size(dimension); "
        "const long cell_##axis = extent_##axis - 1 - (long)get_local_id(dimension) - "
        "(cell_group_##axis < cell_last_##axis ? cell_group_##axis : cell_last_##axis)"
    )
