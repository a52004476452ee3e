# SPDX-License-Identifier: MIT
"""The engine driven directly, in one process: right in any order, never stuck, never far ahead."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from engine_runs import locations_of
from lazy_executor import LazyExecutor
from lazy_world import Handle, World
from sample import cases, sample

from controllers.device import assign, choose, find_devices, reference_device
from controllers.device.event import HostEvent
from controllers.engine import Engine
from controllers.engine import place as engine_place
from controllers.engine.samples import MIN_PAIRS
from controllers.executor.executor import Executor
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.language.weights import Stencil
from controllers.plan import Edge, Overlap, Plan, TileKey
from controllers.program.reference import reference_run
from hitmap import Layout, SerialCommunicator, Shape

STAR = Stencil.of("star", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0.3, 1, 0, 1, 0], 4)
LOPSIDED = Stencil.of("lopsided", [(-2, 1), (0, 1)], [1, 0, 0, 0.5, 0, -1, 0, 2], 3)
MEAN = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
DOMAIN = Shape.of_extent((13, 9))
RNG = np.random.default_rng(7)
FIELD = RNG.random(DOMAIN.extent, "float32")


class Job:
    """An engine on a plan for the places of one process, loaded with a field."""

    def __init__(
        self,
        stencil: Stencil,
        layout: Layout,
        controllers: Sequence[Executor],     # one per place; the same ones share
        field: npt.NDArray[np.float32] = FIELD,
        *,
        periodic: tuple[bool, ...] = (False, False),
        overlap: Overlap = "on",
        steps_per_launch: int = 1,
    ) -> None:
        self.program = stencil.program("float32")
        self.layout, self.periodic = layout, periodic
        self.executors: Mapping[int, Executor] = dict(enumerate(controllers))
        self.plan = Plan(
            self.program,
            layout,
            periodic,
            locations_of(controllers),
            overlap=overlap,
            steps_per_launch=steps_per_launch,
        )
        self.engine = Engine(self.plan, self.executors, SerialCommunicator())
        self.load(field)

    def load(self, field: npt.NDArray[np.float32]) -> None:
        self.field = field
        for place in self.plan.places:
            owned = self.layout.owned[place]
            for tile in self.engine.to_set("u", place):
                self.executors[place].move_to(tile, owned, field[owned.slices((0,) * field.ndim)])
        self.engine.loaded()

    def result(self) -> npt.NDArray[np.float32]:
        whole = np.full_like(self.field, np.nan)
        for place in self.plan.places:
            owned, tile = self.layout.owned[place], self.engine.newest("u", place)
            whole[owned.slices((0,) * whole.ndim)] = self.executors[place].move_from(tile, owned)
        return whole

    def expected(self, n_steps: int) -> npt.NDArray[np.float32]:
        return reference_run(self.program, self.field, n_steps, self.periodic)


def reference() -> Executor:
    return ReferenceExecutor(reference_device())


def opencl(zero_copy: bool = True, count: int = 1) -> list[Executor]:
    devices = assign(choose(["cpu:0"], find_devices()), 0, 1)
    return [OpenCLExecutor(devices[0], zero_copy=zero_copy) for _ in range(count)]


KINDS: dict[str, Callable[[], list[Executor]]] = {
    "three references": lambda: [reference() for _ in range(3)],
    "one reference": lambda: [reference()] * 3,
    "one OpenCL device": lambda: opencl() * 3,
    "three OpenCL devices": lambda: opencl(count=3),
    "one internal device": lambda: opencl(zero_copy=False) * 3,
    "two internal devices and a shared one": lambda: opencl(False, 2) + opencl(),
    "an internal device between references": lambda: [reference(), *opencl(False), reference()],
}
LAYOUTS = {"bands": Layout.bands(DOMAIN, 3), "blocks": Layout.blocks(DOMAIN, 3)}


@pytest.mark.parametrize(("partition", "kind"), sample(product(LAYOUTS, KINDS), 3))
def test_parts_of_a_run_give_the_bits_of_the_whole(kind: str, partition: str) -> None:
    job = Job(STAR, LAYOUTS[partition], KINDS[kind](), periodic=(False, True))
    done = 0
    for n_steps in (0, 1, 2, 0, 5, 3, 1):
        job.engine.run(n_steps)
        done += n_steps
        assert job.engine.n_steps == done
        assert np.array_equal(job.result(), job.expected(done))
    job.load(FIELD[::-1].copy())
    job.engine.run(done)
    assert np.array_equal(job.result(), job.expected(done))
    job.engine.close()


@pytest.mark.parametrize(("steps_per_launch", "partition", "kind"), sample(product(
    [2, 3, 8], LAYOUTS, ["three references", "one reference"]
), 5))  # fmt: skip
def test_launches_of_several_steps_give_the_same_bits(
    kind: str, partition: str, steps_per_launch: int
) -> None:
    for periodic in ((False, True), (True, False)):
        job = Job(
            LOPSIDED, LAYOUTS[partition], KINDS[kind](), periodic=periodic,
            steps_per_launch=steps_per_launch,
        )  # fmt: skip
        done, seen = 0, []
        for n_steps in (1, 2, 0, 8, 3, 6, 17):
            job.engine.run(n_steps, lambda *so_far, seen=seen: seen.append(so_far))
            done += n_steps
            assert job.engine.n_steps == done
            assert np.array_equal(job.result(), job.expected(done)), f"after {done} steps"
            assert not n_steps or seen[-1] == (n_steps, n_steps)
        assert all(so_far <= n for so_far, n in seen)
        n_launches = sum(-(-n // steps_per_launch) for n in (1, 2, 8, 3, 6, 17))
        newest = job.engine.tiles[TileKey("u", n_launches % 2, 0)]
        assert job.engine.newest("u", 0) is newest


def test_no_steps_change_nothing_and_report_nothing() -> None:
    job = Job(STAR, LAYOUTS["bands"], [reference()] * 3)
    seen: list[tuple[int, int]] = []
    job.engine.run(0, lambda *done: seen.append(done))
    assert np.array_equal(job.result(), FIELD)
    assert seen == [] and job.engine.n_steps == 0


def test_places_without_cells_or_without_anything_to_compute_take_part() -> None:
    layout = Layout.weighted(Shape.of_extent((9,)), [1, 0, 5, 0, 1, 1, 1])
    field = np.arange(9, dtype="float32") ** 2
    job = Job(MEAN, layout, [reference()] * 7, field, periodic=(False,))
    assert 1 not in job.plan.places and job.plan.updated(job.plan.sweeps[0], 0).empty
    job.engine.run(70)
    assert np.array_equal(job.result(), job.expected(70))
    alone = Job(MEAN, Layout.bands(Shape.of_extent((2,)), 1), [reference()], field[:2],
                periodic=(False,))  # fmt: skip
    alone.engine.run(3)
    assert np.array_equal(alone.result(), field[:2])


@pytest.mark.parametrize("n_steps", sample([40, 1, 2, 100], 4))
def test_progress_never_goes_back_and_ends_with_all_steps(n_steps: int) -> None:
    for controllers in ([reference()] * 3, opencl() * 3):
        job = Job(STAR, LAYOUTS["bands"], controllers)
        for _ in range(2):      # the second time, steps do not count from 0
            seen: list[tuple[int, ...]] = []
            job.engine.run(n_steps, lambda *done, seen=seen: seen.append(done))
            assert seen == sorted(seen) and seen[0][0] >= 0
            assert {total for _, total in seen} == {n_steps}
            assert seen[-1] == (n_steps, n_steps)


HOMES: dict[str, Callable[[World], list[LazyExecutor]]] = {
    "devices with memory of their own": lambda world: [
        LazyExecutor(world, shares_host=False, name=str(n)) for n in range(4)
    ],
    "one device": lambda world: [LazyExecutor(world, shares_host=False)] * 4,
    "devices in host memory": lambda world: [LazyExecutor(world, name=str(n)) for n in range(4)],
    "devices of one context": lambda world: [
        LazyExecutor(world, name=str(n), context=world) for n in range(4)
    ],
    "a mixture": lambda world: [
        *[LazyExecutor(world, shares_host=False, name="a")] * 2,
        LazyExecutor(world, name="b", context=world),
        LazyExecutor(world, shares_host=False, name="c"),
    ],
}


@pytest.mark.parametrize("seed", cases(1, 12))
@pytest.mark.parametrize("home", HOMES)
def test_devices_that_run_at_any_time_give_the_bits_of_the_reference(home: str, seed: int) -> None:
    world = World(seed, eagerness=[0.07, 0.2, 0.6][seed % 3])
    stencil = [STAR, LOPSIDED][seed // 3 % 2]
    layout = [Layout.bands, Layout.blocks][seed // 2 % 2](DOMAIN, 4)
    overlap: Overlap = ["on", "off", "auto"][seed % 3]  # type: ignore[assignment]
    periodic = (bool(seed & 1), bool(seed & 2))
    job = Job(
        stencil, layout, HOMES[home](world), periodic=periodic, overlap=overlap,
        steps_per_launch=[1, 3, 2, 1, 7][seed % 5],     # 7: halos beyond the next place
    )  # fmt: skip
    done = 0
    for n_steps in (3, 1, 5, 2, 20):
        job.engine.run(n_steps)
        done += n_steps
        assert np.array_equal(job.result(), job.expected(done)), f"after {done} steps"
    transfers = [what for what in world.dropped_early if "load" in what]
    assert not transfers, "PyOpenCL's event of a transfer blocks where it is dropped too early"


def test_without_its_edges_a_plan_gives_wrong_bits() -> None:
    """What the test above can see."""
    wrong = 0
    for seed in range(5):
        world = World(seed, eagerness=0.05)
        lazy = [LazyExecutor(world, shares_host=False) for _ in range(3)]
        job = Job(STAR, LAYOUTS["bands"], lazy)
        job.plan.operations = tuple(
            replace(o, after=() if o.verb == "upload" else o.after) for o in job.plan.operations
        )
        job.engine = Engine(job.plan, job.executors, SerialCommunicator())
        job.load(FIELD)
        job.engine.run(6)
        wrong += not np.array_equal(job.result(), job.expected(6))
    assert wrong


class Started(LazyExecutor):
    """Counts how far the host is ahead of the device: one launch per step."""

    n_started = largest_lead = 0

    def launch_command(self, *arguments: object) -> object:  # type: ignore[override]
        launch = super().launch_command(*arguments)  # type: ignore[arg-type]

        def command(wait_for: object = None) -> Handle:
            self.n_started += 1
            done = sum(event.executor is self for event in self.world.done)
            self.largest_lead = max(self.largest_lead, self.n_started - done)
            return launch(wait_for)  # type: ignore[arg-type, return-value]

        return command


@pytest.mark.parametrize("first", [0, 5])
def test_a_place_is_at_most_two_marks_ahead_of_its_device(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_place, "MARK_CELLS", 24 * DOMAIN.n_cells)
    world = World(eagerness=0)
    alone = Started(world)
    job = Job(STAR, Layout.bands(DOMAIN, 1), [alone])
    job.engine.run(first)
    alone.largest_lead, lead = 0, job.engine.places[0].lead
    assert engine_place.LEAD < lead < engine_place.MOST_LEAD
    job.engine.run(7 * lead)
    assert lead < alone.largest_lead <= 2 * lead + 1     # the one that was just started
    assert np.array_equal(job.result(), job.expected(first + 7 * lead))


def test_one_device_is_waited_for_and_not_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_place, "MARK_CELLS", 0)
    world = World(eagerness=0)
    job = Job(STAR, Layout.bands(DOMAIN, 1), [LazyExecutor(world)])
    job.engine.run(20 * engine_place.LEAD)
    assert world.waits >= 18
    assert world.polls <= 4 * world.waits + len(job.plan.operations)
    world.polls = world.waits = 0
    two = Job(STAR, Layout.bands(DOMAIN, 2), [LazyExecutor(world, shares_host=False)] * 2)
    two.engine.run(8)       # copies by the device: nothing to ask for in between
    assert world.polls <= 4 * world.waits + len(two.plan.operations)


@pytest.mark.parametrize("n_places", [1, 2])
def test_commands_are_timed_in_steps_that_somebody_looks_at(n_places: int) -> None:
    world, n_steps = World(), 300
    lazy = [LazyExecutor(world) for _ in range(n_places)]
    job = Job(STAR, Layout.bands(DOMAIN, n_places), lazy)
    job.engine.run(n_steps)
    launched = [event for event in world.done if "launch" in event.what]
    per_step, n_sampled = len(launched) // n_steps, 2 * MIN_PAIRS
    assert per_step and sum(event.timed for event in launched) == per_step * n_sampled
    assert all(executor.timed for executor in lazy)


@pytest.mark.parametrize("seed", cases(5, 20))
def test_a_place_waits_for_nobody_but_its_neighbours(seed: int) -> None:
    """Place 0 stands still; its neighbour gets 1 step done, the next one 2, and so on."""
    world = World(seed, eagerness=0.5)
    lazy = [LazyExecutor(world, shares_host=False, name=str(n)) for n in range(4)]
    field = RNG.random(30, "float32")
    bands = Layout.bands(Shape.of_extent((30,)), 4)
    job = Job(MEAN, bands, lazy, field, periodic=(False,), overlap="off")
    job.engine.run(1)       # its halos are filled before
    world.done.clear()
    reached: list[int] = []

    def count() -> None:
        launched = [event.executor for event in world.done if "launch" in event.what]
        reached.extend(map(launched.count, lazy))

    world.held, world.on_release = lazy[0], count
    job.engine.run(10)
    assert reached == [0, 1, 2, 3]
    assert np.array_equal(job.result(), job.expected(11))


def blocked_by_itself(job: Job, number: int) -> Engine:
    """An engine on a plan in which operation `number` waits for itself."""
    job.plan.operations = tuple(
        replace(o, after=(*o.after, Edge(o.number))) if o.number == number else o
        for o in job.plan.operations
    )
    return Engine(job.plan, job.executors, SerialCommunicator())


def test_a_plan_that_cannot_progress_is_an_assertion_and_no_hang() -> None:
    engine = blocked_by_itself(Job(STAR, Layout.bands(DOMAIN, 1), [reference()]), 0)
    with pytest.raises(AssertionError, match="can start or complete"):
        engine.run(3)


def test_a_place_that_is_stuck_sticks_its_neighbours_without_a_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n_waits = 0

    def wait(self: HostEvent) -> None:
        nonlocal n_waits
        n_waits += 1
        if n_waits > 1000:
            pytest.fail("the engine waits for ever for an event that is complete")

    monkeypatch.setattr(HostEvent, "wait", wait)
    engine = blocked_by_itself(Job(STAR, LAYOUTS["bands"], [reference()] * 3), 2)
    with pytest.raises(AssertionError, match="can start or complete"):
        engine.run(3)


@pytest.mark.parametrize("shares_host", [True, False])
def test_an_interrupted_run_leaves_nothing_under_way(shares_host: bool) -> None:
    world = World(eagerness=0.3)
    lazy = [LazyExecutor(world, shares_host=shares_host) for _ in range(3)]
    job = Job(STAR, LAYOUTS["bands"], lazy)

    def interrupt(done: int, total: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job.engine.run(100, interrupt)
    assert not any(executor.compute or executor.transfer for executor in lazy)
