# SPDX-License-Identifier: MIT
"""Ways to exchange: whichever a plan takes, the bits are the same."""
from __future__ import annotations

import random
from dataclasses import replace

import pytest
from engine_runs import check_engine, layout_of
from lazy_executor import random_devices
from lazy_world import World
from random_programs import random_program
from sample import sample
from small_kernels import opencl

from controllers import Stencil
from controllers.check import CheckedEngine
from controllers.device import reference_device
from controllers.executor.executor import Executor
from controllers.executor.reference import ReferenceExecutor
from controllers.plan import ExchangeWay, Location, Plan
from controllers.plan.distinct_ways import distinct_ways
from controllers.program.expression import Read
from controllers.program.program import Field, Program
from controllers.program.stage import Stage
from hitmap import Layout, Shape

WAYS = [*ExchangeWay().others]
N_PROGRAMS = 24
# each way with eight of the programs, each program with four unlike ways
TRIED = [(number, WAYS[(number + turn) % len(WAYS)])
         for number in range(N_PROGRAMS) for turn in (0, 3, 6, 9)]  # fmt: skip


def test_the_ways_are_all_there_are() -> None:
    assert WAYS[0] == ExchangeWay() and len({*WAYS}) == len(WAYS) == 12
    assert [way.overlap for way in ExchangeWay("on").others] == ["on"] * 4


@pytest.mark.parametrize(("number", "way"), sample(TRIED, 10))
def test_devices_that_run_at_any_time_give_the_bits_of_the_reference(
    number: int, way: ExchangeWay
) -> None:
    case, rng = random_program(number), random.Random(number)
    world, n_places = World(number, eagerness=[0.07, 0.2, 0.6][number % 3]), 1 + number % 5
    executors = random_devices(world, rng, n_places)
    check_engine(case, executors, layout_of(case, n_places, rng), way=way)


@pytest.mark.parametrize(("number", "way"), sample(TRIED, 33))
def test_pocl_gives_the_bits_of_the_reference(number: int, way: ExchangeWay) -> None:
    case, rng = random_program(number), random.Random(number)
    devices = [opencl(True, "cpu"), opencl(False, "other"), opencl(False, "third")]
    executors: list[Executor] = [rng.choice(devices) for _ in range(2 + number % 4)]
    check_engine(case, executors, layout_of(case, len(executors), rng), way=way)


@pytest.mark.parametrize(("number", "way"), sample(TRIED, 33))
def test_the_checked_mode_raises_no_alarm(number: int, way: ExchangeWay) -> None:
    case, rng = random_program(number), random.Random(number)
    executors: list[Executor] = [
        ReferenceExecutor(reference_device()), opencl(False, "other"), opencl(False, "third")
    ]
    check_engine(case, executors, layout_of(case, 3, rng), CheckedEngine, way=way)


GPUS = [Location(0, n, shares_host=False) for n in range(2)]


def cut(dims: tuple[int, ...]) -> Layout:
    return Layout.grid(Shape.of_extent((30, 20)), dims)


def lines(way: ExchangeWay, columns: bool, ranks: int = 1) -> list[str]:
    """The operations of place 0 that are no launches, of a program whose fields go together."""

    def at(field: str, n: int) -> Read:
        return Read(field, (0, n) if columns else (n, 0))

    reach = ((0, 0), (-1, 1)) if columns else ((-1, 1), (0, 0))
    stages = (
        Stage("one", {"a": at("u", 1) - at("u", -1), "b": at("v", 1) - at("v", -1)}, reach),
        Stage("two", {"u": at("a", 1) + at("b", 1), "v": at("a", -1) - at("b", -1)}, reach),
    )
    fields = tuple(Field(name, "float32") for name in "uvab")
    layout = cut((1, 2) if columns else (2, 1))
    homes = [replace(GPUS[n], rank=n % ranks) for n in range(2)]
    plan = Plan(Program("pair", fields, stages), layout, (False, False), homes, way=way)
    verbs = [one.verb for one in plan.operations if one.place == 0 and one.phase == 0]
    return [verb for verb in verbs if verb != "launch"]


@pytest.mark.parametrize("columns", [False, True])
def test_a_way_decides_on_packing_and_messages(columns: bool) -> None:
    packed = lines(ExchangeWay(), columns)
    assert packed.count("pack") == 2 and packed.count("download") == 2
    by_boxes = lines(ExchangeWay(rectangles=True), columns)
    assert "pack" not in by_boxes and "unpack" not in by_boxes
    assert by_boxes.count("download") == by_boxes.count("upload") == 2
    apart = lines(ExchangeWay(together=False), columns)
    assert apart.count("download") == 4 and apart.count("pack") == (4 if columns else 0)
    assert lines(ExchangeWay(together=False), columns, ranks=2).count("send") == 4


def test_ways_that_do_the_same_are_one() -> None:
    heat = Stencil.of("heat", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
    domain = Shape.of_extent((30, 20))
    host = [Location(0, n) for n in range(2)]
    bands, blocks = cut((2, 1)), cut((1, 2))
    ways = [
        distinct_ways(Plan(heat, layout, (False, False), homes, overlap=overlap))
        for layout, homes, overlap in (
            (bands, host, "off"), (bands, GPUS, "off"), (blocks, GPUS, "off"),
            (bands, host, "auto"), (Layout.bands(domain, 1), GPUS[:1], "auto"),
        )
    ]  # fmt: skip
    assert ways == [
        [ExchangeWay("off")], [ExchangeWay("off")],
        [ExchangeWay("off"), ExchangeWay("off", rectangles=True)],
        [ExchangeWay(), ExchangeWay("on")], [ExchangeWay()],
    ]  # fmt: skip
