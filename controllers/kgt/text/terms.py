# SPDX-License-Identifier: MIT
"""Weighted sums: which a kernel takes as data, since written out they would be built for long."""
from __future__ import annotations

from collections.abc import Mapping

from controllers.kgt.text.comment import weighted_sum
from controllers.kgt.text.emitter import used_fields
from controllers.language.weights import FIELD
from controllers.program.program import Stage

# A term takes the CPU's driver some 20 ms in "rows", 45 ms in "wavefront" (PoCL 3.0, AMD Zen 4).
MOST_TERMS = 256        # of a sum that is written out


def terms_of(stage: Stage) -> tuple[Mapping[tuple[int, ...], float], float] | None:
    """Weights by offset, and the factor, of a weighted sum over one field; None of others.

    It is what kernels_cl/generic_stencil.cl takes as data.
    """
    return weighted_sum(stage.expression) if used_fields(stage) == (FIELD,) else None


def loops_over_terms(stage: Stage) -> bool:
    """Whether a kernel for one step takes the terms as data."""
    terms = terms_of(stage)
    return terms is not None and len(terms[0]) > MOST_TERMS
