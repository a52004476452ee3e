# SPDX-License-Identifier: MIT
"""The verbs of a controller: what moves, what waits, what is refused."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from opened import ways_to_open

from controllers import Controller, Kernel, reading, updating, writing
from controllers.controller.controller import FORGET_EVERY
from controllers.controller.later import Later
from controllers.controller.tied_tile import TiedTile, TileKind
from controllers.device import choose, find_devices
from controllers.kernel.build import BuildError
from controllers.memory.coherence import Coherence
from controllers.memory.ledger import MemoryCapError
from hitmap.shape import Shape

SLOW = 2_000_000    # turns of a loop, some milliseconds

ADD = Kernel.of("add", """
    __kernel void add(__global int *u, TILE(u), BOX, const int by, const long turns)
    {
        CELL;
        int x = HERE(u);
        for (long turn = 0; turn < turns; ++turn) x = x * 3 + (int)turn;
        for (long turn = turns; turn > 0; --turn) x = (x - (int)(turn - 1)) * -1431655765;
        HERE(u) = x + by;
    }""", scalars={"by": 1, "turns": 0})  # fmt: skip
SHIFTED = Kernel.of("shifted", """
    __kernel void shifted(__global const int *a, __global int *b, TILE(a), TILE(b), BOX)
    { CELL; HERE(b) = 10 * NEAR(a, 0, -1) + NEAR(a, 1, 0); }""", roles={"b": "out"})


@pytest.fixture(params=ways_to_open(), scope="module")
def controller(request: pytest.FixtureRequest) -> Iterator[Controller]:
    with request.param() as opened:
        yield opened


@pytest.fixture(params=ways_to_open(two_images=True))
def two_images(request: pytest.FixtureRequest) -> Iterator[Controller]:
    with request.param() as opened:
        yield opened


def test_two_kernels_and_a_host_task_run_in_order(controller: Controller) -> None:
    u, v = controller.tile((6, 7), "int32"), controller.tile((6, 7), "int32")
    start = np.arange(42).reshape(6, 7)
    u.write(start)
    controller.launch(ADD, u, u=u, by=3, turns=SLOW // 42)
    inner = Shape((0, 1), (5, 7))
    controller.launch(SHIFTED, inner, a=u, b=v)

    def halve(cells: npt.NDArray[np.int32], source: npt.NDArray[np.int32]) -> None:
        time.sleep(0.02)
        cells //= 2
        cells += source

    controller.host_task(halve, updating(v.select(inner)), reading(u.select(inner)))
    controller.launch(ADD, v, u=v)
    model, old = np.zeros((6, 7), np.int32), start + 3
    model[:5, 1:] = (10 * old[:5, :-1] + old[1:, 1:]) // 2 + old[:5, 1:]
    assert np.array_equal(v.read(), model + 1)


def test_a_host_read_moves_just_the_stale_cells(
    two_images: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    tile = two_images.tile((10, 10), "int32")
    moved: list[tuple[bool, list[str]]] = []
    real = two_images.executor.move_command

    def spy(*args: object, to_device: bool) -> object:
        moved.append((to_device, [str(box) for box in args[2]]))  # type: ignore[attr-defined]
        return real(*args, to_device=to_device)  # type: ignore[arg-type]

    monkeypatch.setattr(two_images.executor, "move_command", spy)
    rows = tile.select(Shape((2, 0), (4, 10)))
    two_images.launch(ADD, rows, u=rows)
    tile.select(Shape((0, 0), (3, 5))).read()
    assert moved == [(False, ["[2:3, 0:5]"])]
    tile.read()
    assert moved[1:] == [(False, ["[2:3, 5:10]", "[3:4, 0:10]"])]
    tile.select(Shape((9, 9), (10, 10))).write(7)
    two_images.launch(ADD, tile, u=tile)
    assert moved[2:] == [(True, ["[9:10, 9:10]"])]
    assert tile.read()[9, 9] == 8
    tile.read()
    assert len(moved) == 4, "what is up to date is not moved again"


def test_on_shared_memory_nothing_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    with Controller("cpu") as controller:
        assert controller.executor.shares_host
        monkeypatch.setattr(controller.executor, "move_command", None)
        tile = controller.tile((100,), "int32")
        controller.launch(ADD, tile, u=tile)
        assert (tile.read() == 1).all()
        tile.write(5)
        controller.launch(ADD, tile, u=tile)
        assert (tile.read() == 6).all()


def test_moves_return_events_of_the_image(two_images: Controller) -> None:
    tile = two_images.tile((1000, 1000), "int32")
    tile.write(3)
    two_images.move_to(tile).wait()
    two_images.launch(ADD, tile, u=tile)
    event = two_images.move_from(tile)
    event.wait()
    assert event.command_execution_status == 0
    assert tile.host is not None and (tile.host == 4).all()
    two_images.move_from(tile).wait()


def test_a_launch_behind_a_host_task_returns_at_once(controller: Controller) -> None:
    tile = controller.tile((8,), "int32")
    go = threading.Event()

    def task(cells: npt.NDArray[np.int32]) -> None:
        assert go.wait(60)
        cells[...] = 5

    controller.host_task(task, writing(tile))
    event = controller.launch(ADD, tile, u=tile)
    other = controller.tile((8,), "int32")
    controller.launch(ADD, other, u=other)
    assert (other.read() == 1).all(), "what does not depend on the task does not wait for it"
    assert isinstance(event, Later) and event.command_execution_status > 0
    go.set()
    event.wait()
    assert (tile.read() == 6).all()
    assert event.command_execution_status == 0
    assert event.profile.end >= event.profile.start


def test_an_error_of_a_host_task_reaches_all_that_depends_on_it(controller: Controller) -> None:
    tile, other = controller.tile((8,), "int32"), controller.tile((8,), "int32")

    def fails(cells: npt.NDArray[np.int32]) -> None:
        time.sleep(0.02)
        raise ArithmeticError("a wrong number")

    event = controller.host_task(fails, writing(tile))
    controller.launch(ADD, tile, u=tile)
    controller.launch(ADD, other, u=other)
    with pytest.raises(ArithmeticError, match="a wrong number"):
        tile.read()
    with pytest.raises(ArithmeticError):
        event.wait()
    with pytest.raises(ArithmeticError):
        controller.wait()
    controller.wait()   # told once
    assert event.command_execution_status < 0
    assert (other.read() == 1).all()
    with pytest.raises(ArithmeticError):
        controller.launch(ADD, tile, u=tile)
    controller.free(tile)


def test_a_block_that_fails_ends_with_its_own_error_after_all_tasks() -> None:
    done = []
    with pytest.raises(KeyError), Controller("cpu") as controller:
        tile = controller.tile((8,), "int32")
        controller.host_task(lambda x: (time.sleep(0.05), done.append(1)), updating(tile))
        raise KeyError("ours")
    assert done == [1] and tile.freed


def test_host_tasks_carry_cells_from_one_controller_to_another() -> None:
    with Controller("cpu", zero_copy=False) as one, Controller("cpu") as other:
        a, b = one.tile((64, 64), "int32"), other.tile((64, 64), "int32")
        for turn in range(1, 6):
            one.launch(ADD, a, u=a, by=1, turns=SLOW // 4096)
            one.host_task(lambda x, y: np.copyto(y, x), reading(a), writing(b))
            other.launch(ADD, b, u=b, by=1, turns=SLOW // 4096)
            other.host_task(lambda x, y: np.copyto(y, x), reading(b), writing(a))
            assert (a.read() == 2 * turn).all()


def test_only_read_views_of_a_host_task_are_read_only(controller: Controller) -> None:
    tile, host = controller.tile((4,), "int32"), controller.tile((4,), "int32", "host")
    flags = []
    controller.host_task(
        lambda a, b, c: flags.extend(x.flags.writeable for x in (a, b, c)),
        reading(tile), writing(host), updating(tile),
    )  # fmt: skip
    controller.wait()
    assert flags == [False, True, True]


def test_swapped_tiles_swap_contents_and_dependencies(controller: Controller) -> None:
    u, v = controller.tile((50, 50), "int32"), controller.tile((50, 50), "int32")
    u.write(1)
    for _ in range(7):
        controller.launch(SHIFTED, Shape((0, 1), (49, 50)), a=u, b=v)
        controller.swap(u, v)
    model = np.ones((50, 50), np.int32), np.zeros((50, 50), np.int32)
    for _ in range(7):
        model[1][:49, 1:] = 10 * model[0][:49, :-1] + model[0][1:, 1:]
        model = model[::-1]
    assert np.array_equal(u.read(), model[0]) and np.array_equal(v.read(), model[1])


def test_internal_tiles_are_read_and_written_without_a_host_image(controller: Controller) -> None:
    tile = controller.tile(Shape((-2, 5), (8, 9)), "int32", "internal")
    assert tile.host is None
    values = np.arange(40).reshape(10, 4)
    tile.write(values)
    controller.launch(ADD, tile, u=tile, turns=SLOW // 40)
    assert np.array_equal(tile.read(), values + 1)
    part = tile.select(Shape((0, 6), (3, 8)))
    part.write(-1)
    assert np.array_equal(part.read(), np.full((3, 2), -1))


def test_group_functions_and_local_memory_work_with_a_group_of_ones_own(
    controller: Controller,
) -> None:
    total = Kernel.of("total", """
        __kernel void total(__global const int *restrict u, volatile __global int *sum,
                            __local int *scratch, TILE(u), BOX)
        {
            const size_t items = get_local_size(0) * get_local_size(1);
            const size_t item = get_local_id(0) + get_local_size(0) * get_local_id(1);
            const long row = get_global_id(1), column = get_global_id(0);
            const int inside = row < EXTENT(0) && column < EXTENT(1);
            scratch[item] = inside ? AT_LOCAL(u, row, column) : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item == 0) {
                int n = 0;
                for (size_t i = 0; i < items; ++i) n += scratch[i];
                atomic_add(sum, n);
            }
        }""")  # fmt: skip
    cells = np.random.default_rng(0).integers(0, 1000, (37, 13), np.int32)
    tile, total_of_all = controller.tile(cells.shape, "int32"), controller.tile((1,), "int32")
    tile.write(cells)
    controller.launch(total, tile, group=(4, 8), u=tile, sum=total_of_all, scratch=32)
    assert total_of_all.read() == cells.sum()


def test_a_launch_without_cells_does_nothing(controller: Controller) -> None:
    tile = controller.tile((4,), "int32")
    controller.launch(ADD, Shape((2,), (2,)), u=tile).wait()
    assert not tile.read().any()


def test_tiles_of_other_axes_are_indexed_from_the_origin(controller: Controller) -> None:
    kernel = Kernel.of("outer", """
        __kernel void outer(__global const float *x, const long x_first,
                            __global const float *y, const long y_first,
                            __global float *a, TILE(a), BOX)
        { CELL; HERE(a) = x[x_first + INDEX(0)] * y[y_first + INDEX(1)]; }""", roles={"a": "out"})
    box = Shape((3, -2), (9, 5))
    x, y = (controller.tile(Shape((a,), (b,))) for a, b in zip(box.lower, box.upper))
    a = controller.tile(box)
    x.write(np.arange(6))
    y.write(np.arange(7))
    controller.launch(kernel, a, x=x, y=y, a=a)
    assert np.array_equal(a.read(), np.outer(np.arange(6), np.arange(7)))


def test_variants_are_chosen_by_device(controller: Controller) -> None:
    text = "__kernel void fill(__global int *u, TILE(u), BOX) { CELL; HERE(u) = %d; }"
    kernel = Kernel.of("fill", text % 1).with_variant(text % 2, controller.device.kind)
    tile = controller.tile((4,), "int32")
    controller.launch(kernel, tile, u=tile)
    assert (tile.read() == 2).all()


def small(controller: Controller, dtype: str = "int32", kind: TileKind = "tied") -> TiedTile:
    return controller.tile((4,), dtype, kind)


def inner(c: Controller) -> TiedTile:
    return small(c, kind="internal")


def launched(c: Controller, tile: TiedTile, **arguments: Any) -> object:
    return c.launch(ADD, tile, **{"u": tile, **arguments})


def built(c: Controller, name: str, body: str) -> object:
    kernel = Kernel.of(name, f"__kernel void {name}(__global int *u) {{ {body} }}")
    return c.launch(kernel, small(c))


PART = Shape((1,), (3,))
REFUSED: list[tuple[type[Exception], str, Callable[[Controller], object]]] = [
    (ValueError, "at least one cell", lambda c: c.tile((0, 3))),
    (ValueError, "not in the selection", lambda c: small(c).select(PART).select(PART.shift((1,)))),
    (TypeError, "no parameter 'w'.*u, u_first, by", lambda c: launched(c, small(c), w=3)),
    (TypeError, "no parameter 'extent_0'", lambda c: launched(c, small(c), extent_0=3)),
    (TypeError, "'u' takes a tile", lambda c: launched(c, small(c), u=3)),
    (TypeError, "'by' takes a number", lambda c: launched(c, small(c), by=small(c))),
    (ValueError, "'u' has no value", lambda c: c.launch(ADD, small(c))),
    (TypeError, "int.*holds float32", lambda c: launched(c, small(c, "float32"))),
    (ValueError, "no image on the device", lambda c: launched(c, small(c, kind="host"))),
    (ValueError, "image on the host", lambda c: c.host_task(id, reading(inner(c)))),
    (ValueError, "no image on the host", lambda c: c.move_from(inner(c))),
    (ValueError, "no image on the device", lambda c: c.move_to(small(c, kind="host"))),
    (ValueError, "scalar 'by' is a int, got 1.5", lambda c: launched(c, small(c), by=1.5)),
    (ValueError, "work-group.*smaller", lambda c: launched(c, small(c), group=(1 << 20,))),
    (ValueError, "one extent per axis", lambda c: launched(c, small(c), group=(2, 2))),
    (ValueError, "same form", lambda c: c.swap(small(c), c.tile((5,), "int32"))),
    (BuildError, "undeclared", lambda c: built(c, "k", "u[0] = undeclared;")),
]


@pytest.mark.parametrize("kind, message, call", REFUSED, ids=[text for _, text, _ in REFUSED])
def test_what_is_refused(
    controller: Controller,
    kind: type[Exception],
    message: str,
    call: Callable[[Controller], object],
) -> None:
    with pytest.raises(kind, match=message):
        call(controller)


def test_a_freed_tile_and_one_of_another_controller_are_refused(controller: Controller) -> None:
    tile = controller.tile((4,), "int32")
    controller.free(tile)
    for use in (tile.read, lambda: tile.write(1), lambda: controller.launch(ADD, tile, u=tile)):
        with pytest.raises(ValueError, match="freed"):
            use()
    with Controller("cpu") as other:
        mine = other.tile((4,), "int32")
        with pytest.raises(ValueError, match="belongs to"):
            controller.launch(ADD, mine, u=mine)


def test_a_controller_has_one_device() -> None:
    with pytest.raises(ValueError, match="reference device"):
        Controller("reference")
    (cpu,) = choose(["cpu:0"], find_devices())
    if cpu.compute_units < 2:
        pytest.skip("a CPU of two cores can be divided")
    with pytest.raises(ValueError, match=r"fits 2.*Controller\.each"):
        Controller("cpu/1,1")
    pair = Controller.each("cpu/1,1")
    try:
        for number, controller in enumerate(pair):
            tile = controller.tile((9,), "int32")
            controller.launch(ADD, tile, u=tile, by=number)
            assert (tile.read() == number).all()
    finally:
        for controller in pair:
            controller.close()


def test_a_closed_controller_says_so() -> None:
    controller = Controller("cpu")
    tile = controller.tile((9,), "int32")
    controller.close()
    controller.close()
    for verb in (
        tile.read,
        lambda: tile.write(1),
        lambda: controller.launch(ADD, tile, u=tile, by=1),
        lambda: controller.host_task(print, reading(tile)),
        lambda: controller.host_task(print),
        lambda: controller.move_to(tile),
        lambda: controller.move_from(tile),
        lambda: controller.free(tile),
        lambda: controller.swap(tile, tile),
        lambda: controller.tile((9,)),
    ):
        with pytest.raises(RuntimeError, match="is closed; make a new one"):
            verb()


def test_tiles_are_in_the_ledger_under_the_cap_until_they_are_freed() -> None:
    with Controller("cpu", zero_copy=False, memory_cap="1m") as controller:
        ledger = controller.executor.ledger
        tied, internal = controller.tile((100, 100)), controller.tile((50, 50), kind="internal")
        assert ledger.on_device == 4 * (100 * 100 + 50 * 50)
        assert ledger.as_dict()["host images"] == 4 * 100 * 100
        with pytest.raises(MemoryCapError, match="cap is 1 MiB.*--memory-cap"):
            controller.tile((1000, 1000))
        controller.launch(ADD, small(controller), u=small(controller))
        controller.free(tied)
        controller.free(internal)
    assert ledger.on_device == ledger.on_host == 0, "all is free"


def test_histories_stay_short_over_many_commands(controller: Controller) -> None:
    u, v = controller.tile((4, 4), "int32"), controller.tile((4, 4), "int32")
    for n_commands in (4 * FORGET_EVERY, FORGET_EVERY):
        for _ in range(n_commands):
            controller.launch(SHIFTED, Shape((0, 1), (3, 4)), a=u, b=v)
        controller.executor.compute.finish()    # of which histories are not told
    assert len(u.coherence.pending()) <= FORGET_EVERY
    controller.wait()
    assert u.coherence.pending() == []


@pytest.mark.parametrize("fault", ["stale", "before_read", "before_write"])
def test_without_its_rules_the_results_are_wrong(
    monkeypatch: pytest.MonkeyPatch, two_images: Controller, fault: str
) -> None:
    """Each rule that is left out shows: else the tests above would prove nothing."""
    nothing = (lambda *_: ()) if fault == "stale" else (lambda *_: [])
    monkeypatch.setattr(Coherence, fault, nothing)
    tile = two_images.tile((1000,), "int32")

    def slowly(cells: npt.NDArray[np.int32]) -> None:
        copy = cells.copy()
        time.sleep(0.2)
        cells[...] = copy + 1

    two_images.host_task(slowly, updating(tile))
    two_images.launch(ADD, tile, u=tile, turns=SLOW // 10)
    two_images.host_task(slowly, updating(tile))
    seen = tile.read()
    two_images.wait()
    assert not (seen == 3).all()
