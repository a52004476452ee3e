# SPDX-License-Identifier: MIT
"""The user's words for how a domain is cut and what its boundaries do."""
from __future__ import annotations

from collections.abc import Sequence

from hitmap.layout import Layout
from hitmap.shape import Shape

PARTITIONS = ("bands", "blocks", "weighted")
BOUNDARIES = ("fixed", "periodic")


def make_layout(
    domain: Shape, n_places: int, partition: str | None, weights: Sequence[float] | None
) -> Layout:
    """The layout that `partition` names; None is weighted bands if there are weights, else bands.

    >>> make_layout(Shape.of_extent((8, 3)), 2, None, [1, 3]).owned[0].extent
    (2, 3)
    """
    chosen = partition or ("bands" if weights is None else "weighted")
    if chosen not in PARTITIONS:
        raise ValueError(f"partition is one of {', '.join(PARTITIONS)}, got {chosen!r}")
    if (weights is not None) != (chosen == "weighted"):
        raise ValueError(
            f"weights belong to the partition 'weighted', got partition {chosen!r} "
            f"with weights {weights}"
        )
    if weights is None:
        make = Layout.bands if chosen == "bands" else Layout.blocks
        return make(domain, n_places)
    if len(weights) != n_places:
        raise ValueError(
            f"weighted: {n_places} places need as many weights, got {len(weights)}: "
            f"{list(weights)}; give one per place, in order of rank"
        )
    return Layout.weighted(domain, weights)


def periodic_axes(boundary: str | Sequence[str], n_axes: int) -> tuple[bool, ...]:
    """Which axes are periodic; `boundary` is one word for all axes or one per axis.

    >>> periodic_axes("fixed", 2), periodic_axes(["fixed", "periodic"], 2)
    ((False, False), (False, True))
    """
    words = [boundary] if isinstance(boundary, str) else list(boundary)
    for word in words:
        if word not in BOUNDARIES:
            raise ValueError(f"a boundary is one of {', '.join(BOUNDARIES)}, got {word!r}")
    if len(words) == 1:
        words *= n_axes
    if len(words) != n_axes:
        raise ValueError(
            f"{n_axes} axes need one boundary, or one each, got {len(words)}: {', '.join(words)}"
        )
    return tuple(word == "periodic" for word in words)
