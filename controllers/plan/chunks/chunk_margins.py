# SPDX-License-Identifier: MIT
"""Where chunks cannot be skewed, so that each comes with margins of its neighbours' rows."""
# docs/decisions/0065-skewed-chunks.md
from __future__ import annotations

from controllers.program.extension import scalars_of
from controllers.program.program import Program
from hitmap.layout import Layout


def why_overlapped(program: Program, layout: Layout) -> str:
    """Why chunks of these places cannot be skewed; "" where they can."""
    is_half = any(field.half for field in program.fields)   # cells that another one lacks are read
    for field in program.fields:
        name, boundary = field.name, field.boundary
        is_renamed = name in (*program.renames, *program.renames.values())
        if boundary.extent:
            return f"field {name!r} has an extent of its own"
        is_near = is_half or any(map(any, program.offsets(name)))
        if not boundary.extends or boundary.is_steady or not is_near:
            continue
        if name not in program.written and not is_renamed:
            return f"rules make cells outside of field {name!r}, which no step computes"
        is_timed = bool(scalars_of(boundary, name, program.n_axes))
        if is_timed and (is_renamed or _reads_what_is_left(program, name)):
            return f"cells outside of field {name!r}, which two steps read, are others in each"
    domain = layout.domain
    for box in layout.owned:
        if (*box.lower[1:], *box.upper[1:]) != (*domain.lower[1:], *domain.upper[1:]):
            return "places do not own whole rows"
    return ""


def _reads_what_is_left(program: Program, field: str) -> bool:
    """Whether a step reads a field as the next one finds it."""
    last = max(n for n, stage in enumerate(program.stages) if field in stage.updates)
    return any(field in stage.fields_read for stage in program.stages[last + 1 :])
