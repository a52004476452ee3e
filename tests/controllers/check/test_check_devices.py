# SPDX-License-Identifier: MIT
"""The checked mode raises no alarm whenever devices do what they have been given."""
from __future__ import annotations

import random

import pytest
from engine_runs import check_engine, layout_of
from fold_programs import random_folds
from lazy_executor import Simultaneous
from lazy_world import World
from random_boundaries import bounded_program
from random_programs import random_program
from random_steps import random_steps
from sample import sample

from controllers.check import CheckedEngine
from controllers.plan import ExchangeWay

WAYS = [*ExchangeWay().others]
KINDS = {
    "program": random_program, "steps": random_steps, "folds": random_folds,
    "boundaries": bounded_program,
}  # fmt: skip


@pytest.mark.parametrize(
    ("number", "kind"), sample([(number, kind) for number in range(36) for kind in KINDS], 11)
)
def test_devices_may_run_at_any_time(number: int, kind: str) -> None:
    case, rng = KINDS[kind](number), random.Random(number)
    world, n_places = World(number, eagerness=[0.07, 0.2, 0.6][number % 3]), 2 + number % 4
    executors = [
        Simultaneous(world, shares_host=rng.random() < 0.5, name=str(place))
        for place in range(n_places)
    ]
    way = WAYS[number % len(WAYS)]
    check_engine(case, executors, layout_of(case, n_places, rng), CheckedEngine, way=way)


@pytest.mark.parametrize("host", [0, 1])
def test_other_devices_may_take_cells_from_a_tile_amid_a_launch(host: int) -> None:
    case, world = random_program(0), World(eagerness=0)
    executors = [Simultaneous(world, shares_host=n == host, name=str(n)) for n in range(3)]
    check_engine(case, executors, layout_of(case, 3, random.Random(0)), CheckedEngine)
