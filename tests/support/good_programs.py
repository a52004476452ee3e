# SPDX-License-Identifier: MIT
"""Programs without a fault, of which a checked run must not complain: `check` -> None."""
from __future__ import annotations

from functools import partial

import numpy as np
from kernel_ways import extreme, integer_stencil, kernel_for
from stencil_cases import difference, random_case
from wrong_kernels import INNER, launch, stencil

from controllers import Computation
from controllers.program.reference import reference_run
from hitmap import SerialCommunicator, Shape

SERIAL = SerialCommunicator()


def good_case(number: int, check: bool | str) -> None:
    """A random stencil, generated or written by hand, divided somehow: right, and no alarm."""
    case = random_case(number)
    combination = case.combinations[number % len(case.combinations)]
    way = ("specialised", "body", "whole", "generic")[number % 4]
    with Computation(
        case.program, case.extent, boundary=case.boundary, devices="cpu:0", comm=SERIAL,
        overlap=combination.overlap,  # type: ignore[arg-type]
        places_per_controller=1 + number % 3, zero_copy=combination.zero_copy,
        kernel=kernel_for(way, case.stencil, case.dtype), check=check,
    ) as run:  # fmt: skip
        run.scatter(case.field)
        for number, n_steps in enumerate(case.runs):
            if number:
                run.redistribute(partition="blocks")
            run.run(n_steps)
            result = run.gather()
            assert result is not None
            assert difference(result, case.expected[number]) is None


def good_integers(number: int, check: bool | str) -> None:
    rng, dtype = np.random.default_rng(number), ("uint8", "int16", "int64")[number % 3]
    stencil_ = integer_stencil(rng, 1 + number % 2)
    while np.count_nonzero(stencil_.weights) > 8:
        stencil_ = integer_stencil(rng, 1 + number % 2)
    field = extreme(rng, (17, 9)[: stencil_.n_axes], dtype)
    way = ("specialised", "body", "whole", "generic")[number % 4]
    periodic = (True,) * stencil_.n_axes
    program = stencil_.program(dtype)
    with Computation(
        program, field.shape, boundary="periodic", devices="cpu:0", comm=SERIAL,
        places_per_controller=2, kernel=kernel_for(way, stencil_, dtype), check=check,
    ) as run:  # fmt: skip
        run.scatter(field)
        run.run(3)
        assert np.array_equal(run.gather(), reference_run(program, field, 3, periodic))


GOOD_KERNELS = {
    "spread of a maximum": stencil("NEW(u) = fmax(NEAR(u, -1, 0), HERE(u));"),
    "a branch by the index": stencil("NEW(u) = INDEX(0) == 11 ? HERE(u) : AT(u, INDEX(0), 5 + 0 "
                                     "* INDEX(1) - 5 + INDEX(1) - 1);"),
    "integers that wrap": stencil("NEW(u) = HERE(u) * 77 + NEAR(u, 0, 1);", "uint8"),
    "a smooth copy": launch("", "CELL; HERE(new) = (NEAR(old, -1, 0) + NEAR(old, 1, 0)) / 2;",
                            over=INNER),
    "in place": launch("", "CELL; HERE(new) += HERE(old);", out="inout"),
    "a part in place": launch("", "CELL; HERE(new) = HERE(new) * 2 + INDEX(0);", out="inout",
                              over=INNER, part=INNER),
    "raw elements": launch("", "CELL; new[ELEMENT(new)] = old[old_first + cell_0 * old_pitch_0 "
                               "+ cell_1];"),
    "a transposition": launch("", "CELL; HERE(new) = AT_LOCAL(old, LOCAL(1), LOCAL(0));",
                              over=Shape((0, 0), (19, 19))),
    "atomic sums": launch("", "CELL; atomic_add(&AT(new, 0, 0), HERE(old));", out="inout",
                          dtype="int32"),
    "groups with local memory": launch(
        "__local float *row",
        "const int i = get_local_id(0); row[i] = i; barrier(CLK_LOCAL_MEM_FENCE); "
        "new[get_global_id(0)] = row[7 - i];",
        over=Shape((0, 0), (1, 16)), part=Shape((0, 0), (1, 16)), group=(1, 8), row=8),
    "a branch": launch(
        "", "CELL; HERE(new) = HERE(old) > 3 ? 1 : HERE(old);"),
}  # fmt: skip


# those with few terms: others only compile longer
SHORT = [n for n in range(120) if np.count_nonzero(random_case(n).stencil.weights) < 8][:30]
GOOD = {
    **{f"random stencil {n}": partial(good_case, n) for n in SHORT},
    **{f"integers {n}": partial(good_integers, n) for n in range(9)},
    **GOOD_KERNELS,
}
