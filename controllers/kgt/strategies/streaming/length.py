# SPDX-License-Identifier: MIT
"""How many planes a work-group of "streaming" writes: many short groups, or few long ones.

A launch takes about as long as

    (length + planes lost) * (what the groups of a unit of the device cost, as one wave of them = 1)

Each group computes some planes more than it writes, which speaks for long groups.  A unit holds so
many groups at once, a wave, by its registers.  Groups that wait for memory take as long in a full
wave as in one that is nearly empty, and one group more begins a second wave: that speaks for a
length with which all groups are one wave, or for many waves.  Groups that ask for planes well
ahead are held up by each other instead, in steps of one for each of a unit's schedulers.

Measured on an NVIDIA H200 (driver 580.159.04, 22 November 2026; docs/performance.md): for the
stencils of the benchmark in float32, on its sizes, a half, a quarter and a sixteenth of them, the
length chosen has 0.97 or more of the speed of the best in two dimensions, 0.94 or more in three. A
run times those near it before its first step, and has 0.97 in three, too (`tuning.settling`,
`tools/measure_lengths.py`).
"""
from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from controllers.kgt.strategies.streaming.tile import WARP, WorkTile

LENGTHS = (
    6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 160, 192, 224, 256,
    320, 384,
)  # fmt: skip
UNITS = 128         # of a device of which nothing is known
SCHEDULERS = 4      # of a unit, each with a quarter of its registers
REGISTERS = 512     # of a lane of such a scheduler
OWN_REGISTERS = 48  # of an item, besides what it keeps; 16 more for addresses of wide cells
MOST_REGISTERS = 128    # that are counted: measured are 96 for 2d9c, 128 for 2d9s and 2d5a
ALONE = 0.6         # cost of a wave of one group for each scheduler, about
FURTHER = 0.75      # cost of a wave after the first one, while others still end
TAIL = 0.6          # of the last one, in waves
START = 4           # planes that a group of one warp takes to begin


@dataclass(frozen=True)
class Demand:
    """What decides how long groups of a kernel take.

    n_lost: planes that a group computes besides those that it writes.  registers: of an item.
    ahead: whether planes are asked for well before they are needed.
    """

    n_lost: int
    registers: int
    ahead: bool

    @classmethod
    def of(cls, n_lost: int, kept_words: int, itemsize: int, ahead: bool) -> Demand:
        """That of a kernel whose items keep so many words of four bytes, of cells so wide."""
        own = OWN_REGISTERS + 4 * (itemsize - 4)
        return cls(n_lost, min(MOST_REGISTERS, own + kept_words), ahead)


def best_length(tile: WorkTile, extent: tuple[int, ...], demand: Demand, units: int = 0) -> int:
    """The one of LENGTHS with which a launch over a box of `extent` promises to be fastest.

    units: of the device, 0 where that is not known.

    >>> warp = WorkTile(True, (1,), (1, 1), (1, 1), (1, 4), (1, 32), (0, 12), (1, 104))
    >>> demand = Demand.of(24, kept_words=96, itemsize=4, ahead=True)
    >>> [best_length(warp, (n, n), demand, 132) for n in (16384, 8192, 4096, 1024)]
    [192, 96, 64, 20]
    """
    n_tiles = prod(-(-extent[axis] // tile.useful[axis]) for axis in tile.axes)
    n_lost = demand.n_lost + (START if tile.n_items <= WARP else 0)

    def cost(length: int) -> float:
        per_unit = n_tiles * -(-extent[0] // length) / (units or UNITS)
        return (length + n_lost) * _waves(tile, demand, per_unit)

    return min(LENGTHS, key=cost)


def _waves(tile: WorkTile, demand: Demand, per_unit: float) -> float:
    """What so many groups per unit cost, in waves."""
    if tile.n_items > WARP:
        return 1.0 if per_unit <= 1 else FURTHER * per_unit + TAIL
    per_scheduler = ceil(per_unit / SCHEDULERS)
    if demand.ahead:
        return per_scheduler / (REGISTERS // MOST_REGISTERS) + TAIL
    resident = REGISTERS // demand.registers
    if per_scheduler <= resident:
        return ALONE + (1 - ALONE) * per_scheduler / resident
    return FURTHER * per_unit / (SCHEDULERS * resident) + TAIL
