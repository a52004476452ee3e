# SPDX-License-Identifier: MIT
"""How many planes a work-group of "streaming" writes: many short groups, or few long ones.

A launch takes about as long as

    (length + planes lost) * (groups per unit of the device, rounded up + tail)

Each group computes some planes more than it writes, which speaks for long groups.  `tail`, in
groups, is what a unit loses as its last groups, no longer enough to fill it, come to their ends:
that speaks for short ones, and more so the smaller the box is.  On an NVIDIA H200 (2d4 in float32,
lengths of 96 to 640, 4096^2 to 16384^2 cells) this is within 6 % of what was measured.
`tools/measure_lengths.py` measures it, and fits the tails.
"""
from __future__ import annotations

from math import prod

from controllers.kgt.tile import WARP, Tile

LENGTHS = (
    8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384,
)  # fmt: skip
WARP_TAIL = 13.4    # of groups of one warp, of which a unit has many at a time
GROUP_TAIL = 0.6    # of larger ones, of which it has one or two
UNITS = 128         # of a device of which nothing is known


def best_length(
    tile: Tile,
    extent: tuple[int, ...],
    n_lost: int,
    units: int = 0,
    *,
    tails: tuple[float, float] = (WARP_TAIL, GROUP_TAIL),
) -> int:
    """The one of LENGTHS with which a launch over a box of `extent` promises to be fastest.

    n_lost: planes that a group computes besides those that it writes.  units: of the device, 0
    where that is not known.

    >>> from controllers.kgt.tile import Tile
    >>> warp = Tile(True, (1,), (1, 1), (1, 1), (1, 4), (1, 32), (0, 12), (1, 104))
    >>> [best_length(warp, (n, n), 24, 132) for n in (16384, 8192, 4096, 1024)]
    [192, 80, 40, 12]
    """
    n_tiles = prod(-(-extent[axis] // tile.useful[axis]) for axis in tile.axes)
    tail = tails[0] if tile.n_items <= WARP else tails[1]

    def seconds(length: int) -> float:
        n_groups = n_tiles * -(-extent[0] // length)
        return (length + n_lost) * (-(-n_groups // (units or UNITS)) + tail)

    return min(LENGTHS, key=seconds)
