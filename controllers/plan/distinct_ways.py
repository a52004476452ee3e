# SPDX-License-Identifier: MIT
"""The ways to exchange that are not the same operations for a plan."""
from __future__ import annotations

from collections.abc import Hashable

from controllers.plan.exchange import contiguous
from controllers.plan.plan import Plan
from controllers.plan.way import ExchangeWay


def distinct_ways(plan: Plan) -> list[ExchangeWay]:
    """Those that differ at any place of any rank, that of the plan first; the same on all ranks.

    Of several that do the same the first one counts.  Only one where nothing is exchanged between
    controllers, or where stages are repeated: their parts have plans of their own.
    """
    found: dict[Hashable, ExchangeWay] = {}
    for way in plan.way.others if not plan.parts else [plan.way]:
        found.setdefault(_operations(plan.by_way(way)), way)
    return [*found.values()]


def _operations(plan: Plan) -> Hashable:
    """What a way decides: boxes of launches, messages, and which are packed by kernels."""
    places = range(len(plan.locations))
    boxes = tuple(plan.boxes(sweep, place) for sweep in plan.sweeps for place in places)
    packed = tuple(
        (bundle.number, place)
        for bundle in plan.bundles
        for place in (bundle.source, bundle.target)
        if not plan.locations[place].shares_host
        and not plan.locations[bundle.source].same_controller(plan.locations[bundle.target])
        and not plan.way.rectangles
        and not contiguous(plan, bundle, place)
    )
    return boxes, tuple(bundle.transfers for bundle in plan.bundles), packed
