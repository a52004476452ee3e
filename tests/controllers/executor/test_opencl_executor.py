# SPDX-License-Identifier: MIT
"""A controller's memory and commands, on every OpenCL device, in host memory and internal."""
from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pytest
from numpy.lib.stride_tricks import as_strided
from sample import sample
from stub_driver import fill_modulo

from controllers.device import Device, find_devices, reference_device
from controllers.device.event import COMPLETE, is_complete
from controllers.executor.clearing import Clearing
from controllers.executor.copies import Copies, widened
from controllers.executor.executor import Executor
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.kernel.build import Built
from controllers.language.weights import Stencil
from controllers.memory.tile import ALIGNMENT, PAGE, Tile
from controllers.program.program import Program
from controllers.program.schedule import sweeps_of
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap import Shape
from hitmap.strided import Geometry, Strided, packed

DTYPES = (np.dtype("float32"), np.dtype("float64"))
BOXES = (       # a tile, and a part of it whose cells do not follow one another
    (Shape((5,), (42,)), Shape((7,), (40,))),
    (Shape((-1, 3), (16, 14)), Shape((2, 5), (15, 13))),
    (Shape((0, -2, 1), (7, 5, 12)), Shape((1, -1, 3), (6, 4, 11))),
    (Shape((2, 0, 0, 0), (5, 4, 6, 7)), Shape((2, 1, 2, 1), (4, 4, 5, 6))),
)


@cache
def opencl_devices() -> tuple[Device, ...]:
    return tuple(device for device in find_devices() if device.kind != "reference")


def controllers() -> Iterator[object]:
    yield pytest.param(lambda: ReferenceExecutor(reference_device()), id="reference")
    for device in opencl_devices():
        yield pytest.param(lambda d=device: OpenCLExecutor(d), id=f"{device.kind}")
        if device.shares_host:
            yield pytest.param(
                lambda d=device: OpenCLExecutor(d, zero_copy=False), id=f"{device.kind} internal"
            )


@pytest.fixture(params=controllers())
def executor(request: pytest.FixtureRequest) -> Executor:
    return request.param()  # type: ignore[no-any-return]


@pytest.fixture
def internal() -> OpenCLExecutor:
    return OpenCLExecutor(opencl_devices()[0], zero_copy=False)


def numbers(extent: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return np.random.default_rng(3).random(extent).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("box", [box for box, _ in BOXES], ids=str)
def test_a_new_tile_holds_zeros(executor: Executor, box: Shape, dtype: np.dtype[Any]) -> None:
    for _ in range(3):      # memory that has been used and given back before, too
        tile = executor.tile(Geometry.dense(box), dtype)
        cells = executor.move_from(tile, box)
        assert (cells.shape, cells.dtype) == (box.extent, dtype)
        assert not cells.any()
        executor.move_to(tile, box, np.ones(box.extent, dtype))


@pytest.mark.parametrize("nbytes", [1, 15, 16, 17, 4095, 4096, 5000, 6 << 20, (9 << 20) + 3])
def test_tiles_are_cleared_where_the_driver_fills_modulo_a_limit(
    internal: OpenCLExecutor, monkeypatch: pytest.MonkeyPatch, nbytes: int
) -> None:
    fill_modulo(monkeypatch, 4096)
    box = Shape((0,), (nbytes,))
    tile = internal.tile(Geometry.dense(box), np.dtype("uint8"))
    for clear in (lambda: None, lambda: internal.clear(tile)):
        clear()
        assert not internal.move_from(tile, box).any()
        internal.move_to(tile, box, np.full(nbytes, 255, np.uint8))


def test_clearing_leaves_what_is_behind_the_bytes(internal: OpenCLExecutor) -> None:
    buffer = internal.device_staging(1000, np.dtype("uint8"))
    for nbytes in (0, 1, 31, 32, 33, 999):
        host = np.full(1000, 255, np.uint8)
        cl.enqueue_copy(internal.compute, buffer, host)
        Clearing(internal.compute).run(buffer, nbytes)
        cl.enqueue_copy(internal.compute, host, buffer)
        assert not host[:nbytes].any() and (host[nbytes:] == 255).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("box", "part"), BOXES, ids=str)
def test_boxes_are_moved_as_numpy_slices_them(
    executor: Executor, box: Shape, part: Shape, dtype: np.dtype[Any]
) -> None:
    tile = executor.tile(Geometry.dense(box), dtype)
    expected, values = numbers(box.extent, dtype), numbers(part.extent, dtype) + 1
    executor.move_to(tile, box, expected)
    executor.move_to(tile, part, values[::-1])      # not contiguous
    expected[part.slices(box.lower)] = values[::-1]
    assert np.array_equal(executor.move_from(tile, box), expected)
    for axis in range(box.n_axes):      # thin boxes at both ends too
        for lower in (box.lower[axis], box.upper[axis] - 1):
            thin = part.slab(axis, lower, lower + 1)
            cells = executor.move_from(tile, thin)
            assert np.array_equal(cells, expected[thin.slices(box.lower)])


def test_a_tile_with_padding_is_moved_without_it(executor: Executor) -> None:
    box = Shape((0, 0), (5, 6))
    tile = executor.tile(Geometry(box, (9, 1)), DTYPES[0])
    values = numbers(box.extent, DTYPES[0])
    executor.move_to(tile, box, values)
    assert tile.nbytes == 5 * 9 * 4
    assert np.array_equal(executor.move_from(tile, box), values)


def test_what_is_moved_from_a_tile_is_a_copy(executor: Executor) -> None:
    box = Shape.of_extent((4, 5))
    tile = executor.tile(Geometry.dense(box), DTYPES[0])
    executor.move_from(tile, box)[...] = 7
    assert not executor.move_from(tile, box).any()


def test_values_are_converted_to_the_dtype_of_the_tile(executor: Executor) -> None:
    box = Shape.of_extent((2, 3))
    tile = executor.tile(Geometry.dense(box), DTYPES[0])
    executor.move_to(tile, box, np.full((2, 3), 0.1))
    assert np.array_equal(executor.move_from(tile, box), np.full((2, 3), 0.1, "float32"))


def test_a_tile_in_host_memory_is_where_its_kernels_work() -> None:
    controller = OpenCLExecutor(opencl_devices()[0])
    box = Shape.of_extent((3, 4))
    tile = controller.tile(Geometry.dense(box), DTYPES[0])
    if not controller.shares_host:
        pytest.skip("the device has memory of its own")
    tile.view(box)[...] = 5
    copy = controller.tile(Geometry.dense(box), DTYPES[0])
    move = (tile.strided(box), copy.strided(box))
    controller.copy_command(tile.linear, copy.linear, 4, move)(None).wait()
    assert (copy.view(box) == 5).all()


def test_tiles_in_host_memory_start_at_different_places_of_a_page() -> None:
    controller = OpenCLExecutor(opencl_devices()[0])
    if not controller.shares_host:
        pytest.skip("the device has memory of its own")
    geometry = Geometry.dense(Shape.of_extent((16, 16)))
    tiles = [controller.tile(geometry, DTYPES[0]) for _ in range(PAGE // ALIGNMENT)]
    starts = {tile.host.ctypes.data % PAGE for tile in tiles if tile.host is not None}
    assert len(starts) == len(tiles)
    assert all(start % ALIGNMENT == 0 for start in starts)


def test_an_internal_tile_has_no_host_image(internal: OpenCLExecutor) -> None:
    box = Shape.of_extent((3,))
    tile = internal.tile(Geometry.dense(box), DTYPES[0])
    assert tile.host is None
    assert not internal.shares_host
    with pytest.raises(AssertionError, match="internal"):
        tile.view(box)


@pytest.mark.parametrize("zero_copy", sample([True, False], 2))
def test_staging_outlives_its_controller_and_can_be_written(zero_copy: bool) -> None:
    def staging(dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        return OpenCLExecutor(opencl_devices()[0], zero_copy=zero_copy).staging(1000, dtype)

    for dtype in DTYPES:
        array = staging(dtype)
        gc.collect()
        assert (array.shape, array.dtype) == ((1000,), dtype)
        array[...] = np.arange(1000)
        assert array.sum() == 499500


def upload_all(executor: Executor, tile: Tile, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    values = numbers(tile.geometry.box.extent, dtype)
    executor.move_to(tile, tile.geometry.box, values)
    return values


@pytest.mark.parametrize(("boxes", "dtype"), sample(product(BOXES, DTYPES), 5), ids=str)
def test_a_box_is_copied_between_tiles(
    executor: Executor, boxes: tuple[Shape, Shape], dtype: np.dtype[Any]
) -> None:
    box, part = boxes
    far = Shape((100,) * box.n_axes, tuple(101 + count for count in part.extent))
    there = part.shift(tuple(100 - lower for lower in part.lower))
    source, target = (executor.tile(Geometry.dense(b), dtype) for b in (box, far))
    values = upload_all(executor, source, dtype)
    move = (source.strided(part), target.strided(there))
    copy = executor.copy_command(source.linear, target.linear, dtype.itemsize, move)
    event = copy(None)
    event.wait()
    assert is_complete(event) and event.command_execution_status == COMPLETE
    expected = np.zeros(far.extent, dtype)
    expected[there.slices(far.lower)] = values[part.slices(box.lower)]
    assert np.array_equal(executor.move_from(target, far), expected)


@pytest.mark.parametrize(("n_axes", "n_tiles", "n_launches"), [(1, 1, 1), (3, 1, 1), (2, 10, 2)])
def test_several_boxes_are_copied_within_tiles_by_one_launch_for_eight(
    internal: OpenCLExecutor, n_axes: int, n_tiles: int, n_launches: int
) -> None:
    inside, dtype, copies = Shape.of_extent((5, 4, 7)[-n_axes:]), np.dtype("float32"), []
    geometry = Geometry.dense(inside.grow((1,) * n_axes, (2,) * n_axes))
    tiles = [internal.tile(geometry, dtype) for _ in range(n_tiles)]
    expected = [upload_all(internal, tile, dtype).copy() + n for n, tile in enumerate(tiles)]
    for number, (tile, values) in enumerate(zip(tiles, expected)):
        internal.move_to(tile, geometry.box, values)
        moves = []
        for axis, n in enumerate(inside.extent[number % n_axes :], number % n_axes):
            for at, from_ in ((-1, n - 1), (n, 0), (n + 1, 1)):
                target, source = inside.slab(axis, at, at + 1), inside.slab(axis, from_, from_ + 1)
                origin = geometry.box.lower
                values[target.slices(origin)] = values[source.slices(origin)]
                moves.append((tile.strided(source), tile.strided(target)))
        copies.append((tile.linear, tile.linear, moves))
    launches = [*Copies(internal.context, False, internal.constants).launches(4, copies)]
    assert len(launches) == n_launches
    for launch in launches:
        internal.kernel_command(*launch)(None).wait()
    for tile, values in zip(tiles, expected):
        assert np.array_equal(internal.move_from(tile, geometry.box), values)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_cells_are_copied_in_groups_where_both_ends_allow_it(
    internal: OpenCLExecutor, dtype: str
) -> None:
    itemsize, rng = np.dtype(dtype).itemsize, random.Random(dtype)
    copies, found = Copies(internal.context, False, internal.constants), set()
    for _ in range(12):
        n = rng.choice([1, 2, 4, 8, 16])    # all numbers of both ends are multiples
        extent = (rng.randrange(1, 4), rng.randrange(1, 5), n * rng.randrange(1, 6))
        ends = []
        for _ in range(2):
            pitch = extent[2] + n * rng.randrange(3)
            pitches = (extent[1] * pitch + n * rng.randrange(3), pitch, 1)
            ends.append(Strided(n * rng.randrange(4), pitches, extent))
        size = max(end.first + end.pitches[0] * extent[0] for end in ends)
        box = Shape.of_extent((size,))
        source, target = (internal.tile(Geometry.dense(box), np.dtype(dtype)) for _ in range(2))
        values = np.random.default_rng(size).integers(1, 200, size).astype(dtype)
        internal.move_to(source, box, values)
        found.add(widened(itemsize, (ends[0], ends[1]))[0])
        (launch,) = copies.launches(itemsize, [(source.linear, target.linear, [tuple(ends)])])
        internal.kernel_command(*launch)(None).wait()
        expected = np.zeros_like(values)
        cells = [view(array, end) for array, end in zip((values, expected), ends)]
        cells[1][...] = cells[0]
        assert np.array_equal(internal.move_from(target, box), expected)
    assert found > {itemsize} and 16 in found


def view(array: npt.NDArray[Any], cells: Strided) -> npt.NDArray[Any]:
    strides = [pitch * array.itemsize for pitch in cells.pitches]
    return as_strided(array[cells.first :], cells.extent, strides)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("box", "part"), sample(BOXES, 4), ids=str)
def test_boxes_are_packed_downloaded_uploaded_and_unpacked(
    internal: OpenCLExecutor, box: Shape, part: Shape, dtype: np.dtype[Any]
) -> None:
    """The whole way of a message, each command after the one before it by its event alone."""
    lower = part.lower[0]
    boxes = [part.slab(0, lower + 1, part.upper[0]), part.slab(0, lower, lower + 1)]
    n_cells = part.n_cells
    source, target = (internal.tile(Geometry.dense(box), dtype) for _ in range(2))
    values = upload_all(internal, source, dtype)
    devices = [internal.device_staging(n_cells, dtype) for _ in range(2)]
    hosts = [internal.staging(n_cells, dtype) for _ in range(2)]
    run = Strided(0, (1,), (n_cells,))
    places = packed(boxes)
    pack = [
        internal.copy_command(source.linear, devices[0], dtype.itemsize, (source.strided(b), p))
        for b, p in zip(boxes, places)
    ]
    download = internal.download_command(devices[0], run, hosts[0])
    upload = internal.upload_command(hosts[1], devices[1], run)
    unpack = [
        internal.copy_command(devices[1], target.linear, dtype.itemsize, (p, target.strided(b)))
        for b, p in zip(boxes, places)
    ]
    for _ in range(3):      # a command is bound once and called often
        hosts[0][...] = 0
        for command in pack:
            packed_ = command(None)
        download([packed_]).wait()
        flat = np.concatenate([values[b.slices(box.lower)].ravel() for b in boxes])
        assert np.array_equal(hosts[0], flat)
        hosts[1][...] = hosts[0] * 2
        uploaded = upload(None)
        for command in unpack:
            done = command([uploaded])
        done.wait()
        expected = np.zeros(box.extent, dtype)
        expected[part.slices(box.lower)] = values[part.slices(box.lower)] * 2
        assert np.array_equal(internal.move_from(target, box), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_contiguous_rows_are_transferred_without_packing(
    internal: OpenCLExecutor, dtype: np.dtype[Any]
) -> None:
    box = Shape((3, 0), (9, 7))
    rows = box.slab(0, 5, 7)
    tile = internal.tile(Geometry.dense(box), dtype)
    values = upload_all(internal, tile, dtype)
    host = internal.staging(14, dtype)
    where = tile.strided(rows)
    internal.download_command(tile.linear, where, host)(None).wait()
    assert np.array_equal(host.reshape(2, 7), values[2:4])
    internal.upload_command(host[::1] * -1, tile.linear, where)(None).wait()
    values[2:4] *= -1
    assert np.array_equal(internal.move_from(tile, box), values)


def test_a_transfer_waits_for_an_event_of_the_other_queue(internal: OpenCLExecutor) -> None:
    box = Shape.of_extent((1 << 20,))
    tiles = [internal.tile(Geometry.dense(box), DTYPES[0]) for _ in range(2)]
    host = internal.staging(box.n_cells, DTYPES[0])
    moves = [tuple(tile.strided(box) for tile in order) for order in (tiles, tiles[::-1])]
    there = internal.copy_command(tiles[0].linear, tiles[1].linear, 4, moves[0])  # type: ignore
    back = internal.upload_command(host, tiles[0].linear, tiles[0].strided(box))
    down = internal.download_command(tiles[1].linear, tiles[1].strided(box), host)
    uploaded = downloaded = None
    for number in range(5):     # the host sets the number, which goes around through both queues
        host[...] = number
        uploaded = back(None)
        copied = there([uploaded])
        internal.flush()
        downloaded = down([copied])
        downloaded.wait()
        assert uploaded.command_execution_status == COMPLETE
        assert (host == number).all()
        assert downloaded.profile.end >= copied.profile.end >= uploaded.profile.end > 0


@pytest.mark.parametrize(("n_axes", "dtype"), sample(product([1, 2, 3, 4], DTYPES), 5))
def test_a_launch_computes_its_box_and_leaves_other_cells_alone(
    executor: Executor, n_axes: int, dtype: np.dtype[Any]
) -> None:
    rng = random.Random(n_axes)
    weights = [rng.choice([0, 1, -0.3, 2]) for _ in range(3**n_axes)]
    stencil = Stencil.of("some", [(-1, 1)] * n_axes, [1, *weights[1:]], 3.7)
    program = stencil.program(dtype.name)
    box = Shape((4,) * n_axes, tuple(4 + count for count in (23, 12, 9, 7)[:n_axes]))
    inside = box.grow((-1,) * n_axes, (-1,) * n_axes)
    over = Shape((6,) * n_axes, tuple(map(max, inside.upper, (7,) * n_axes)))
    reference = ReferenceExecutor(reference_device())
    results = []
    for runner in (executor, reference):
        old, new = (runner.tile(Geometry.dense(box), dtype) for _ in range(2))
        upload_all(runner, old, dtype)
        runner.move_to(new, box, np.full(box.extent, -1, dtype))
        command = runner.launch_command(
            program, Sweep.of(program.stages[0], over), {"u": old}, {"u": new}, over,
            Surroundings.usual(program, box),
        )  # fmt: skip
        command(None).wait()
        runner.wait()
        results.append(runner.move_from(new, box))
    result, expected = results
    assert np.array_equal(result, expected)
    outside = np.ones(box.extent, bool)
    outside[over.slices(box.lower)] = False
    assert (result[outside] == -1).all()
    assert (result[~outside] != -1).any()


def test_a_kernel_is_compiled_once_per_program() -> None:
    controller = OpenCLExecutor(opencl_devices()[0])
    first, other = (Stencil.of("mean", [(-1, 1)], [1, 0, 1], n) for n in (2, 3))

    def build(program: Program) -> Built:
        return controller.build(program, sweeps_of(program)[0])[1]

    built = build(first.program("float32"))
    assert build(first.program("float32")) is built
    assert build(other.program("float32")) is not built
    assert build(first.program("float64")) is not built


@pytest.mark.parametrize("zero_copy", [True, False])
def test_a_bound_command_keeps_its_memory(zero_copy: bool) -> None:
    controller = OpenCLExecutor(opencl_devices()[0], zero_copy=zero_copy)
    program = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
    box = Shape.of_extent((100_000,))
    over = box.grow((-1,), (-1,))

    def bound() -> tuple[object, ...]:
        """launch -> copy -> device staging -> copy: only the ends are held by names."""
        old, new, last = (controller.tile(Geometry.dense(box), DTYPES[0]) for _ in range(3))
        controller.move_to(old, box, np.arange(100_000, dtype="float32"))
        staging = controller.device_staging(box.n_cells, DTYPES[0])
        run = Strided(0, (1,), box.extent)
        launch = controller.launch_command(
            program, Sweep.of(program.stages[0], over), {"u": old}, {"u": new}, over,
            Surroundings.usual(program, box),
        )  # fmt: skip
        out = controller.copy_command(new.linear, staging, 4, (new.strided(box), run))
        back = controller.copy_command(staging, last.linear, 4, (run, last.strided(box)))
        return (launch, out, back), last

    commands, last = bound()
    gc.collect()
    rubbish = []
    for _ in range(20):     # take the memory that would have been given back
        junk = controller.tile(Geometry.dense(box), DTYPES[0])
        controller.move_to(junk, box, np.full(100_000, 9, "float32"))
        rubbish.append(junk)
    for command in commands:  # type: ignore[attr-defined]
        command(None)
    controller.wait()
    expected = np.arange(100_000, dtype="float32")
    expected[[0, -1]] = 0
    assert np.array_equal(controller.move_from(last, box), expected)  # type: ignore[arg-type]


def test_controllers_of_one_process_do_not_disturb_each_other() -> None:
    device = opencl_devices()[0]
    pair = [OpenCLExecutor(device), OpenCLExecutor(device, zero_copy=False), OpenCLExecutor(device)]
    box = Shape.of_extent((64, 65))
    program = Stencil.of("sum", [(-1, 1), (0, 0)], [1, 1, 1], 1).program("float64")
    over = box.grow((-1, 0), (-1, 0))
    commands = []
    for number, controller in enumerate(pair):
        old, new = (controller.tile(Geometry.dense(box), DTYPES[1]) for _ in range(2))
        controller.move_to(old, box, np.full(box.extent, number, "float64"))
        command = controller.launch_command(
            program, Sweep.of(program.stages[0], over), {"u": old}, {"u": new}, over,
            Surroundings.usual(program, box),
        )  # fmt: skip
        commands.append((command, new))
    for _ in range(10):
        for command, _new in commands:
            command(None)
    for controller in pair:
        controller.flush()
    for number, (controller, (_, new)) in enumerate(zip(pair, commands)):
        controller.wait()
        assert (controller.move_from(new, over) == 3 * number).all()
    assert len({controller.context.int_ptr for controller in pair}) == 3


def test_only_opencl_devices_get_a_controller() -> None:
    with pytest.raises(AssertionError, match="OpenCL"):
        OpenCLExecutor(reference_device())


def test_the_queues_are_in_order_and_timed(internal: OpenCLExecutor) -> None:
    for queue in (internal.compute, internal.transfer):
        properties = cl.command_queue_properties
        assert queue.properties & properties.PROFILING_ENABLE
        assert not queue.properties & properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    assert repr(internal) == f"<OpenCLExecutor {internal.device.name!r}>"
