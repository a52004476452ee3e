# SPDX-License-Identifier: MIT
"""Kernels as users write them, and the faults that a checked run must name.

The faults of stencils' kernels are where the trial before a run (check.trial) does not come: in
one row far from the field's corner.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from controllers import Computation, Controller, Kernel, Stencil
from controllers.check.finding import Index
from hitmap import SerialCommunicator, Shape

EXTENT = (23, 19)
CROSS = Stencil.of("cross", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 1, 1, 0, 1, 0], 5)
WHOLE = Shape.of_extent(EXTENT)
INNER = Shape((1, 1), (22, 18))


@dataclass(frozen=True)
class Case:
    """A program with a kernel of its own; `kind` of fault, at `index`, that `check` must find.

    check: True where a checked run finds it, "oclgrind" where that takes Oclgrind.
    """

    run: Callable[[bool | str], None]
    kind: str = ""
    index: Index = None
    check: bool | str = True


def stencil(body: str, dtype: str = "float32") -> Callable[[bool | str], None]:
    """A run of two steps on two places, whose kernel has this body."""

    def run(check: bool | str) -> None:
        field = np.random.default_rng(0).integers(1, 100, EXTENT).astype(dtype)
        with Computation(
            CROSS.program(dtype), EXTENT, devices="cpu:0", places_per_controller=2,
            kernel=Kernel.of("mine", body), check=check, comm=SerialCommunicator(),
        ) as computation:  # fmt: skip
            computation.scatter(field)
            computation.run(2)

    return run


def launch(
    parameters: str, statements: str, *, over: Shape = WHOLE, part: Shape = WHOLE,
    group: tuple[int, ...] | None = None, out: str = "out", dtype: str = "float32", **more: int,
) -> Callable[[bool | str], None]:
    """A launch of a kernel with the tiles `old` and `new`, of which it gets `part`."""

    def run(check: bool | str) -> None:
        cell = {"float32": "float", "int32": "int"}[dtype]
        head = f"__global const {cell} *old, __global {cell} *new, TILE(old), TILE(new), BOX"
        head += f", {parameters}" if parameters else ""
        kernel = Kernel.of(
            "mine", f"__kernel void mine({head})\n{{\n{statements}\n}}",
            roles={"new": out},  # type: ignore[dict-item]
        )
        with Controller("cpu:0", check=check) as controller:
            old, new = controller.tile(EXTENT, dtype), controller.tile(EXTENT, dtype)
            old.write(np.random.default_rng(0).integers(1, 100, EXTENT))
            given = {"old": old.select(part), "new": new.select(part)}
            controller.launch(kernel, over, group=group, **given, **more)

    return run


# What a good one does in all rows but one.
MEAN = "(NEAR(u, -1, 0) + NEAR(u, 1, 0) + NEAR(u, 0, -1) + NEAR(u, 0, 1)) / 4"
ROW = "INDEX(0) == 11"

WRONG = {
    "a corner that is not declared": Case(
        stencil(f"NEW(u) = {ROW} && INDEX(1) == 5 ? NEAR(u, 1, 1) : {MEAN};"),
        "undeclared", (11, 5),
    ),
    "a cell by its coordinates, too far away": Case(
        stencil(f"NEW(u) = {ROW} && INDEX(1) == 5 ? AT(u, 11, 8) : {MEAN};"),
        "undeclared", (11, 5),
    ),
    "a neighbour of integers by its element": Case(
        stencil(f"NEW(u) = {ROW} ? u[ELEMENT(u) + 2] : {MEAN};", "int32"), "undeclared", (11, 17),
    ),
    "a neighbour by its element, times 0": Case(
        stencil(f"NEW(u) = {MEAN} + ({ROW} ? 0 * u[ELEMENT(u) + 3] : 0);"), "undeclared", (11, 16),
    ),
    "the last row reads behind the tile": Case(
        stencil(f"NEW(u) = INDEX(0) == 21 ? u[ELEMENT(u) + 3 * u_pitch_0] : {MEAN};"),
        "undeclared", (21, 1),
    ),
    "the last row writes behind the tile": Case(
        stencil(f"NEW(u) = {MEAN}; if (INDEX(0) == 21) u_new[ELEMENT(u) + 3 * u_pitch_0] = 0;"),
        "bounds",
    ),
    "writes a cell of the halo": Case(
        stencil(f"NEW(u) = {MEAN}; if (INDEX(1) == 17 && {ROW}) u_new[ELEMENT(u) + 1] = 0;"),
        "foreign", (11, 18),
    ),
    "writes its neighbour's cell": Case(
        stencil(f"NEW(u) = {MEAN}; if (INDEX(1) == 5 && {ROW}) u_new[ELEMENT(u) + 1] = 0;"),
        "race", (11, 6),
    ),
    "writes the old level": Case(
        stencil(f"NEW(u) = {MEAN}; if ({ROW}) ((__global VALUE *)u)[ELEMENT(u)] = 0;"),
        "read-only", (11, 1),
    ),
    "leaves a row as it was": Case(
        stencil(f"if (!({ROW})) NEW(u) = {MEAN};"), "unset", (11, 1),
    ),
    "adds to what was there": Case(
        stencil(f"if ({ROW}) NEW(u) += 1; else NEW(u) = {MEAN};"), "undeclared", (11, 1),
    ),
    "divides by 0": Case(
        stencil(f"const VALUE zero = HERE(u) - HERE(u); NEW(u) = {ROW} ? zero / zero : {MEAN};"),
        "nan", (11, 1),
    ),
    "a variable that is never set": Case(
        stencil(f"VALUE x; if (!({ROW})) x = {MEAN}; NEW(u) = x > 3 ? x : 0;"),
        "uninitialised", check="oclgrind",
    ),
    "one item comes to the barrier": Case(
        stencil(f"if ({ROW} && INDEX(1) == 3) barrier(CLK_GLOBAL_MEM_FENCE); NEW(u) = {MEAN};"),
        "barrier", check="oclgrind",
    ),
    "a launch to the edge reads beyond it": Case(
        launch("", "CELL; HERE(new) = NEAR(old, 0, 1);"), "bounds",
    ),
    "a launch to the edge reads beyond it by elements": Case(
        launch("", "CELL; HERE(new) = old[ELEMENT(old) + old_pitch_0];"), "undeclared",
    ),
    "reads beyond its selection": Case(
        launch("", "CELL; HERE(new) = NEAR(old, 0, 1);", over=INNER, part=INNER), "bounds",
    ),
    "writes beyond its selection": Case(
        launch("", "CELL; HERE(new) = 0; new[ELEMENT(new) - 1] = 1;", over=INNER, part=INNER),
        "foreign", (1, 0),
    ),
    "writes before the tile": Case(
        launch("", "CELL; HERE(new) = 0; if (INDEX(0) == 0) new[ELEMENT(new) - 100] = 1;"),
        "bounds",
    ),
    "writes what it may only read": Case(
        launch("", "CELL; HERE(new) = HERE(old); ((__global float *)old)[ELEMENT(old)] = 0;"),
        "read-only", (0, 0),
    ),
    "leaves out what it promises": Case(
        launch("", "CELL; if (HERE(old) < 50) HERE(new) = 1;"), "unset",
    ),
    "reads what it promises to write": Case(
        launch("", "CELL; HERE(new) += HERE(old);"), "undeclared", (0, 0),
    ),
    "updates in place from its neighbour": Case(
        launch("", "CELL; if (LOCAL(1) > 0) HERE(new) += NEAR(new, 0, -1) + 1;", out="inout"),
        "race",
    ),
    "two cells into one": Case(
        launch("", "CELL; AT(new, INDEX(0) / 2, INDEX(1)) = HERE(old);", out="inout"),
        "race", (0, 0),
    ),
    "all cells into one sum": Case(
        launch("", "CELL; AT(new, 0, 0) += HERE(old);", out="inout", dtype="int32"),
        "race", check="oclgrind",
    ),
    "local memory without a barrier": Case(
        launch(
            "__local float *row",
            "const int i = get_local_id(0); row[i] = i; new[get_global_id(0)] = row[i ^ 1];",
            over=Shape((0, 0), (1, 16)), part=Shape((0, 0), (1, 16)), group=(1, 8), row=8,
        ),
        "race", check="oclgrind",
    ),
    "local memory that is never set": Case(
        launch(
            "__local float *row",
            "const int i = get_local_id(0); if (i > 0) row[i] = i; barrier(CLK_LOCAL_MEM_FENCE); "
            "new[get_global_id(0)] = row[i] > 3 ? row[i] : 0;",
            over=Shape((0, 0), (1, 16)), part=Shape((0, 0), (1, 16)), group=(1, 8), row=8,
        ),
        "uninitialised", check="oclgrind",
    ),
    "half a group comes to the barrier": Case(
        launch(
            "__local float *row",
            "const int i = get_local_id(0); row[i] = i; "
            "if (i < 4) barrier(CLK_LOCAL_MEM_FENCE); new[get_global_id(0)] = row[i];",
            over=Shape((0, 0), (1, 16)), part=Shape((0, 0), (1, 16)), group=(1, 8), row=8,
        ),
        "barrier", check="oclgrind",
    ),
    "no test of the bounds of a rounded launch": Case(
        launch(
            "", "new[get_global_id(1) * new_pitch_0 + get_global_id(0)] = 1;", group=(4, 16),
        ),
        "bounds",
    ),
}  # fmt: skip
