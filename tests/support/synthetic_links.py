# SPDX-License-Identifier: MIT
"""Synthetic machines: tables of links made for the purpose, and the best of all orders."""
from __future__ import annotations

from functools import cache
from itertools import permutations
from random import Random

import numpy as np
import numpy.typing as npt

from controllers.links.link import Link, Links
from controllers.links.traffic import Traffic


def any_links(random: Random, n: int) -> Links:
    """No two links alike: latencies of 1 to 100 us, 0.3 to 30 GB/s."""

    def link() -> Link:
        return Link(10 ** random.uniform(-6, -4), 10 ** random.uniform(8.5, 10.5))

    rows = tuple(tuple(link() for _ in range(n)) for _ in range(n))
    return Links(rows, tuple(10 ** random.uniform(10, 12) for _ in range(n)))


def nodes_of(n_nodes: int, n_each: int, random: Random | None = None) -> Links:
    """Devices of several nodes, in the order of nodes, or shuffled: near ones far apart."""
    order = [*range(n_nodes * n_each)]
    if random is not None:
        random.shuffle(order)
    near, far = Link(5e-6, 1e10), Link(5e-5, 1e9)
    rows = tuple(tuple(near if a // n_each == b // n_each else far for b in order) for a in order)
    return Links(rows, (1e11,) * len(order))


@cache
def _orders(n: int) -> npt.NDArray[np.int64]:
    return np.array([*permutations(range(n))])


def shortest(traffic: Traffic, links: Links) -> float:
    """The seconds of the best of all orders, which are tried one and all."""
    orders = _orders(traffic.n_positions)
    latency = np.array([[link.latency_s for link in row] for row in links.between])
    per_byte = np.array([[1 / link.bytes_per_s for link in row] for row in links.between])
    found = np.array(traffic.packed) / np.array(links.packing)[orders]
    for (source, target), (n_messages, nbytes) in traffic.messages.items():
        ends = orders[:, source], orders[:, target]
        taken = n_messages * latency[ends] + nbytes * per_byte[ends]
        found[:, source] += taken
        found[:, target] += taken
    return float(found.max(axis=1).min())
