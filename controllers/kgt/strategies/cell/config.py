# SPDX-License-Identifier: MIT
"""The strategy "cell": one cell per work-item, without a bounds test, for CPUs and GPUs alike.

A bounds test would stop the vectoriser of CPU drivers.  Instead the number of groups is rounded up
and the last group of an axis starts early, so that it ends with the box: the cells it shares with
the group before are written twice, with the same value, since old and new level are different
buffers.  Where they are one, there is a test after all.  The index of a cell is a base, the same
for the whole group, plus the local ids, which vectorises.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import ClassVar

from controllers.kgt.kernel import StageKernel, WorkSizes
from controllers.kgt.launch import Launch
from controllers.kgt.strategies.cell.body import cell_body, cells_body
from controllers.kgt.strategies.config import Config
from controllers.kgt.text import element, fast, frame
from controllers.kgt.text.fold_values import is_folding
from controllers.program.expression import Coordinate, Given, Index, Outcome, Scalar
from controllers.program.program import Program, Stage

# Work-groups: items along the last axis, and items in all where that axis is short.  Measured on
# PoCL (2 cores; 2d4, 2d9c, 2d9s, 3d7; 62^2 to 4096^2, 256^3): 4 rows of 512 are as fast as the
# driver's own choice or faster, in cache and beyond it, which other sizes are not; small boxes
# want few large groups.  NVIDIA H200: 256 items, 64 of them in a row.
CPU_ROW, CPU_ITEMS = 512, 1024
GPU_ROW, GPU_ITEMS = 64, 256
MIN_ROWS = 4
FULL = 16   # of rows along the second axis, by which whole groups may be more
# Where cells are folded: work-items on a CPU, so many cells of a row each at least; groups on GPUs.
FOLDING_CPU, FOLDING_CELLS, FOLDING_GPU = 64, 1024, 1024
MAX_LOCAL_Z = 64  # NVIDIA's limit on OpenCL dimension 2


@dataclass(frozen=True)
class CellConfig(Config):
    """It has no parameters, and is what is left where no other strategy is better."""

    strategy: ClassVar[str] = "cell"
    about: ClassVar[str] = "one cell per work-item (default)"
    several: ClassVar[bool] = True
    in_place: ClassVar[bool] = True
    folds: ClassVar[bool] = True
    most_items: ClassVar[int] = 0   # of a work-group that folds together; 0: items fold alone
    given: ClassVar[tuple[type[Given], ...]] = (Scalar, Index, Coordinate, Outcome)

    @classmethod
    def default(
        cls, program: Program, stage: Stage, exceeds_cache: bool = False, nvidia: bool = False
    ) -> CellConfig:
        """The only one there is."""
        return cls()

    @classmethod
    def chosen(cls, program: Program, stage: Stage, launch: Launch | None) -> CellConfig | None:
        """It computes one step of any box."""
        return cls() if launch is None or launch.n_steps == 1 else None

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        """One work-item per cell."""
        return folding_sizes if is_folding(stage) else work_sizes

    def kernel(self, program: Program, stage: Stage) -> StageKernel:
        """The kernel of `stage` that computes one cell per work-item."""
        stage = fast.stage_of(program, stage)
        how, body = "one cell per work-item", cell_body
        if is_folding(stage):
            how, body = "cell by cell", partial(cells_body, most_items=self.most_items)
        kernel = frame.kernel(
            program, stage, how, body(program, stage), self.work_sizes(program, stage),
            folds_by_group=self.most_items > 0,
            helpers=element.functions(stage, program.dtypes),
        )  # fmt: skip
        return replace(kernel, hint=element.hint(stage))


@dataclass(frozen=True)
class GroupsConfig(CellConfig):
    """The same for stages that fold, on GPUs, whose work-groups fold together."""

    strategy: ClassVar[str] = "groups"
    kind: ClassVar[str] = "gpu"
    about: ClassVar[str] = "cell by cell, for folds"
    most_items: ClassVar[int] = GPU_ITEMS

    @classmethod
    def chosen(cls, program: Program, stage: Stage, launch: Launch | None) -> CellConfig | None:
        """For stages that fold."""
        return super().chosen(program, stage, launch) if is_folding(stage) else None


def work_sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Global and local size, in OpenCL order, for a box; no local size exceeds its `extent`.

    Local sizes are powers of two, so that few variants are compiled.  On a CPU, whose cores take
    work-groups in turn, whole ones of few long rows are no more than 1/FULL larger than the box.

    >>> work_sizes((4096, 4096), is_cpu=True), work_sizes((6, 4096), is_cpu=True)
    (((4096, 4096), (512, 4)), ((4096, 6), (512, 2)))
    >>> work_sizes((100, 3), is_cpu=False)
    ((4, 128), (2, 64))
    """
    if min(extent) < 1:
        raise ValueError(
            f"a launch needs at least one cell per axis, got the extent {extent}; skip empty boxes"
        )
    row, max_items = (CPU_ROW, CPU_ITEMS) if is_cpu else (GPU_ROW, GPU_ITEMS)
    x, y, z = (*extent[:-4:-1], 1, 1)[:3]
    shared = extent[0] if len(extent) == 4 else 1  # axes 0 and 1 are both in z, one cell per group
    local_z_limit = 1 if len(extent) == 4 else MAX_LOCAL_Z
    local_x = _power_of_two(min(max(row, max_items // min(y, max_items)), x))
    local_y = _power_of_two(min(max(MIN_ROWS, max_items // local_x), y))
    while is_cpu and x >= CPU_ROW and FULL * (-y % local_y) > y:
        local_y //= 2
    local_z = _power_of_two(min(max(1, max_items // (local_x * local_y)), z, local_z_limit))
    local = (local_x, local_y, local_z)
    rounded = tuple(-(-cells // size) * size for cells, size in zip((x, y, z), local))
    n_dimensions = min(3, len(extent))
    return (*rounded[:2], rounded[2] * shared)[:n_dimensions], local[:n_dimensions]


def folding_sizes(
    extent: tuple[int, ...], is_cpu: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Global and local size, in OpenCL order, of kernels that fold, whose items take many cells.

    >>> folding_sizes((100, 3), is_cpu=True), folding_sizes((100, 3), is_cpu=False)
    (((1, 64), (1, 1)), ((4, 128), (2, 64)))
    """
    n_rows, row = prod(extent[:-1]), extent[-1]
    if is_cpu:
        rows = min(n_rows, FOLDING_CPU)
        sizes = (min(FOLDING_CPU // rows, -(-row // FOLDING_CELLS)), rows), (1, 1)
    else:
        x = _power_of_two(min(GPU_ROW, row))
        y = _power_of_two(min(GPU_ITEMS // x, n_rows))
        groups = min(-(-n_rows // y), FOLDING_GPU)
        sizes = (x * min(FOLDING_GPU // groups, -(-row // x)), y * groups), (x, y)
    n_dimensions = min(2, len(extent))
    return sizes[0][:n_dimensions], sizes[1][:n_dimensions]


def _power_of_two(limit: int) -> int:
    return 1 << (limit.bit_length() - 1)
