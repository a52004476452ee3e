# SPDX-License-Identifier: MIT
"""Which strategy computes a box of a stage on a device, and with which configuration.

    CPU     rows, its stores past the caches where the fields exceed them; boxes of short rows: cell
    GPU     marching, on aligned vectors where all rows start aligned; narrow boxes: cell
    others  cell

Kernels of several steps ("streaming") are chosen with the plan, which has to make room for them.

Only how fast a box is computed depends on the choice, not one bit of the result.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from controllers.kgt.generator import Configuration
from controllers.kgt.marching import MarchingConfiguration
from controllers.kgt.rows import RowsConfiguration
from controllers.kgt.streaming import StreamingConfiguration
from controllers.program import Program, Stage
from hitmap.strided import Strided

STRATEGIES = ("cell", "rows", "marching", "streaming")
KINDS = {"rows": "cpu", "marching": "gpu", "streaming": "gpu"}  # devices that each is for
NARROW = 64     # vectors in a row below which a GPU's work-groups of "marching" are half empty


@dataclass(frozen=True)
class Launch:
    """What is known of a launch: where its cells lie in each field.

    exceeds_cache: whether the tiles it works on do not fit the device's cache.
    """

    fields: Mapping[str, Strided]
    exceeds_cache: bool = False

    @property
    def extent(self) -> tuple[int, ...]:
        """The cells of the box per axis."""
        return next(iter(self.fields.values())).extent


def choose(
    program: Program, stage: Stage, kind: str, launch: Launch | None = None
) -> Configuration:
    """The configuration for `stage` on a device of this kind; without `launch` for a large box.

    >>> from controllers.stencil import Stencil
    >>> program = Stencil.of("s", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
    >>> choose(program, program.stages[0], "cpu")
    RowsConfiguration(lanes=16, rows=4, planes=1, band=16, depth=1, segment=16384, streaming=True)
    >>> choose(program, program.stages[0], "cpu", Launch({"u": Strided(0, (8, 1), (100, 7))}))
    """
    if kind == "cpu":
        exceeds = launch is None or launch.exceeds_cache
        rows = RowsConfiguration.default(program, stage, exceeds)
        if launch is None:
            return rows
        return None if launch.extent[-1] < 2 * rows.lanes else rows.within(launch.extent)
    if kind == "gpu":
        default = MarchingConfiguration.default(program, stage)
        marching = replace(default, reciprocals=True)       # a GPU has fast fma
        if launch is None:
            return marching
        if launch.extent[-1] < NARROW * marching.lanes:
            return None
        if not _aligned(launch, marching.lanes):
            marching = replace(marching, lanes=1, steps=4 if program.n_axes > 1 else 1)
        return marching.within(launch.extent)
    return None


def configuration_of(
    strategy: str, program: Program, stage: Stage, exceeds_cache: bool = True
) -> Configuration:
    """The default configuration of a strategy, for a large box."""
    if strategy not in STRATEGIES:
        raise ValueError(f"the strategy is one of {', '.join(STRATEGIES)}, got {strategy!r}")
    if strategy == "rows":
        return RowsConfiguration.default(program, stage, exceeds_cache)
    if strategy == "streaming":
        return StreamingConfiguration.default(program, stage)
    return choose(program, stage, KINDS.get(strategy, ""))


def _aligned(launch: Launch, lanes: int) -> bool:
    firsts = {cells.first % lanes for cells in launch.fields.values()}
    pitches = (pitch for cells in launch.fields.values() for pitch in cells.pitches[:-1])
    return len(firsts) == 1 and all(pitch % lanes == 0 for pitch in pitches)
