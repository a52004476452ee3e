# SPDX-License-Identifier: MIT
"""The kernels of an engine, as they are now."""
from __future__ import annotations

from controllers.engine.driver import Engine
from controllers.kernel.configuration import KernelUse


def configurations(engine: Engine, *, largest: bool = False) -> list[KernelUse]:
    """How the kernels of this rank's controllers are built and launched.

    With `largest` only on the box with most cells, of each stage and controller.
    """
    plan = engine.plan
    found: list[KernelUse] = []
    for executor in dict.fromkeys(engine.executors[place] for place in plan.places):
        here = [place for place in plan.places if engine.executors[place] is executor]
        for sweep in plan.sweeps_of(here):
            boxes = [box for place in here for box in plan.launched(sweep, place)]
            if largest:
                boxes = sorted(boxes, key=lambda placed: placed[0].n_cells)[-1:]
            found += executor.configurations(plan.program, sweep, boxes)
    return found
