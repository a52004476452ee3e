# SPDX-License-Identifier: MIT
"""How long a launch takes by each way to exchange, on the devices of this machine.

    python tools/measure_exchange.py [--device cpu/1,1] [--sizes 512 2048] [--cubes 96]
                                     [--private] [--seconds 60] [--out ways.json]

A field is cut in two or more along its first axis (rows, which are contiguous) and along its last
one (columns), and three fields are that are read at once.  All ways that differ for such a plan are
run in turns, on the same tiles, as a run with exchange="auto" does; the shortest time of a launch
counts.  One row per case and way: microseconds of a launch, and the usual way's time over it.  With
--private CPUs are treated like devices with memory of their own.  Cases are left out when
--seconds are over.  Under mpiexec with several ranks rank 0 prints.
"""
from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import controllers
from controllers.engine import Engine
from controllers.plan import ExchangeWay
from controllers.plan.distinct_ways import distinct_ways
from controllers.program.expression import Read
from controllers.program.program import Field, Program, Stage
from hitmap.comm import Communicator, default_communicator

TURNS = 5
WINDOW_S = 0.02
HEAD = "case                            way                                        us/launch  gain"


def program_of(n_axes: int, n_fields: int) -> Program:
    """Each field becomes a mean of its neighbours and of the next field's."""
    names = [f"u{number}" for number in range(n_fields)]
    offsets = [
        tuple(step * (axis == other) for other in range(n_axes))
        for axis in range(n_axes)
        for step in (-1, 1)
    ]
    updates: dict[str, Any] = {}
    for name, other in zip(names, [*names[1:], names[0]]):
        reads = [Read(field, offset) for field in (name, other) for offset in offsets]
        updates[name] = sum(reads[1:], reads[0]) / len(reads)
    stage = Stage("mean", updates, ((-1, 1),) * n_axes)
    return Program("mean", tuple(Field(name, "float32") for name in names), (stage,))


def measured(
    run: controllers.Computation, comm: Communicator, messages: Communicator, until: float
) -> dict[ExchangeWay, float]:
    """Seconds of a launch by way, the same on all ranks."""
    first = run._engine
    engines = {first.plan.way: first}
    for way in distinct_ways(first.plan)[1:]:
        engines[way] = Engine(first.plan.by_way(way), first.executors, messages, first.tiles)
    best = dict.fromkeys(engines, math.inf)
    now, counts = first, dict.fromkeys(engines, 4)
    for turn in range(TURNS + 1):       # the first one is for drivers that build at launches
        for way, engine in engines.items():
            if engine is not now:
                engine.take_over(now)
            now, count = engine, counts[way]
            start = time.perf_counter()
            engine.run(count * engine.plan.steps_per_launch)
            each = max(comm.allgather(time.perf_counter() - start)) / count
            counts[way] = max(4, math.ceil(WINDOW_S / each))
            if turn:
                best[way] = min(best[way], each)
        if turn and max(comm.allgather(time.perf_counter())) > until:
            break
    for engine in engines.values():
        if engine is not first:
            engine.close()
    return best


def cases(arguments: argparse.Namespace, n_places: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is called how, and the arguments of its computation."""
    for extent in [*((n, n) for n in arguments.sizes), *((n, n, n) for n in arguments.cubes)]:
        for n_fields in (1, 3):
            for axis, name in ((0, "rows"), (len(extent) - 1, "columns")):
                dims = tuple(n_places if axis == other else 1 for other in range(len(extent)))
                title = f"{' x '.join(map(str, extent))}, {n_fields} field{'s'[:n_fields - 1]}"
                program = program_of(len(extent), n_fields)
                yield f"{title}, {name}", {"program": program, "sizes": extent, "dims": dims}


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--device", action="append", default=[], help="as for the command run (default: cpu/1,1)")
    add("--sizes", type=int, nargs="*", default=[512, 2048], help="extents of squares")
    add("--cubes", type=int, nargs="*", default=[96], help="extents of cubes")
    add("--steps-per-launch", type=int, default=1)
    add("--private", action="store_true", help="CPUs as devices with memory of their own")
    add("--seconds", type=float, default=60.0, help="after which no case is begun")
    add("--out", type=Path, help="a file for JSON")
    return parser.parse_args()


def main() -> None:
    arguments, comm = parsed(), default_communicator()
    options = {
        "devices": arguments.device or ["cpu/1,1"], "zero_copy": not arguments.private,
        "steps_per_launch": arguments.steps_per_launch, "fuse": "never",
    }  # fmt: skip
    until, rows, messages = time.perf_counter() + arguments.seconds, [], comm.Dup()
    with controllers.Computation(program_of(2, 1), (64, 64), dtype="float32", **options) as run:
        n_places = run.layout.n_places
        devices = [f"{where.device} of rank {where.rank}" for where in run.placement.locations]
    if comm.rank == 0:
        print("; ".join(devices), HEAD, sep="\n")
    for name, case in cases(arguments, n_places):
        if max(comm.allgather(time.perf_counter())) > until:
            break
        with controllers.Computation(**case, dtype="float32", **options) as run:
            found = measured(run, comm, messages, until)
        usual = next(iter(found.values()))
        for way, seconds in sorted(found.items(), key=lambda item: item[1]):
            rows.append({"case": name, "way": str(way), "seconds": seconds, "usual_s": usual})
            if comm.rank == 0:
                print(f"{name:31} {way!s:41} {1e6 * seconds:10.1f} {usual / seconds:5.2f}",
                      flush=True)  # fmt: skip
    if comm.rank == 0 and arguments.out is not None:
        arguments.out.write_text(json.dumps({"devices": devices, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
