# SPDX-License-Identifier: MIT
"""A program's stage becomes OpenCL C, by one of the strategies."""
from __future__ import annotations

from typing import TypeAlias, Union

from controllers.kgt import fast
from controllers.kgt.cell import cell_kernel
from controllers.kgt.emitter import check_vectors
from controllers.kgt.kernel import GeneratedKernel
from controllers.kgt.marching import MarchingConfiguration, marching_kernel
from controllers.kgt.rows import RowsConfiguration, rows_kernel
from controllers.kgt.streaming import StreamingConfiguration, streaming_kernel
from controllers.kgt.wavefront import WavefrontConfiguration, wavefront_kernel
from controllers.program.program import Program, Stage

# The parameters of a strategy; None: one cell per work-item, which has none.
Configuration: TypeAlias = Union[
    RowsConfiguration,
    MarchingConfiguration,
    WavefrontConfiguration,
    StreamingConfiguration,
    None,
]


def generate(
    program: Program, stage: Stage, configuration: Configuration = None
) -> GeneratedKernel:
    """The kernel of one stage of `program`; the same arguments give the same text."""
    if configuration is not None:
        check_vectors(stage, configuration.strategy)
    stage = fast.stage_of(program, stage)
    if isinstance(configuration, RowsConfiguration):
        return rows_kernel(program, stage, configuration)
    if isinstance(configuration, MarchingConfiguration):
        return marching_kernel(program, stage, configuration)
    if isinstance(configuration, WavefrontConfiguration):
        return wavefront_kernel(program, stage, configuration)
    if isinstance(configuration, StreamingConfiguration):
        return streaming_kernel(program, stage, configuration)
    return cell_kernel(program, stage)
