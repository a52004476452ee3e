# SPDX-License-Identifier: MIT
"""One launch of a sweep that folds, over several boxes of a tile, without an engine."""
from unittest import mock

from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap import Shape
from hitmap.strided import Geometry


def halves(cells, n_boxes):
    """A box cut into some along its axes in turn, of unlike sizes."""
    boxes, axis = [cells], 0
    while len(boxes) < n_boxes:
        box = boxes.pop(0)
        axis = (axis + 1) % cells.n_axes
        middle = box.lower[axis] + (box.extent[axis] + 2) // 3
        parts = box.slab(axis, box.lower[axis], middle), box.slab(axis, middle, box.upper[axis])
        boxes += [part for part in parts if not part.empty]
    return boxes


def folded(executor, program, arrays, n_boxes=1, times=1, config=None):
    """What the one stage of `program` folds of NumPy arrays, and the fields that it updates.

    config: of kernels, for the boxes that it suits.
    """
    stage, n_axes = program.stages[0], program.n_axes
    domain = Shape.of_extent(next(iter(arrays.values())).shape)
    sweep = Sweep.over(stage, domain, (False,) * n_axes, boundaries=program.boundaries)
    geometry = Geometry.dense(domain)
    reads = {use.version.field: executor.tile(geometry, arrays[use.version.field].dtype)
             for use in sweep.uses}  # fmt: skip
    for field, tile in reads.items():
        executor.move_to(tile, domain, arrays[field])
    writes = {field: executor.tile(geometry, arrays[field].dtype) for field in sweep.writes}
    boxes, around = halves(sweep.cells, n_boxes), Surroundings.usual(program, domain)
    folding = executor.folding(program, sweep, boxes)
    usual = executor.choices.configuration

    def chosen(offer, launch=None):
        suits = config is not None and launch and config.suits(launch.fields.values())
        return config if suits else usual(offer, launch)

    with mock.patch.object(executor.choices, "configuration", chosen):
        launches = [
            executor.launch_command(program, sweep, reads, writes, box, around, folding, part)
            for part, box in enumerate(boxes)
        ]
    for _ in range(times):
        for launch in launches:
            launch(None)
        folding.command(None).wait()
    made = {field: executor.move_from(tile, sweep.cells) for field, tile in writes.items()}
    return folding.accumulators, made
