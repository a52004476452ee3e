# SPDX-License-Identifier: MIT
"""2D heat on two controllers of one process, each with one core of the CPU; or on two ranks.

    python examples/heat_two_controllers.py                # one rank with two controllers
    mpiexec -n 2 python examples/heat_two_controllers.py   # two ranks with one each

The domain is divided over places, not over processes: both commands make the same layout and
send the same halos, and the result has the same bits as the NumPy reference.
"""
import numpy as np

import controllers

EXTENT, STEPS = (301, 257), 100
HEAT = controllers.Stencil.of("heat", [(-1, 1), (-1, 1)], [[0, 1, 0], [1, 4, 1], [0, 1, 0]], 8)


def hot_corner(tile: controllers.TileView) -> None:
    """Each place sets the cells that it owns, by their global indices."""
    rows, columns = tile.indices()
    tile.array[...] = (rows < 160) & (columns < 80)


def main() -> None:
    program = HEAT.program("float32")
    with controllers.Computation(program, EXTENT, devices="cpu/1,1") as heat:
        heat.load(hot_corner)
        heat.run(STEPS)
        result = heat.gather()
        report = heat.report()
        if heat.comm.rank == 0:
            print(heat.layout)
            print(heat.plan.patterns["u"])
            print(report.table())
    if result is not None:
        start = np.zeros(EXTENT, np.float32)
        start[:160, :80] = 1
        right = controllers.reference_run(program, start, STEPS, (False, False))
        assert np.array_equal(result, right), "the bits of the NumPy reference"
        print("equal to the reference, bit for bit")


if __name__ == "__main__":
    main()
