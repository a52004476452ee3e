# SPDX-License-Identifier: MIT
"""What is measured of a machine, once, and the links between controllers that are made of it.

    device  -- down -->  host of its rank  -- ranks -->  host of another rank  -- up -->  device

Messages between devices go through the host, so that a few numbers make all links: the ways between
host and device, between two ranks of one node or of two, and the copies of one process.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from statistics import median

from controllers.links.link import Link, Links
from controllers.plan.overlap import DEVICE_BYTES_PER_S, LAUNCH_S

NodePair = tuple[str, str]      # in order; twice the same within a node
MOST_NODES = 8      # of which all pairs are measured


@dataclass(frozen=True)
class Spot:
    """Where a controller is: its rank, and the ways to its memory where that is its own."""

    rank: int
    up: Link | None = None
    down: Link | None = None


def composed(
    spots: Sequence[Spot],
    nodes: Sequence[str],
    copying: Sequence[Link],
    between_ranks: Mapping[NodePair, Link],
) -> Links:
    """The links of all controllers.

    nodes, copying: of each rank, its node and the copies within its memory.
    """
    usual = _typical([*between_ranks.values()] or copying)

    def link(one: Spot, other: Spot) -> Link:
        ways = [one.down] if one.down else []
        if one.rank != other.rank:
            pair = node_pair(nodes[one.rank], nodes[other.rank])
            ways.append(between_ranks.get(pair, usual))
        elif one.down is None or other.up is None:
            ways.append(_command(copying[one.rank]))
        ways += [other.up] if other.up else []
        found = ways[0]
        for way in ways[1:]:
            found = found.then(way)
        return found

    rows = tuple(
        tuple(_within(one, copying) if one is other else link(one, other) for other in spots)
        for one in spots
    )
    packing = tuple(_within(spot, copying).bytes_per_s for spot in spots)
    return Links(rows, packing)


def representatives(nodes: Sequence[str]) -> dict[NodePair, tuple[int, int]]:
    """Two ranks for each pair of nodes whose link is to be measured, `nodes` being those of ranks.

    Of many nodes just the first two, and each by itself.

    >>> representatives(["a", "a", "b"])
    {('a', 'a'): (0, 1), ('a', 'b'): (0, 2)}
    """
    ranks: dict[str, list[int]] = {}
    for rank, node in enumerate(nodes):
        ranks.setdefault(node, []).append(rank)
    found = {(node, node): (some[0], some[1]) for node, some in ranks.items() if len(some) > 1}
    first = [*ranks] if len(ranks) <= MOST_NODES else [*ranks][:2]
    for number, one in enumerate(first):
        for other in first[number + 1 :]:
            found[node_pair(one, other)] = ranks[one][0], ranks[other][0]
    return found


def node_pair(one: str, other: str) -> NodePair:
    """The key of two nodes, whichever comes first."""
    return min(one, other), max(one, other)


def _command(copying: Link) -> Link:
    """Copies within a process, as the commands of a device that they are."""
    return Link(max(copying.latency_s, LAUNCH_S), copying.bytes_per_s)


def _within(spot: Spot, copying: Sequence[Link]) -> Link:
    """Copies within a controller's memory; a device's are taken as fast as any device's."""
    return copying[spot.rank] if spot.up is None else Link(LAUNCH_S, DEVICE_BYTES_PER_S)


def _typical(links: Sequence[Link]) -> Link:
    latencies, rates = ([*some] for some in zip(*map(astuple, links)))
    return Link(median(latencies), median(rates))
