# SPDX-License-Identifier: MIT
"""What a fill of a plan makes outside the domain: of which fields, in which tiles."""
from __future__ import annotations

from controllers.plan.operation import Operation, TileKey
from controllers.plan.outline import Outline
from controllers.program.extension import Fill


def fills_of(plan: Outline, operation: Operation) -> dict[TileKey, Fill]:
    """What `operation` makes in each tile."""
    found = {}
    for written in operation.writes:
        key = written.memory
        assert isinstance(key, TileKey), "cells outside are those of a tile"
        extension = plan.extension(key.field)
        assert extension is not None, "a field that goes on outside"
        dtype, geometry = plan.program.field(key.field).dtype, plan.lies(key)
        found[key] = Fill(extension, dtype, geometry, written.cells)
    return found
