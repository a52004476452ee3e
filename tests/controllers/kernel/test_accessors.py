# SPDX-License-Identifier: MIT
"""The macros of kernels_cl/accessors.cl find their cells, whatever pitch and padding."""
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pytest
from sample import sample

from controllers import Kernel
from controllers.device import choose, find_devices
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.build import build_user_kernel
from controllers.kernel.stage_kernel import box_values, tile_values
from controllers.kgt.parameter import bind
from controllers.kgt.strategies.cell.config import work_sizes
from hitmap.shape import Shape
from hitmap.strided import Geometry, dense_pitches

ORIGIN = (5, -3, 100, 7)
EXTENTS = {1: (2050,), 2: (37, 29), 3: (9, 11, 13), 4: (5, 4, 6, 7)}


@pytest.fixture(scope="module")
def controller() -> OpenCLExecutor:
    (device,) = choose(["cpu:0"], find_devices())
    return OpenCLExecutor(device)


def launched(
    controller: OpenCLExecutor, kernel: Kernel, over: Shape, tiles: dict[str, Geometry],
    arrays: dict[str, npt.NDArray[Any]], is_cpu: bool = True,
) -> dict[str, npt.NDArray[Any]]:  # fmt: skip
    """All arrays, whole tiles with their padding, after a launch over a box."""
    n_axes = len(over.extent)
    built = build_user_kernel(controller.context, controller.device, kernel, n_axes)
    values: dict[str, object] = dict(box_values(over))
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = {k: cl.Buffer(controller.context, flags, hostbuf=a) for k, a in arrays.items()}
    for name, geometry in tiles.items():
        values |= tile_values(name, geometry.strided(over))
    arguments = bind(built.name, built.parameters, {**values, **buffers}, kernel.scalars)
    compiled = cl.Kernel(built.program, built.name)
    compiled.set_args(*arguments)  # type: ignore[arg-type]
    cl.enqueue_nd_range_kernel(controller.compute, compiled, *work_sizes(over.extent, is_cpu))
    results = {name: np.empty_like(array) for name, array in arrays.items()}
    for name, buffer in buffers.items():
        cl.enqueue_copy(controller.compute, results[name], buffer)
    return results


def padded(box: Shape, padding: int) -> Geometry:
    *outer, row = box.extent
    return Geometry(box, dense_pitches((*outer, row + padding)) if outer else (1,))


def coordinates(n_axes: int, text: str) -> str:
    return ", ".join(text.format(axis=axis) for axis in range(n_axes))


@pytest.mark.parametrize("is_cpu", [True, False])
@pytest.mark.parametrize("n_axes", sample([1, 2, 3, 4], 3))
def test_every_way_to_name_a_cell_finds_it(
    controller: OpenCLExecutor, n_axes: int, is_cpu: bool
) -> None:
    over = Shape.of_extent(EXTENTS[n_axes]).shift(ORIGIN[:n_axes])
    tiles = {
        "a": padded(over.grow((2,) * n_axes, (1,) * n_axes), 5),
        "b": padded(over.grow((0,) * n_axes, (3,) * n_axes), 2),
    }
    zeros, ones = ", ".join(["0"] * n_axes), ", ".join(["-1"] * n_axes)
    digits = " + ".join(f"(LOCAL({axis}) << {12 * axis})" for axis in range(n_axes))
    kernel = Kernel.of("probe", f"""
        __kernel void probe(BOX, __global const long *restrict a, TILE(a), TILE(b),
                            __global long *restrict b)
        {{
            CELL;
            const int same = NEAR(a, {zeros}) == HERE(a)
                && AT(a, {coordinates(n_axes, "INDEX({axis})")}) == HERE(a)
                && AT(a, {coordinates(n_axes, "INDEX({axis}) - 1")}) == NEAR(a, {ones})
                && AT_LOCAL(a, {coordinates(n_axes, "LOCAL({axis})")}) == HERE(a)
                && INDEX(0) - LOCAL(0) == lower_0 && LOCAL(0) < EXTENT(0);
            HERE(b) = same ? HERE(a) + ({digits}) : -1;
        }}""", roles={"b": "out"})  # fmt: skip
    rng = np.random.default_rng(n_axes)
    arrays = {
        name: rng.integers(1, 1 << 50, tile.n_elements) for name, tile in tiles.items()
    }
    result = launched(controller, kernel, over, tiles, arrays, is_cpu)["b"]
    local = sum(grid << 12 * axis for axis, grid in enumerate(np.indices(over.extent)))
    right = arrays["b"].copy()
    tiles["b"].strided(over).view(right)[...] = (
        tiles["a"].strided(over).view(arrays["a"]) + local
    )
    assert np.array_equal(result, right), "padding and all other cells are left alone"


@pytest.mark.parametrize("n_axes", sample([2, 1, 3, 4], 4))
def test_a_kernel_that_updates_a_tile_in_place_computes_each_cell_once(
    controller: OpenCLExecutor, n_axes: int
) -> None:
    over = Shape.of_extent(EXTENTS[n_axes])
    tile = padded(over, 3)
    kernel = Kernel.of(
        "grow", "__kernel void grow(__global int *x, const int by, TILE(x), BOX)"
        "{ CELL; HERE(x) += by; }", scalars={"by": 7},
    )  # fmt: skip
    before = np.zeros(tile.n_elements, np.int32)
    after = launched(controller, kernel, over, {"x": tile}, {"x": before})["x"]
    assert (tile.strided(over).view(after) == 7).all()
    assert after.sum() == 7 * over.n_cells
    assert work_sizes(over.extent, True)[0] != over.extent[::-1], "groups do not fit the box"
