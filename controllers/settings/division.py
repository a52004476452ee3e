# SPDX-License-Identifier: MIT
"""Divisions: how a field is cut into places, and how many of them a controller holds."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, TypedDict

import numpy as np

from hitmap.argument import instance, number, one_of, sequence, whole, wholes
from hitmap.cut import per_axis
from hitmap.layout import Layout
from hitmap.shape import Shape

AUTO: Literal["auto"] = "auto"
WEIGHTED = ("weighted", "weighted-blocks")
_BY_WEIGHTS = {None: "weighted", "bands": "weighted", "blocks": "weighted-blocks"}
PARTITIONS = ("bands", "blocks", *WEIGHTED, "cyclic")


class DivisionKeywords(TypedDict, total=False):
    """The fields of a `Division`, as keywords of calls."""

    partition: str | None
    weights: Sequence[float] | Literal["auto"] | None
    align: int | Sequence[int]
    block: int | Sequence[int] | None
    dims: Sequence[int] | None
    layout: Layout | None
    places_per_controller: int


@dataclass(frozen=True)
class Division:
    """How a field is cut into places: by a word, by counts per axis, or by a ready layout.

    partition: "bands" (along axis 0); "blocks" (on all axes); "weighted" or "weighted-blocks"
        (bands, or bands that are cut in blocks, in proportion to `weights`, one per place in
        order of rank); "cyclic" (blocks of the extent `block`, each of them a place, dealt to
        the controllers in turn).  By default weighted if weights are given, else bands, or what
        links make clearly better (docs/placement.md).
    weights: numbers in any unit, or "auto", for bands and blocks alike: such that all devices
        take equally long, as steps show (`Execution.balance`).  By default the same for all;
        "auto" where devices are unlike and nothing is said on how to cut.
    align: cuts are at multiples of this many cells, on all axes or one number per axis.
    dims: how many places there are along each axis, such as (4, 2, 1).
    layout: a ready `hitmap.Layout` of the field, one place after the other on each controller.
    places_per_controller: shares of the field that each device computes, unless cyclic; more
        where a tile would exceed the largest single allocation of a device.
    """

    partition: str | None = None
    weights: Sequence[float] | Literal["auto"] | None = None
    align: int | Sequence[int] = 1
    block: int | Sequence[int] | None = None
    dims: Sequence[int] | None = None
    layout: Layout | None = None
    places_per_controller: int = 1

    def __post_init__(self) -> None:
        if self.partition is not None:
            instance(self.partition, str, "partition", "write it in quotes")
            one_of(self.partition, PARTITIONS, "partition")
        if self.layout is not None:
            instance(self.layout, Layout, "layout", "make one with Layout.bands or the like")
        plain = {
            "weights": _weights(self.weights),
            "align": _one_or_several(self.align, "align"),
            "block": None if self.block is None else _one_or_several(self.block, "block"),
            "dims": None if self.dims is None else wholes(self.dims, "dims"),
            "places_per_controller": whole(self.places_per_controller, "places_per_controller"),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if self.places_per_controller < 1:
            raise ValueError(
                f"a controller holds at least one place, got {self.places_per_controller}"
            )
        self._check_one_way()
        self._check_partition()

    def _check_one_way(self) -> None:
        """A layout says all of it, dims all but the alignment."""
        usual = {one.name: one.default for one in fields(self)}
        for way, others in (("layout", "partition dims align"), ("dims", "partition")):
            names = [*others.split(), "weights", "block"]
            given = [name for name in names if getattr(self, name) != usual[name]]
            if getattr(self, way) is not None and given:
                got = ", ".join(f"{name} {getattr(self, name)!r}" for name in given)
                raise ValueError(
                    f"{way}: it says how the field is cut, got {got} too; leave one of them out"
                )

    def _check_partition(self) -> None:
        if (self.block is not None) != (self.kind == "cyclic"):
            raise ValueError(
                f"the extent of a block belongs to the partition 'cyclic', which needs it; got "
                f"partition {self.kind!r} with block {self.block}"
            )
        if (self.weights is not None) != (self.kind in WEIGHTED):
            given = self.weights
            weights = given if given is None or given == AUTO else list(given)
            raise ValueError(
                f"weights belong to the partitions {' and '.join(WEIGHTED)}, which need them; got "
                f"partition {self.kind!r} with weights {weights}"
            )
        steps = [self.align] if isinstance(self.align, int) else [1, *self.align]
        if self.kind == "cyclic" and max(steps) > 1:
            raise ValueError(
                f"align: cyclic cuts are at multiples of the block already, got align "
                f"{self.align}; give a block that is a multiple of it"
            )

    @property
    def kind(self) -> str:
        """The partition, also where another field says it."""
        if self.layout is not None or self.dims is not None:
            return "layout" if self.dims is None else "dims"
        if self.weights == AUTO:
            return _BY_WEIGHTS.get(self.partition, self.partition or "")
        return self.partition or ("bands" if self.weights is None else "weighted")

    @property
    def is_dealt(self) -> bool:
        """Whether places are dealt to the controllers in turn, as many as there are blocks."""
        return self.kind == "cyclic"

    @property
    def is_exact(self) -> bool:
        """Whether it says how many places there are."""
        return self.kind in ("cyclic", "dims", "layout")

    @property
    def is_open(self) -> bool:
        """Whether nothing is said on how to cut."""
        return self.partition is None and self.weights is None and not self.is_exact

    def shared(self, shares: Sequence[float]) -> Division:
        """With these shares of the controllers, each divided among its places in equal parts.

        >>> Division("blocks", "auto", places_per_controller=2).shared([1, 3])
        Division(partition='weighted-blocks', weights=(1, 1, 3, 3), align=1, ...
        """
        weights = tuple(one for one in shares for _ in range(self.places_per_controller))
        kind = _BY_WEIGHTS.get(self.partition, self.partition)
        return replace(self, partition=kind, weights=weights)

    @property
    def facts(self) -> dict[str, object]:
        """What all ranks must say alike; a layout in full."""
        found: dict[str, object] = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.layout is not None:
            found["layout"] = f"{self.layout.domain}\n{self.layout}"
        return found

    def finer(self, n: int) -> Division:
        """The same with `n` places in place of each.

        >>> Division(weights=[1, 3]).finer(2).weights
        (1, 1, 3, 3)
        """
        weights = self.weights
        if weights is not None and weights != AUTO:
            weights = tuple(weight for weight in weights for _ in range(n))
        return replace(
            self, weights=weights, places_per_controller=n * self.places_per_controller
        )

    def layout_of(self, domain: Shape, n_controllers: int) -> Layout:
        """The layout of `domain` on so many controllers; a cyclic one has a place per block.

        >>> print(Division(weights=[1, 3]).layout_of(Shape.of_extent((8, 3)), 2))
        place 0: [0:2, 0:3]
        place 1: [2:8, 0:3]
        """
        if self.is_dealt:
            assert self.block is not None, "a cyclic division has a block"
            per_axis("align", self.align, domain.n_axes)
            return Layout.tiled(domain, self.block)
        n_places = n_controllers * self.places_per_controller
        if self.is_exact:
            return self._exact(domain, n_places, n_controllers)
        if self.weights is None:
            make = Layout.bands if self.kind == "bands" else Layout.blocks
            return make(domain, n_places, align=self.align)
        weights = [1.0] * n_places if self.weights == AUTO else list(self.weights)
        if len(weights) != n_places:
            raise ValueError(
                f"{self.kind}: {n_places} places need as many weights, got {len(weights)}: "
                f"{weights}; give one per place, in order of rank"
            )
        weighted = Layout.weighted if self.kind == "weighted" else Layout.weighted_blocks
        return weighted(domain, weights, self.align)

    def _exact(self, domain: Shape, n_places: int, n_controllers: int) -> Layout:
        """The layout that is given, or that of `dims`; ValueError where its places do not fit."""
        dims = () if self.dims is None else per_axis("dims", self.dims, domain.n_axes)
        n_given = math.prod(dims) if self.layout is None else self.layout.n_places
        if n_given != n_places:
            what = f"dims {dims}, {n_given} places" if dims else f"a layout of {n_given} places"
            raise ValueError(
                f"{what}: there are {n_controllers} controllers with {self.places_per_controller} "
                f"of them each, {n_places} in all; give one of {n_places} places, or other "
                f"places_per_controller"
            )
        if self.layout is None:
            return Layout.grid(domain, dims, self.align)
        if self.layout.domain != domain:
            raise ValueError(
                f"the layout is of {self.layout.domain}, the field of {domain}; make one of the "
                f"extent of the field, boundary cells included"
            )
        return self.layout


def _one_or_several(value: object, what: str) -> int | tuple[int, ...]:
    if isinstance(value, (int, float, np.number)):
        return whole(value, what)
    return wholes(value, what)


def _weights(value: object) -> tuple[float, ...] | Literal["auto"] | None:
    if value is None:
        return None
    if isinstance(value, str) and value == AUTO:
        return AUTO
    return tuple(
        number(weight, "weights") for weight in sequence(value, "weights", "numbers, one per place")
    )
