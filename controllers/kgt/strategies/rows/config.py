# SPDX-License-Identifier: MIT
"""The strategy "rows", for CPUs: a work-item computes a band of rows, a few rows at a time.

    band of an item        u_new, one block of `rows` rows (here 4)
    +--------------+       |edge|  vector |  vector |  vector |edge|   row 0
    | block of     |       |edg|  vector |  vector |  vector | edge|   row 1
    | rows         |       |ed|  vector |  vector |  vector |  edge|   row 2
    +--------------+       |edge |  vector |  vector |  vector |edg|   row 3

The vectors of a row start where its memory is aligned, each row at its own place, so that pitch and
first cell do not matter and stores may bypass the caches; the loop over them has no test.  At each
end of a row, a whole vector is computed and a part of it stored: into the one line that the row
shares with others, so that no line is written both ways.  These lines are asked for in advance:
waiting for them costs a sixth of the speed where rows are short.  For the same reason a row is
computed from its beginning to its end.
In three and four dimensions a block may also hold several planes, which share what they read.
Of several fields that are written, the first one's memory says where vectors start.  The others'
vectors may lie anywhere; they bypass the caches where they happen to be aligned.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np

from controllers.kgt.kernel import StageKernel, WorkSizes
from controllers.kgt.launch import Launch
from controllers.kgt.strategies.config import Config
from controllers.kgt.strategies.rows.body import rows_body
from controllers.kgt.strategies.rows.parameters import RowsParameters, shares_rows
from controllers.kgt.strategies.rows.row_value import row_value
from controllers.kgt.text import element, fast, frame
from controllers.kgt.text.analysis import arithmetic_type, in_vectors, reads_many
from controllers.kgt.text.elsewhere import elsewhere
from controllers.kgt.text.fold_lanes import lanes_helpers
from controllers.kgt.text.fold_values import values_of
from controllers.kgt.text.lanes import PREFETCH, PREFETCH_NEAR, SCALAR, Lanes
from controllers.program.expression import Coordinate, Given, Index, Outcome, Scalar
from controllers.program.program import Program, Stage

# Cells read for one, times fields written: with more, the values of four rows exceed the registers,
# and those of two.
_FEW, _MANY = 4, 24
_LOW = 8    # cells of a band that is no lower, where cores lack work
_SEGMENTS = (4096, 16384, 65536)
_BYTES = {"int": 4, "long": 8, "ulong": 8, "float": 4, "double": 8}


@dataclass(frozen=True)
class RowsConfig(RowsParameters, Config):
    """The parameters of "rows", and what follows from them."""

    strategy: ClassVar[str] = "rows"
    kind: ClassVar[str] = "cpu"
    about: ClassVar[str] = "bands of rows"
    several: ClassVar[bool] = True
    in_place: ClassVar[bool] = True
    folds: ClassVar[bool] = True
    given: ClassVar[tuple[type[Given], ...]] = (Scalar, Index, Coordinate, Outcome)

    @classmethod
    def _takes_given(cls, stage: Stage) -> bool:
        """What element functions look at or recall is known of single cells."""
        looks = any(one.looks or one.recalls for one in stage.elements)
        return super()._takes_given(stage) and not looks

    @classmethod
    def _folds(cls, stage: Stage) -> bool:
        """Not numbers alone: a field says where vectors start."""
        return super()._folds(stage) and bool(stage.stored or stage.fields_read)

    @classmethod
    def default(
        cls, program: Program, stage: Stage, exceeds_cache: bool = False, nvidia: bool = False
    ) -> RowsConfig:
        """What is good for `stage` on a CPU (docs/performance.md); 64 bytes to a vector."""
        streaming = exceeds_cache and not stage.overwrites  # what was read is in the cache
        lanes = _lanes(program, stage)
        band, depth = ((1, 1), (16, 1), (64, 48))[min(program.n_axes, 3) - 1]
        if not stage.stored:    # folds alone: what an item has in the end takes some time
            return cls(lanes, 1, band=64 if program.n_axes > 1 else 1, depth=depth, ahead=12)
        if not shares_rows(stage):      # one at a time: less text, which is built sooner
            ahead = 8 if exceeds_cache else 0
            return cls(lanes, 1, band=band, depth=depth, ahead=ahead, streaming=streaming)
        ahead = 4 if exceeds_cache else 0
        if program.n_axes == 2:
            n_values = len(stage.reads) * len(stage.updates)
            rows = 4 if exceeds_cache and n_values <= _FEW else 2
            one_by_one = not (in_vectors(stage, program.dtypes) or stage.elements)
            if len(stage.updates) > 1 and (n_values > _MANY or one_by_one):
                rows = 1
            elif rows == 2:     # the next block's last row, as of four rows
                ahead = min(ahead, 2)
            return cls(lanes, rows, ahead=ahead, streaming=streaming)
        # of many fields the planes of a block share little of what they read and ask for more
        # streams than a core follows, and asking in advance costs more than waiting
        planes, ahead = (1, 0) if reads_many(stage) else (2 if stage.overwrites else 3, ahead)
        return cls(lanes, 1, planes, band=64, depth=48, streaming=streaming, ahead=ahead)

    @classmethod
    def chosen(cls, program: Program, stage: Stage, launch: Launch | None) -> RowsConfig | None:
        """One step of boxes whose rows are not very short, where "cell" is about as fast.

        Nor of bytes cell by cell: there "cell" becomes vectors of more than 16 cells.
        """
        narrow = all(program.dtypes[field] == "uint8" for field in stage.updates)
        if narrow and not in_vectors(stage, program.dtypes):
            return None
        if launch is None:
            return cls.default(program, stage, exceeds_cache=True)
        config = cls.default(program, stage, launch.exceeds_cache)
        config = replace(config, shares=max(1, launch.units))
        if launch.n_steps > 1 or launch.extent[-1] < 2 * config.lanes:
            return None
        return config.within(launch.extent)

    def space(self, n_axes: int) -> Iterator[RowsConfig]:
        """What may be tried instead, with the same stores; the width of vectors is halved once."""
        rows = ((1,), (1, 2, 4, 8), (1, 2, 4))[min(n_axes, 3) - 1]
        planes = (1, 2, 3) if n_axes > 2 else (1,)
        bands = ((1,), (8, 16, 32, 64, 128), (16, 64, 256))[min(n_axes, 3) - 1]
        depths = (12, 48, 192) if n_axes > 2 else (1,)
        lanes = (self.lanes, self.lanes // 2)
        aheads = sorted({0, 4, 8, self.ahead}) if self.ahead else (0,)
        for values in product(lanes, rows, planes, bands, depths, _SEGMENTS, aheads):
            config = RowsConfig(*values, self.streaming, self.shares)
            if config.rows * config.planes <= 8:
                yield config

    def within(self, extent: tuple[int, ...]) -> RowsConfig:
        """The same with blocks no higher than the box; all segments that hold a row are alike."""
        rows, planes = (extent[-2:-1] or (1,))[0], (extent[-3:-2] or (1,))[0]
        whole = max(extent[-1], RowsConfig.segment)
        return replace(
            self,
            segment=self.segment if self.segment < extent[-1] else whole,
            rows=self.rows if self.rows <= rows else 1,
            planes=self.planes if self.planes <= planes else 1,
        )

    def least(self, n_axes: int) -> tuple[int, ...]:
        """A block, and a vector of each of its rows."""
        return (1, self.planes, self.rows, self.lanes)[-n_axes:]

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        """One item per segment of a band."""
        return work_sizes(self, program.n_axes)

    def kernel(self, program: Program, stage: Stage) -> StageKernel:
        """The kernel of `stage` that computes bands of rows."""
        stage, lanes = fast.stage_of(program, stage), Lanes(self.lanes, clang=True)
        whole, how = in_vectors(stage, program.dtypes), f"vectors of {self.lanes} cells"
        if self.rows * self.planes > 1:
            planes = f" of {self.planes} planes" if self.planes > 1 else ""
            how = f"{self.rows} rows{planes} at a time, in {how}"
        helpers = element.functions(stage, program.dtypes, values=True)
        helpers += row_value(program, stage, lanes, self.streaming)
        helpers += [*PREFETCH, ""] if self.ahead else []
        helpers += [*PREFETCH_NEAR, ""] if self.ahead and not shares_rows(stage) else []
        helpers += lanes_helpers(stage, self.lanes) if values_of(stage) else []
        kernel = frame.kernel(
            program, stage, how, rows_body(program, stage, self),
            self.work_sizes(program, stage), helpers=helpers, lanes=lanes if whole else SCALAR,
            own_functions=not whole,
        )  # fmt: skip
        return replace(kernel, hint=element.hint(stage))


def _lanes(program: Program, stage: Stage) -> int:
    """The cells of a vector: 64 bytes of what is computed, or half as many cell by cell.

    A user's text mostly says few operations.
    """
    if in_vectors(stage, program.dtypes) or elsewhere(stage, program.dtypes):
        return 64 // _BYTES[arithmetic_type(stage, program.dtype_of(stage))]
    widest = max(np.dtype(program.dtypes[field]).itemsize for field in stage.updates)
    plain = stage.elements and len(stage.reads) * len(stage.updates) <= _MANY
    return min(16, (64 if plain else 32) // widest)


def work_sizes(config: RowsConfig, n_axes: int) -> WorkSizes:
    """One item per segment of a band; each is a work-group, so that cores share them out.

    PoCL's first thread takes half of what two share, in one go: as many items for each of them.

    >>> work_sizes(RowsConfig(), 2)((100, 20000), True)
    ((2, 7), (1, 1))
    >>> work_sizes(RowsConfig(band=64, depth=48, shares=2), 3)((62, 62, 126), True)
    ((1, 1, 2), (1, 1, 1))
    >>> work_sizes(RowsConfig(band=64, depth=48, shares=16), 3)((126, 126, 254), True)
    ((1, 2, 8), (1, 1, 1))
    """

    def sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        x, y, z = (*extent[:-4:-1], 1, 1)[:3]
        shared = extent[0] if n_axes == 4 else 1
        n_x = -(-x // config.segment)

        def idle(counts: tuple[int, ...]) -> float:     # 1: no core waits for another one
            items = max(1, n_x * prod(counts) * shared)
            return -(-items // config.shares) * config.shares / items

        bands = _counts(config, y, config.band), _counts(config, z, config.depth)
        n_y, n_z = min(product(*bands), key=idle)   # the first one, of the highest bands
        return (n_x, n_y, n_z * shared)[: min(3, n_axes)], (1,) * min(3, n_axes)

    return sizes


def _counts(config: RowsConfig, cells: int, band: int) -> range:
    """Into how many bands so many cells may be divided."""
    usual, low = -(-cells // band), min(config.shares, cells // _LOW)
    return range(usual, max(min(2 * usual, usual + config.shares), low + 1))
