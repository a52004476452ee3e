# SPDX-License-Identifier: MIT
"""What a plan says that it needs, and the work that it gives to the host."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from controllers.device import reference_device
from controllers.engine import Engine
from controllers.executor.reference import ReferenceExecutor
from controllers.language.weights import Stencil
from controllers.plan import HostTask, Location, Plan, TileKey
from controllers.program.expression import Read
from controllers.program.program import Field, Program
from controllers.program.reference import reference_run
from controllers.program.stage import Stage
from hitmap import Layout, SerialCommunicator, Shape

DOMAIN = Shape.of_extent((12, 8))
FIXED = (False, False)
MEAN = Stencil.of("mean", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
HOSTS = [Location(0), Location(0, 1)]
DEVICES = [Location(0, place, shares_host=False) for place in range(2)]
SCALED = Stage("scaled", {"u": Read("k", (0, 1)) * Read("u", (-1, 0))}, ((-1, 0), (0, 1)))
TWO = Program("two", (Field("u", "float64"), Field("k", "float64")), (SCALED,))


def test_the_list_has_every_buffer_of_every_field_and_all_staging() -> None:
    plan = Plan(TWO, Layout.bands(DOMAIN, 2), FIXED, DEVICES)
    tiles = [one for one in plan.memories if one.kind == "tile"]
    assert [(str(one.key), one.home) for one in tiles] == [
        ("u.0", 0), ("u.0", 1), ("u.1", 0), ("u.1", 1), ("k.0", 0), ("k.0", 1),
    ]  # fmt: skip
    assert {one.lifetime for one in tiles} == {"plan"} and all(one.on_device for one in tiles)
    staged = [one for one in plan.memories if one.kind == "staging"]
    assert staged and {one.lifetime for one in staged} == {"step"}
    for place in range(2):
        mine = [one for one in plan.memories if one.home == place]
        assert sum(one.nbytes + one.slack for one in mine) == plan.memory(place).nbytes
    assert str(tiles[1]) == (
        "tile u.0 of place 1: 7 x 8 cells of float64, 448 bytes on its device, of one plan"
    )


def test_more_halo_may_be_allocated_than_is_in_use() -> None:
    layout = Layout.bands(DOMAIN, 2)
    roomy = Plan(MEAN, layout, FIXED, HOSTS, halo_capacity=[(3, 2), (0, 0)])
    usual = Plan(MEAN, layout, FIXED, HOSTS)
    assert roomy.geometry("u", 0).box == Shape((-3, 0), (8, 8))
    assert usual.geometry("u", 0).box == Shape((0, 0), (7, 8))
    assert str(roomy.patterns["u"]) == str(usual.patterns["u"])
    assert [str(o) for o in roomy.operations] == [str(o) for o in usual.operations]
    field = np.random.default_rng(0).random(DOMAIN.extent, np.float32)
    assert np.array_equal(ran(roomy, field, 5), reference_run(MEAN, field, 5, FIXED))


def ran(plan: Plan, field: npt.NDArray[Any], n_steps: int) -> npt.NDArray[Any]:
    executors = {place: ReferenceExecutor(reference_device()) for place in plan.places}
    engine = Engine(plan, executors, SerialCommunicator())
    for place, executor in executors.items():
        owned = plan.layout.owned[place]
        for tile in engine.to_set("u", place):
            executor.move_to(tile, owned, field[owned.slices((0, 0))])
    engine.loaded()
    engine.run(n_steps)
    parts = [engine.newest("u", place).view(plan.layout.owned[place]) for place in plan.places]
    engine.close()
    return np.concatenate(parts)


def test_a_host_task_sees_the_field_after_every_step() -> None:
    seen: list[float] = []

    def look(cells: Mapping[str, npt.NDArray[Any]]) -> None:
        seen.append(float(cells["u"].sum(dtype=np.float64)))

    plan = Plan(
        MEAN, Layout.bands(DOMAIN, 2), FIXED, HOSTS, host_tasks=[HostTask("look", look, ("u",))]
    )
    field = np.random.default_rng(0).random(DOMAIN.extent, np.float32)
    assert np.array_equal(ran(plan, field, 3), reference_run(MEAN, field, 3, FIXED))
    for step in range(3):
        after = reference_run(MEAN, field, step + 1, FIXED)
        halves = [half.sum(dtype=np.float64) for half in (after[:6], after[6:])]
        assert sorted(seen[2 * step : 2 * step + 2]) == sorted(halves)
    assert "host     look on u.1@0 [0:6, 0:8]" in str(plan)


def test_a_host_task_may_write_what_is_read_in_place_alone() -> None:
    stage = Stage("add", {"u": Read("u", (0, 0)) + Read("k", (0, 0))}, ((0, 0), (0, 0)))
    program = Program("p", (Field("u", "float64"), Field("k", "float64")), (stage,))

    def grow(cells: Mapping[str, npt.NDArray[Any]]) -> None:
        cells["k"][...] += 1

    task = HostTask("grow", grow, writes=("k",))
    plan = Plan(program, Layout.bands(DOMAIN, 2), FIXED, HOSTS, host_tasks=[task])
    assert (ran(plan, np.zeros(DOMAIN.extent), 4) == 0 + 1 + 2 + 3).all()


@pytest.mark.parametrize(("task", "where", "why"), [
    (HostTask("t", print, ("w",)), HOSTS, "uses the field 'w', the program has u, k"),
    (HostTask("t", print, writes=("k",)), HOSTS, "writes the field 'k', .* read in place alone"),
    (HostTask("t", print, writes=("u",)), HOSTS, "writes the field 'u', .* several buffers or"),
    (HostTask("t", print, ("u",)), DEVICES, "place 0 has its cells in a device's"),
])  # fmt: skip
def test_host_tasks_that_cannot_be_are_refused(
    task: HostTask, where: list[Location], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        Plan(TWO, Layout.bands(DOMAIN, 2), FIXED, where, host_tasks=[task])


def test_the_newest_tile_follows_the_steps_and_all_buffers_are_set() -> None:
    plan = Plan(TWO, Layout.bands(DOMAIN, 2), FIXED, HOSTS)
    assert plan.newest("u", 0, 1) == TileKey("u", 0, 1)
    assert plan.newest("u", 1, 1) == TileKey("u", 1, 1)
    assert plan.newest("k", 1, 1) == TileKey("k", 0, 1)
    assert plan.to_set("u", 1, 1) == (TileKey("u", 1, 1), TileKey("u", 0, 1))
