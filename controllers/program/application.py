# SPDX-License-Identifier: MIT
"""What a sweep gives for a box of cells, in NumPy: the arithmetic of `reference`, by versions."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.program.dtypes import Dtypes, dtype_of
from controllers.program.expression import Read
from controllers.program.reference import values_of
from controllers.program.sweep import Sweep
from hitmap.shape import Shape

Cells: TypeAlias = "npt.NDArray[Any]"


def apply_sweep(
    sweep: Sweep, cells_of: Callable[[str, Shape], Cells], over: Shape, dtypes: Dtypes
) -> Mapping[str, Cells]:
    """The cells `over` of each field that `sweep` writes; they may be what `cells_of` gave.

    `cells_of(field, box)` gives the values of the version that is used; it is asked for cells in
    `Sweep.read` alone.  dtypes: of the fields.
    """
    if sweep.count > 1:
        return {sweep.stage.writes: _several_steps(sweep, cells_of, over, dtypes)}

    def read(node: Read) -> Cells:
        return cells_of(node.field, over.shift(node.offset))

    fields = {update.version.field: update.expression for update in sweep.updates}
    return {
        field: values_of(expression, read, dtype_of(dtypes, field))
        for field, expression in fields.items()
    }


def _several_steps(
    sweep: Sweep, cells_of: Callable[[str, Shape], Cells], over: Shape, dtypes: Dtypes
) -> Cells:
    (update,) = sweep.updates
    field = update.version.field
    use = sweep.use(field)
    assert use is not None, "several steps need a stage that reads what it writes"
    known = sweep.read(use, over)
    own = np.array(cells_of(field, known))

    def read(box: Shape, node: Read) -> Cells:
        seen = box.shift(node.offset)
        return cells_of(node.field, seen) if node.field != field else own[seen.slices(known.lower)]

    for n_left in reversed(range(sweep.count)):
        box = sweep.needed(over, n_left)
        values = values_of(update.expression, partial(read, box), dtype_of(dtypes, field))
        own[box.slices(known.lower)] = values.copy()
    return own[over.slices(known.lower)]
