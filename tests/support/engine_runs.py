# SPDX-License-Identifier: MIT
"""Random programs on engines of several places, beside what the reference gives."""
from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from mpi_jobs import helpers_path, run_ranks
from plan_simulation import Simulation
from random_boundaries import same
from random_programs import ProgramCase

from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.placement.halo_width import plan_of_width
from controllers.plan import ExchangeWay, Location, Overlap, Plan
from controllers.program.program import Program
from hitmap import Layout, SerialCommunicator, Shape

OVERLAPPING = ExchangeWay("on")
OVERLAPS: tuple[Overlap, ...] = ("on", "off", "auto")


def layout_of(case: ProgramCase, n_places: int, rng: random.Random) -> Layout:
    """Of any kind, with places of unlike sizes."""
    domain = Shape.of_extent(case.extent)
    weights = [rng.choice([1, 5, 50]) for _ in range(n_places)]
    return rng.choice([
        Layout.bands(domain, n_places),
        Layout.blocks(domain, n_places),
        Layout.weighted(domain, weights),
        Layout.weighted_blocks(domain, weights),
    ])  # fmt: skip


def random_way(rng: random.Random) -> ExchangeWay:
    """One of all ways to exchange."""
    return ExchangeWay(rng.choice(OVERLAPS), rng.random() < 0.5, rng.random() < 0.5)


def check_orders(
    case: ProgramCase, n_places: int, rng: random.Random, program: Program | None = None
) -> None:
    """One of the orders that a plan allows, over places of any ranks and devices.

    program: what is planned, where it is not the very one of the case.
    """
    layout = layout_of(case, n_places, rng)
    shares = {home: rng.random() < 0.5 for home in product(range(3), (0, 1))}
    contexts = {home: rng.choice([None, 0, 1]) for home in shares}
    homes = sorted((rng.randint(0, 2), rng.randint(0, 1)) for _ in range(n_places))
    locations = [
        Location(*home, shares_host=shares[home], context=contexts[home]) for home in homes
    ]
    way = random_way(rng)
    plan = Plan(program or case.program, layout, case.periodic, locations, way=way)
    got = Simulation(plan, case.arrays, rng).run(case.n_steps)
    assert [*got] == [*case.expected]
    for field, expected in case.expected.items():
        assert same(got[field], expected), f"{field}, {n_places} places\n{plan}"


def check_engine(
    case: ProgramCase,
    executors: Sequence[Executor],
    layout: Layout,
    kind: type[Engine] = Engine,
    steps_per_launch: int = 1,
    program: Program | None = None,
    way: ExchangeWay = OVERLAPPING,
    n_launches: int = 1,
) -> None:
    """Runs of all steps at once, and of one at a time after the fields are set anew.

    program: what is run, where it is not the very one of the case.  n_launches: between two
    exchanges.
    """
    plan = plan_of_width(
        n_launches * steps_per_launch, program or case.program, layout, case.periodic,
        locations_of(executors), way=way, steps_per_launch=steps_per_launch,
    )  # fmt: skip
    engine = kind(plan, dict(enumerate(executors)), SerialCommunicator())
    check_runs(engine, case)


def locations_of(executors: Sequence[Executor]) -> list[Location]:
    """Of places with these, all of one rank."""
    opened = [*dict.fromkeys(executors)]
    contexts = [one.context for one in opened]
    return [
        Location(0, opened.index(one), one.shares_host, context=contexts.index(one.context))
        for one in executors
    ]


def check_runs(engine: Engine, case: ProgramCase) -> None:
    """All steps at once, and one at a time after the fields are set anew; then it is closed."""
    for parts in ([case.n_steps], [1] * case.n_steps):
        fill(engine, case.arrays)
        for n_steps in parts:
            engine.run(n_steps)
        for field, expected in case.expected.items():
            compare(engine, field, expected)
        if case.program.folds:
            for name, right in case.results.items():
                assert same(np.asarray(engine.folds.results[name]), np.asarray(right)), name
    engine.close()


def fill(engine: Engine, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """All fields are set."""
    for place in engine.plan.places:
        owned = engine.plan.layout.owned[place]
        for field, values in arrays.items():
            for tile in engine.to_set(field, place):
                cells = values[owned.slices((0,) * values.ndim)]
                engine.executors[place].move_to(tile, owned, cells)
    engine.loaded()


def compare(engine: Engine, field: str, expected: npt.NDArray[Any]) -> None:
    """A field has these bits at all places."""
    for place in engine.plan.places:
        owned = engine.plan.layout.owned[place]
        got = engine.executors[place].move_from(engine.newest(field, place), owned)
        right = expected[owned.slices((0,) * expected.ndim)]
        assert same(got, right), f"{field} at place {place}\n{engine.plan}"


def check_two_ranks(kind: str, numbers: Iterable[int]) -> None:
    """Cases of a kind by two ranks, with two places each (program_job.py)."""
    program = [str(Path(__file__).with_name("program_job.py")), kind, *map(str, numbers)]
    job = run_ranks(2, program, env=helpers_path())
    assert job.returncode == 0 and job.stdout.count("all right") == 2, job.stdout + job.stderr
