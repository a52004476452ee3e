# SPDX-License-Identifier: MIT
"""Random stencils and programs on devices of your choice, bit for bit as the NumPy reference.

    python tools/compare_bits.py [--device SELECTOR ...] [--cases N] [--programs N]
    mpiexec -n 2 python tools/compare_bits.py ...
    python tools/compare_bits.py --device gpu --large [--gib 2.5 4.5 8.5] [--folder FOLDER]

The test suite does this on the CPU; this is for machines with other devices.  1 to 4 axes, any
boundaries, float32 and float64, subnormal numbers in every fifth case, any number of places per
controller, with and without overlap.  Case N is the same on every machine.  Programs are those of
the test suite, in turn: built by hand, traced with any pair of options, staggered, with folds.
Exit code 1 if a bit differs.  With --large: fields between 2 and 4, over 4 and over 8 GiB, cleared,
loaded, computed, saved and gathered, compared in strips; three times the largest size must be free
on the host, and the size in the folder.
"""
from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from large_fields import n_wrong as n_large_wrong

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from fold_programs import random_folds
from random_boundaries import bounded_program, same
from random_options import N_CASES
from random_staggered import random_staggered
from random_steps import random_steps

from controllers import Computation, Stencil, reference_run
from hitmap import Communicator, agree, default_communicator

Fields: TypeAlias = "Mapping[str, npt.NDArray[Any]]"

LARGEST = {1: 5000, 2: 90, 3: 22, 4: 9}     # cells on an axis, by the number of axes
REACH = {1: 3, 2: 3, 3: 2, 4: 1}


def random_stencil(rng: random.Random, n_axes: int) -> Stencil:
    """Any shape around the cell, with holes, weights of both signs and unlike magnitudes."""
    reach = REACH[n_axes]
    shape = [(-rng.randint(0, reach), rng.randint(0, reach)) for _ in range(n_axes)]
    n_weights = int(np.prod([high - low + 1 for low, high in shape]))
    choices = (0, 0, 1, -1, 0.5, 0.3, rng.uniform(-3, 3), rng.uniform(-1e-3, 1e-3))
    weights = [rng.choice(choices) for _ in range(n_weights)]
    weights[rng.randrange(n_weights)] = rng.uniform(0.5, 2)
    return Stencil.of("random", shape, weights, rng.choice((1, 4, 3.7, rng.uniform(0.1, 9), -7)))


def random_field(case: int, extent: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
    """Numbers of both signs and magnitudes from 1e-3 to 1e3, subnormal in every fifth case."""
    rng = np.random.default_rng(case)
    field = ((rng.random(extent) - 0.5) * 10.0 ** rng.integers(-3, 4, extent)).astype(dtype)
    smallest = np.finfo(dtype).tiny
    return field * smallest if case % 5 == 0 else field


def differs(case: int, devices: list[str], comm: Communicator) -> bool:
    """Run one case; whether a bit differs, on all ranks.  Collective."""
    rng = random.Random(case)
    n_axes, dtype = rng.randint(1, 4), rng.choice(("float32", "float64"))
    extent = tuple(rng.randint(1, LARGEST[n_axes]) for _ in range(n_axes))
    periodic = tuple(rng.random() < 0.5 for _ in range(n_axes))
    program = random_stencil(rng, n_axes).program(dtype)
    field, steps = random_field(case, extent, dtype), (rng.randint(0, 3), rng.randint(1, 3))
    options: dict[str, Any] = {
        "partition": rng.choice(("bands", "blocks")),
        "overlap": rng.choice(("on", "off", "auto")),
        "places_per_controller": rng.choice((1, 1, 2, 3)),
    }
    boundary = ["periodic" if wraps else "fixed" for wraps in periodic]
    with Computation(
        program, extent, boundary=boundary, devices=devices, comm=comm, **options
    ) as run:
        run.scatter(field if comm.rank == 0 else None)
        for n_steps in steps:
            run.run(n_steps)
        result = run.gather()
    wrong = False
    if result is not None:
        right = reference_run(program, field, sum(steps), periodic)
        wrong = result.tobytes() != right.tobytes()
        if wrong:
            print(f"case {case} differs: {extent} cells of {dtype}, {boundary}, {options}")
    return comm.bcast(wrong)


def program_differs(number: int, devices: list[str], comm: Communicator) -> bool:
    """Run program `number`; whether a field is not the reference's, on every rank."""
    rng = random.Random(number)
    (what, cells, given), values, n_steps, right, folded = program(number)
    options: dict[str, Any] = {
        "places_per_controller": rng.choice((1, 1, 2, 3)),
        "partition": rng.choice(("bands", "blocks")),
        "overlap": rng.choice(("on", "off", "auto")),
        "stored": rng.choice(("auto", "always", "never")),
        "fuse": rng.choice(("auto", "never")),
    }
    with Computation(what, cells, devices=devices, comm=comm, **options, **given) as run:
        for name, array in values.items():
            run[name].scatter(array if comm.rank == 0 else None)
        found = run.run(n_steps)
        results = {name: run[name].gather() for name in values}
    unlike = [
        name for name, result in results.items()
        if result is not None and not same(result, right[name])
    ]  # fmt: skip
    unlike += [
        name for name, value in folded.items()
        if found is None or not same(np.float64(found[name]), np.float64(value))
    ]  # fmt: skip
    if unlike:
        print(f"program {number} differs in {', '.join(unlike)}: {what}, {options}")
    return comm.bcast(bool(unlike))


def program(
    number: int,
) -> tuple[tuple[Any, Any, dict[str, Any]], Fields, int, Fields, dict[str, Any]]:
    """What is computed, fields before, how many steps, fields after them, what the last folds."""
    kind, number = number % 4, number // 4
    if kind == 2:
        staggered = random_staggered(number)
        right = reference_run(staggered.program, staggered.arrays, staggered.n_steps, dt=0.1)
        subject = staggered.steps, staggered.grid, staggered.options
        return subject, staggered.arrays, staggered.n_steps, right, {}
    makers: dict[int, Callable[[int], Any]] = {0: bounded_program, 1: random_steps, 3: random_folds}
    case = makers[kind](number % N_CASES)
    folded = case.results if kind == 3 else {}
    return (case.program, case.extent, {}), case.arrays, case.n_steps, case.expected, folded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", action="append", default=[], help="as for `controllers run`")
    parser.add_argument("--cases", type=int, default=40, help="how many (default: 40)")
    parser.add_argument("--programs", type=int, default=0, help="how many, too (default: 0)")
    parser.add_argument("--large", action="store_true", help="fields of several GiB, in strips")
    parser.add_argument("--gib", type=float, nargs="+", default=[2.5, 4.5, 8.5],
                        help="their sizes (default: 2.5 4.5 8.5)")  # fmt: skip
    parser.add_argument("--folder", type=Path, help="where to save them (default: a temporary one)")
    options = parser.parse_args()
    comm = default_communicator()
    agree(comm, "the options", options)
    if options.large:
        with tempfile.TemporaryDirectory(dir=options.folder) as own:
            folder = comm.bcast(Path(own))
            n_wrong = n_large_wrong(options.gib, options.device, comm, folder)
        return 1 if n_wrong else 0
    n_wrong = sum(differs(case, options.device, comm) for case in range(options.cases))
    if comm.rank == 0:
        print(f"{options.cases} cases, {n_wrong} differ from the reference")
    if options.programs:
        numbers = range(options.programs)
        n_unlike = sum(program_differs(number, options.device, comm) for number in numbers)
        n_wrong += n_unlike
        if comm.rank == 0:
            print(f"{options.programs} programs, {n_unlike} differ from the reference")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
