# SPDX-License-Identifier: MIT
"""Traffic: what the places of a layout exchange in a step, and how long that takes over links.

Places are dealt to controllers in groups of as many, one group after another: a *position* is the
number of a group, an *order* says which controller has each position.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controllers.links.link import Links
from controllers.plan import Location
from controllers.plan.bundle import Bundle
from controllers.plan.outline import Outline
from controllers.program.program import Program
from hitmap.layout import Layout
from hitmap.shape import Shape

LINE_NBYTES = 64    # of memory that is moved to reach one byte of it


@dataclass(frozen=True)
class Traffic:
    """What travels between positions in a step.

    messages: how many, and their bytes together, by source and target.  packed: bytes that each
    position moves within its memory, to gather and to spread cells that are no run of it.
    """

    messages: Mapping[tuple[int, int], tuple[int, int]]
    packed: tuple[int, ...]

    @classmethod
    def of(
        cls, program: Program, layout: Layout, on_host: Sequence[bool], n_each: int = 1
    ) -> Traffic:
        """Of a program on a layout with `n_each` places per position.

        on_host: whether the tiles of each position lie in the host's memory.
        """
        where = [Location(n, shares_host=host) for n, host in enumerate(on_host)]
        locations = [where[place // n_each] for place in range(layout.n_places)]
        plan = Outline(program, layout, program.periodic, locations)
        counts: Counter[tuple[int, int]] = Counter()
        nbytes: Counter[tuple[int, int]] = Counter()
        packed = [0] * len(where)
        for bundle in plan.bundles:
            way = bundle.source // n_each, bundle.target // n_each
            if bundle.after < 0 or way[0] == way[1]:
                continue
            counts[way] += 1
            nbytes[way] += bundle.nbytes
            packed[way[0]] += _packed(plan, bundle, bundle.source, "border")
            packed[way[1]] += _packed(plan, bundle, bundle.target, "halo")
        return cls({way: (n, nbytes[way]) for way, n in counts.items()}, tuple(packed))

    @property
    def n_positions(self) -> int:
        return len(self.packed)

    def seconds(self, links: Links, order: Sequence[int] | None = None) -> float:
        """Of the slowest controller: all its messages, sent and received, one after another.

        order: the controller of each position; by default that of the same number.
        """
        order = range(self.n_positions) if order is None else order
        found = [
            nbytes / links.packing[controller] for nbytes, controller in zip(self.packed, order)
        ]
        for (source, target), (n_messages, nbytes) in self.messages.items():
            taken = links.between[order[source]][order[target]].seconds(nbytes, n_messages)
            found[source] += taken
            found[target] += taken
        return max(found)


def _packed(plan: Outline, bundle: Bundle, place: int, end: str) -> int:
    """Bytes that a place moves to pack a bundle, or to unpack it; 0 where that is one run."""
    found = 0
    for transfer in bundle.transfers:
        boxes = transfer.message.border if end == "border" else transfer.message.halo
        geometry = plan.geometry(transfer.field, place)
        alone = len(bundle.transfers) == len(boxes) == 1
        if not (alone and geometry.strided(boxes[0]).contiguous):
            found += transfer.nbytes + sum(_touched(box, transfer.itemsize) for box in boxes)
    return found


def _touched(box: Shape, itemsize: int) -> int:
    """Bytes of memory that are moved to reach a box, whose rows begin anywhere."""
    row = box.extent[-1]
    return box.n_cells // row * (-(-row * itemsize // LINE_NBYTES)) * LINE_NBYTES
