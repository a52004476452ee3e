# SPDX-License-Identifier: MIT
"""The strategy "generic": kernels_cl/generic_stencil.cl, which takes the terms of a sum as data.

It computes any weighted sum over one field.  Sums of very many terms are not written out: a
compiler takes too long for them.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from controllers.kgt.kernel import StageKernel, Tables, WorkSizes, stage_parameters
from controllers.kgt.launch import Launch
from controllers.kgt.parameter import Parameter
from controllers.kgt.strategies.cell.config import work_sizes
from controllers.kgt.strategies.config import Config
from controllers.kgt.text.emitter import OPENCL_TYPES, divides, has_exact_reciprocal
from controllers.kgt.text.fixed import accessors, fixed_source
from controllers.kgt.text.terms import loops_over_terms, terms_of
from controllers.language.weights import FIELD
from controllers.program.program import INTEGERS, Program, Stage


@dataclass(frozen=True)
class GenericConfig(Config):
    """It has no parameters."""

    strategy: ClassVar[str] = "generic"
    about: ClassVar[str] = "any weighted sum, as data"

    @classmethod
    def default(
        cls, program: Program, stage: Stage, exceeds_cache: bool = False, nvidia: bool = False
    ) -> GenericConfig:
        """The only one there is; ValueError where the stage is no weighted sum."""
        _weighted(stage)
        return cls()

    @classmethod
    def chosen(cls, program: Program, stage: Stage, launch: Launch | None) -> GenericConfig | None:
        """It is for sums that are too long to be written out."""
        one_step = launch is None or launch.n_steps == 1
        return cls() if one_step and loops_over_terms(stage) else None

    def origin(self, stage: Stage) -> str:
        """The file, and how much data it is given."""
        n_terms = len(_weighted(stage)[0])
        return f"kernels_cl/generic_stencil.cl, with {n_terms} terms as data"

    def name(self, stage: Stage) -> str:
        """As the file has it."""
        return "generic_stencil"

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        """One work-item per cell."""
        return work_sizes

    def kernel(self, program: Program, stage: Stage) -> StageKernel:
        """The kernel with its terms; it divides at the end, whatever the arithmetic is."""
        weights, factor = _weighted(stage)
        dtype = program.dtype_of(stage)
        cell = term = OPENCL_TYPES[dtype]
        kind, finish = np.dtype(dtype), "DIVIDES"
        if dtype in INTEGERS:
            term, kind, finish = "ulong", np.dtype("int64"), "TRUNCATES"
            factor = int(factor) % 2**64
        elif has_exact_reciprocal(factor, dtype):
            finish, factor = "MULTIPLIES", 1 / factor
        macros = {"VALUE": cell, "TERM": term, finish: ""}
        data = (
            Parameter("offsets", "long*", "in"),
            Parameter("weights", f"{term}*", "in"),
            Parameter("n_terms", "long", "scalar"),
            Parameter("factor", term, "scalar"),
        )
        return StageKernel(
            self.name(stage),
            accessors(program.n_axes, macros) + fixed_source("generic_stencil"),
            stage_parameters(
                ((FIELD, "in"), (FIELD, "out")), (FIELD,), {FIELD: cell}, program.n_axes,
                data=data, starts=True,
            ),
            work_sizes,
            divides=divides(stage, program.dtype_of(stage)),
            scalars={"n_terms": len(weights), "factor": factor},
            tables=_tables(weights, kind),
        )  # fmt: skip


def _weighted(stage: Stage) -> tuple[Mapping[tuple[int, ...], float], float]:
    """Weights by offset, and the factor."""
    found = terms_of(stage)
    if found is None:
        raise ValueError(
            f"stage {stage.name!r} is no weighted sum over the field {FIELD!r} divided by a "
            f"constant, which is all that the generic kernel computes; use kernel='specialised'"
        )
    return found


def _tables(weights: Mapping[tuple[int, ...], float], kind: np.dtype[Any]) -> Tables:
    """What the kernel reads besides the field."""
    offsets, values = np.array([*weights], np.int64), np.array([*weights.values()], kind)

    def tables(pitches: tuple[int, ...]) -> dict[str, npt.NDArray[Any]]:
        return {"offsets": offsets @ np.array(pitches, np.int64), "weights": values}

    return tables
