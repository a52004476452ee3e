# SPDX-License-Identifier: MIT
"""The arguments of a generated kernel, bound by their names as in a run."""
from __future__ import annotations

from collections.abc import Mapping

from controllers.kernel.stage_kernel import box_values, tile_values
from controllers.kgt import StageKernel
from controllers.kgt.parameter import bind
from hitmap.shape import Shape
from hitmap.strided import Strided


def bound(
    kernel: StageKernel, where: Mapping[str, Strided], old: Mapping[str, object],
    new: Mapping[str, object], over: Shape, computed: Shape | None = None,
) -> list[object]:  # fmt: skip
    """Those of a launch over a box, which lies at `where` in the fields.

    old, new: by field, the buffers that are read and written.
    """
    values: dict[str, object] = {**box_values(over, computed), **old}
    values |= {f"{field}_new": buffer for field, buffer in new.items()}
    for field, cells in where.items():
        values |= tile_values(field, cells)
    return bind(kernel.name, kernel.parameters, values, kernel.scalars)
