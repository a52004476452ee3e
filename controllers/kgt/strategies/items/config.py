# SPDX-License-Identifier: MIT
"""The configuration of "items": stages whose item function was traced."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from controllers.kgt.kernel import StageKernel, WorkSizes
from controllers.kgt.launch import Launch
from controllers.kgt.strategies.config import Config
from controllers.kgt.strategies.items.body import item_body, summing_body
from controllers.kgt.strategies.items.item_text import FIRST, rows_name
from controllers.kgt.text import frame
from controllers.kgt.text.fold_values import is_folding
from controllers.program.expression import Given, Outcome, Scalar
from controllers.program.item_node import Around, Place
from controllers.program.items import Items, items_of
from controllers.program.program import Program, Stage

CPU_GROUP, GPU_GROUP = 16, 128
CPU_SUMS, GPU_SUMS = 64, 1024      # work-items, or groups, that sum


@dataclass(frozen=True)
class ItemsConfig(Config):
    """It has no parameters."""

    strategy: ClassVar[str] = "items"
    about: ClassVar[str] = "functions of one item (ct.each), one item per work-item"
    several: ClassVar[bool] = True
    items: ClassVar[bool] = True
    folds: ClassVar[bool] = True
    most_items: ClassVar[int] = GPU_GROUP   # of a work-group that sums together; 0: items sum alone
    own_functions: ClassVar[bool] = False   # clang computes what it can without OpenCL's library
    given: ClassVar[tuple[type[Given], ...]] = (Scalar, Outcome)

    @classmethod
    def default(
        cls, program: Program, stage: Stage, exceeds_cache: bool = False, nvidia: bool = False
    ) -> ItemsConfig:
        """The only one there is; ValueError where the stage has no item function."""
        items_in(stage)
        return cls()

    @classmethod
    def chosen(cls, program: Program, stage: Stage, launch: Launch | None) -> ItemsConfig | None:
        """It computes one step of any rows."""
        return cls()

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        """One work-item per row, or for many where they are summed."""
        return summing_sizes if is_folding(stage) else work_sizes

    def origin(self, stage: Stage) -> str:
        """Which function it was made of, and what an item has for itself."""
        items = items_in(stage)
        private = f", {items.private_nbytes} bytes for each item" if items.private else ""
        around = "around OpenCL C" if items.text else "from"
        return f"generated {around} ({items.where}){private}, {self.described()}"

    def kernel(self, program: Program, stage: Stage) -> StageKernel:
        """The kernel of the stage that computes one item per work-item."""
        items = items_in(stage)
        fields = {items.field_of[name]: kind for name, kind in items.kinds}
        rows = {
            rows_name(field): kind.shape[0]
            for field, kind in fields.items() if items.use_of.get(field, "row") != "row"
        }
        if items.text or any(isinstance(one, (Place, Around)) for one in items.nodes):
            rows[FIRST] = 0     # it is told by the launch
        how, body = "one item per work-item", item_body(program, stage, items)
        if is_folding(stage):
            how, body = "item by item", summing_body(program, stage, items, self.most_items)
        return frame.kernel(
            program, stage, how, body, self.work_sizes(program, stage), scalars=rows,
            own_functions=self.own_functions, folds_by_group=self.most_items > 0,
        )  # fmt: skip


@dataclass(frozen=True)
class ItemsOnCpuConfig(ItemsConfig):
    """The same for CPUs, whose drivers call their library for each square root."""

    strategy: ClassVar[str] = "items_on_cpu"
    kind: ClassVar[str] = "cpu"
    about: ClassVar[str] = "the same with clang's own functions"
    own_functions: ClassVar[bool] = True
    most_items: ClassVar[int] = 0


def items_in(stage: Stage) -> Items:
    """The item function of a stage; ValueError where it has none."""
    found = items_of(stage)
    if found is None:
        raise ValueError(
            f"stage {stage.name!r} was made of no function of ct.each, which is what the strategy "
            f"'items' computes; take another one"
        )
    return found


def work_sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Global and local size for so many rows; what is beyond them has nothing to do.

    >>> work_sizes((100, 3), is_cpu=True), work_sizes((100, 3), is_cpu=False)
    (((112,), (16,)), ((128,), (128,)))
    """
    group = CPU_GROUP if is_cpu else GPU_GROUP
    return (-(-extent[0] // group) * group,), (group,)


def summing_sizes(
    extent: tuple[int, ...], is_cpu: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Global and local size of kernels that sum, whose work-items compute several of so many rows.

    >>> summing_sizes((100, 3), is_cpu=True), summing_sizes((200, 3), is_cpu=False)
    (((64,), (1,)), ((256,), (128,)))
    """
    if is_cpu:
        return (min(extent[0], CPU_SUMS),), (1,)
    return (min(-(-extent[0] // GPU_GROUP), GPU_SUMS) * GPU_GROUP,), (GPU_GROUP,)
