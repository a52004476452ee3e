# SPDX-License-Identifier: MIT
"""The strategy "marching", for GPUs: a work-item holds a few vectors in registers and marches on.

    items of a work-group                     one item, reading one cell around each of its own

    +----+----+----+- ... -+----+              u[-1]  vector                  kept from step to step
    |item|item|item|       |item|         left u[0]   vector  right     |
    |    |    |    |       |    |              u[+1]  vector            v     loaded by each step
    +----+----+----+- ... -+----+
    `lanes` cells wide, `steps` along the marching axis, `rows` high

Vectors are aligned in memory: those at the ends of a row may stick out of the box, and store only
the cells inside.  What an item reads lies in vectors that hold a cell which the box needs, so it
stays within the fields.  Where the last steps of an axis exceed the box, they start earlier: some
cells are written twice with the same value.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np

from controllers.kgt.kernel import StageKernel, WorkSizes
from controllers.kgt.launch import Launch
from controllers.kgt.strategies.config import Config
from controllers.kgt.strategies.marching.body import marching_body, marching_helpers
from controllers.kgt.strategies.marching.folds import walked, walks
from controllers.kgt.strategies.marching.handing import Handing
from controllers.kgt.strategies.marching.parameters import MarchingParameters
from controllers.kgt.strategies.marching.registers import Registers
from controllers.kgt.text import element, fast, frame
from controllers.kgt.text.analysis import in_vectors
from controllers.kgt.text.emitter import used_fields
from controllers.kgt.text.fold_text import needs_doubles, sums_doubles
from controllers.kgt.text.fold_values import is_folding
from controllers.kgt.text.lanes import SCALAR, WIDTHS, Lanes
from controllers.kgt.text.literals import OPENCL_TYPES
from controllers.program.expression import Coordinate, Given, Index, Outcome, Scalar
from controllers.program.program import Program, Stage
from hitmap.strided import Strided

FEW_FIELDS = 2  # that keep an index each: on an H200 one for both made a wave 1.08 times slower
NARROW = 64     # vectors in a row below which work-groups are half empty
ROWS = (1, 2, 4)    # of an item
MOST_UNROLLED = 16  # steps times rows without a loop, which are built for long
MAX_ITEMS = 1024    # of a work-group, on NVIDIA's GPUs
# The most cells of one field that a cell reads: more ask for more steps, then for fewer.
FEW_READS, MANY_READS = 6, 18
# Registers of 32 bits that hold cells of four along a row.  With many, and functions of them, few
# items fit a multiprocessor; with most, an item exceeds the 255 that NVIDIA's GPUs have for it
# (docs/decisions/0052-...).
MANY_WORDS, MOST_WORDS = 64, 128
FAR_REACH = 2       # planes that are handed on: from here on the registers hold one set of them
# Work-groups of a kernel that folds, at most, where they walk, and end with a fold of their items:
# of sums beside what is stored, of sums alone, of extremes alone (docs/performance.md).
BESIDE_GROUPS, SUMMING_GROUPS, FEW_GROUPS = 25344, 12672, 4224


@dataclass(frozen=True)
class MarchingConfig(MarchingParameters, Config):
    """The parameters of "marching", and what follows from them."""

    strategy: ClassVar[str] = "marching"
    kind: ClassVar[str] = "gpu"
    about: ClassVar[str] = "vectors in registers"
    several: ClassVar[bool] = True
    folds: ClassVar[bool] = True
    given: ClassVar[tuple[type[Given], ...]] = (Scalar, Index, Coordinate, Outcome)

    @classmethod
    def _takes_given(cls, stage: Stage) -> bool:
        """Element functions that get registers, since vectors stick out of the box."""
        return super()._takes_given(stage) and all(map(element.by_value, stage.elements))

    @classmethod
    def default(
        cls, program: Program, stage: Stage, exceeds_cache: bool = False, nvidia: bool = False
    ) -> MarchingConfig:
        """What is good for `stage` on an NVIDIA H200, for large boxes (docs/performance.md)."""
        return replace(cls._form(program, stage), reciprocals=True)     # a GPU has fast fma

    @classmethod
    def _form(cls, program: Program, stage: Stage) -> MarchingConfig:
        n_axes = program.n_axes
        n_reads = max(Counter(read.field for read in stage.reads).values(), default=0)
        fields = stage.stored or stage.fields_read
        wide = any(np.dtype(program.dtypes[field]).itemsize == 8 for field in fields)
        if n_axes == 1:
            return cls(4, 1, 0, (256, 1, 1))
        if n_axes == 2 and is_folding(stage) and not stage.stored:  # many loads under way
            return cls(2 if wide else 4, 4, 0, (64, 2, 1))
        if n_axes == 2:
            if not in_vectors(stage, program.dtypes):   # values of neighbours take registers, too
                hands = cls(1, 16, 0, (128, 1, 1), looped=True, hands=True)
                is_best = wide and Handing.of(program, stage, hands)
                return hands if is_best else cls(2 if wide else 4, 2, 0, (64, 2, 1))
            if n_reads <= FEW_READS:
                if sums_doubles(stage):
                    return cls(2, 4, 0, (128, 1, 1))
                folds = (4, 0, (64, 2, 1)) if is_folding(stage) else (2, 0, (64, 4, 1))
                return cls(2 if wide else 4, *folds)
            return cls(4, 4, 0, (32, 4, 1) if wide else (64, 2, 1))
        with_functions = cls._with_functions(program, stage, wide)
        if with_functions:
            return with_functions
        reach = max((abs(read.offset[n_axes - 3]) for read in stage.reads), default=0)
        is_far = reach > FAR_REACH or (reach == FAR_REACH and n_reads <= MANY_READS)
        if is_far and (reach > FAR_REACH or not wide):
            return cls(*(2, 8) if wide else (4, 6), n_axes - 3, (32, 8, 1), looped=True)
        if n_reads > MANY_READS:
            return cls(4, 2, n_axes - 3, (32, 4, 1))
        if stage.stored and needs_doubles(stage):   # unrolled, 1.3 and 1.5 times the sweep
            return cls(4, 16 if wide else 8, n_axes - 3, (32, 4, 1), looped=True)
        return cls(2 if wide else 4, 8 if wide else 4, n_axes - 3, (32, 8, 1))

    @classmethod
    def _with_functions(
        cls, program: Program, stage: Stage, wide: bool
    ) -> MarchingConfig | None:
        """Of volumes whose cells take many registers; None: as of sums and products."""
        axis, n_words = program.n_axes - 3, _n_words(program, stage)
        if in_vectors(stage, program.dtypes) or n_words <= (MOST_WORDS if wide else MANY_WORDS):
            return None
        if wide:
            return cls(1, 2, axis, (32, 4, 1))
        hands = cls(2, 16, axis, (32, 4, 1), looped=True, hands=True)
        return hands if Handing.of(program, stage, hands) else cls(2, 1, axis, (32, 4, 1))

    @classmethod
    def chosen(
        cls, program: Program, stage: Stage, launch: Launch | None
    ) -> MarchingConfig | None:
        """One step of boxes that are not narrow; on vectors where all rows start aligned."""
        config = cls.default(program, stage)
        if launch is None:
            return config
        if launch.n_steps > 1 or launch.extent[-1] < NARROW * config.lanes:
            return None
        if is_folding(stage) and not stage.fields_read:
            return None     # nothing is loaded
        if not launch.aligned(config.lanes):
            config = replace(config, lanes=1, steps=4 if program.n_axes > 1 else 1)
        one_index = launch.alike and len(used_fields(stage)) > FEW_FIELDS
        return replace(config, one_index=one_index).within(launch.extent)

    def space(self, n_axes: int) -> Iterator[MarchingConfig]:
        """What may be tried on a device instead; `fits` says which a box is large enough for."""
        axes = (0,) if n_axes < 3 else (n_axes - 3, n_axes - 2)
        steps = (1,) if n_axes == 1 else (1, 2, 4, 8, 16)
        groups = [(x, y, 1) for x in (32, 64, 128, 256) for y in (1, 2, 4, 8, 16)]
        rows = (1,) if n_axes < 3 else ROWS
        for lanes, step, axis, group, n_rows in product(WIDTHS, steps, axes, groups, rows):
            if step * n_rows > MOST_UNROLLED and not self.looped:
                continue
            if 64 <= prod(group) <= MAX_ITEMS and (n_axes > 1 or group[1] == 1):
                yield replace(self, lanes=lanes, steps=step, axis=axis, group=group, rows=n_rows)

    def within(self, extent: tuple[int, ...]) -> MarchingConfig:
        """The same with no more steps and rows than the box has cells."""
        steps, rows = self.steps, self.rows
        while len(extent) > 1 and steps > extent[self.axis]:
            steps //= 2
        while len(extent) > 2 and rows > extent[self.across(len(extent))]:
            rows //= 2
        return replace(self, steps=steps, rows=rows)

    def suits(self, fields: Iterable[Strided]) -> bool:
        """Whether the rows are aligned, as many as there are steps, and fields as it says."""
        where = [*fields]
        is_alike = len({(cells.first, cells.pitches) for cells in where}) == 1
        return (is_alike or not self.one_index) and super().suits(where)

    @property
    def multiple(self) -> int:
        """All rows start aligned."""
        return self.lanes

    def least(self, n_axes: int) -> tuple[int, ...]:
        """As many cells as an item has steps and rows."""
        return (*(self.along(axis, n_axes) for axis in range(n_axes - 1)), 1)

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        """Work-groups of a fixed size."""
        alone = SUMMING_GROUPS if needs_doubles(stage) else FEW_GROUPS
        most = BESIDE_GROUPS if stage.stored else alone
        return work_sizes(self, program.n_axes, most if walks(stage) else 0)

    def kernel(self, program: Program, stage: Stage) -> StageKernel:
        """The kernel of `stage` whose items march along an axis."""
        stage, n_axes = fast.stage_of(program, stage), program.n_axes
        if self.rows > 1 and n_axes < 3:
            raise ValueError(f"marching: {self.rows} rows take three axes, got {n_axes}")
        whole = in_vectors(stage, program.dtypes)
        how = f"vectors of {self.lanes} cells" if self.lanes > 1 else "one cell wide"
        if self.steps > 1:
            how += f", marching {self.steps} steps along axis {self.axis}"
        if self.rows > 1:
            how += f", in {self.rows} rows along axis {self.across(n_axes)}"
        helpers = element.functions(stage, program.dtypes, values=True)
        kernel = frame.kernel(
            program, stage, how, marching_body(program, stage, self),
            self.work_sizes(program, stage),
            helpers=[*helpers, *marching_helpers(program, stage, self)],
            lanes=Lanes(self.lanes) if whole else SCALAR,
            group=(*self.group[: min(3, n_axes)], 1, 1)[:3], folds_by_group=True,
            alike=self.one_index,
        )  # fmt: skip
        return replace(kernel, hint=element.hint(stage))


def _n_words(program: Program, stage: Stage) -> int:
    """Registers of 32 bits for the cells that an item of four along a row holds."""
    types = {field: OPENCL_TYPES[program.dtypes[field]] for field in stage.fields_read}
    return Registers.of(stage, 4, program.n_axes - 3, types).n_words


def work_sizes(config: MarchingConfig, n_axes: int, most_groups: int = 0) -> WorkSizes:
    """Items for all cells, one vector more per row than it holds, in whole work-groups.

    most_groups: no more than that of these, as far as they walk; 0: they do not.

    >>> work_sizes(MarchingConfig(), 2)((100, 1000), False)
    ((256, 52), (32, 4))
    >>> work_sizes(MarchingConfig(), 2, most_groups=4096)((8192, 8192), False)
    ((2080, 244), (32, 4))
    """

    def sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        items = list(extent)
        items[-1] = (extent[-1] - 1) // config.lanes + 1 + (config.lanes > 1)
        for axis in range(n_axes - 1):
            items[axis] = -(-items[axis] // config.along(axis, n_axes))
        items = [prod(items[:-2]), *items[-2:]] if n_axes > 2 else items
        groups = [-(-count // size) for count, size in zip(items[::-1], config.group)]
        if most_groups:
            at = walked(n_axes)
            most = max(1, most_groups // prod(groups[:at]))
            tiles = -(-groups[at] // most)      # of a group: as many for each
            groups[at] = -(-groups[at] // tiles)
        return (
            tuple(count * size for count, size in zip(groups, config.group)),
            config.group[: len(items)],
        )

    return sizes
