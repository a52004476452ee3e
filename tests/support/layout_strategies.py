# SPDX-License-Identifier: MIT
"""Layouts of every kind, drawn at random."""
from __future__ import annotations

import random

from hitmap import Layout, Shape

KINDS = ("bands", "blocks", "weighted", "weighted-blocks", "tiled", "slices")


def random_domain(rng: random.Random) -> Shape:
    """1 to 4 axes, a few hundred cells, not at the origin; now and then without cells."""
    n_axes = rng.randint(1, 4)
    longest = {1: 60, 2: 20, 3: 9, 4: 5}[n_axes]
    extent = [rng.randint(0 if rng.random() < 0.05 else 1, longest) for _ in range(n_axes)]
    return Shape.of_extent(extent).shift(tuple(rng.randint(-4, 4) for _ in extent))


def random_layout(rng: random.Random, domain: Shape, n_places: int) -> Layout:
    """Any kind, often with places without cells; tiled ones have as many places as blocks."""
    kind = rng.choice(KINDS)
    align = [rng.choice([1, 1, 2, 5]) for _ in domain.extent]
    if kind == "bands":
        return Layout.bands(domain, n_places, align)
    if kind == "blocks":
        return Layout.blocks(domain, n_places, align=align)
    if kind == "tiled":
        return Layout.tiled(domain, [rng.randint(-(-n // 3) or 1, n or 1) for n in domain.extent])
    weights = [rng.choice([0.0, rng.random(), 10 * rng.random()]) for _ in range(n_places)]
    weights[rng.randrange(n_places)] = 1.0
    if kind == "weighted":
        return Layout.weighted(domain, weights, align)
    if kind == "weighted-blocks":
        return Layout.weighted_blocks(domain, weights, align)
    owned = list(Layout.blocks(domain, n_places).owned)     # in any order: no topology
    rng.shuffle(owned)
    return Layout(domain, tuple(owned))
