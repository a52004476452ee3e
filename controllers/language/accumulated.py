# SPDX-License-Identifier: MIT
"""Sums over all items, which functions of items return: `ct.accumulate(value)`.

They are folds: what kernels and ranks have summed is merged exactly, in any order.
"""
# docs/decisions/0068-sums-over-items-are-folds.md
from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from controllers.language.element_text import ElementText
from controllers.language.item_value import value_of
from controllers.program.item_node import ItemNode, number_of, shape_of
from controllers.program.items import ItemUse

MOST_SUMS = 64      # each of which a work-item holds


@dataclass(frozen=True)
class ItemText:
    """OpenCL C of an item, where it stands, and the arrays that it has for itself."""

    text: ElementText
    where: str
    private: tuple[tuple[str, str, int], ...] = ()


class Accumulated:
    """A value of which the sum over all items is wanted; see `accumulate`."""

    def __init__(self, value: Any) -> None:
        self.value = value


def accumulate(value: Any) -> Accumulated:
    """Returned by a function of items: the sum of a value over all items, instead of each.

    A call then gives that sum, the same on every rank: a float, or an array of float64 of the
    value's shape.  It is the exact sum, rounded once, on any devices and places; conditions are
    counted.  A function has at most 64 such elements.

    >>> import numpy as np
    >>> from controllers import Row, each
    >>> @each
    ... def moments(x: Row, mass: Row) -> Row:
    ...     return dict(total=accumulate(mass), centre=accumulate(mass * x))
    >>> moments(np.float32([[1, 2], [3, 4]]), np.float32([1, 3]))
    {'total': 4.0, 'centre': array([10., 14.])}
    """
    return Accumulated(value)


def sums_of(
    returned: Mapping[str, Any], dtype: str, text: ItemText | None, uses: Collection[ItemUse]
) -> dict[str, ItemNode]:
    """What is summed over all items, by name; ValueError where that is refused.

    dtype: of results, "" where the function does not say.  text: what devices compute instead.
    uses: of the arrays that it is given.
    """
    sums = {
        name: number_of(value_of(value.value).node)
        for name, value in returned.items() if isinstance(value, Accumulated)
    }  # fmt: skip
    count = sum(prod(shape_of(node.axes)) for node in sums.values())
    if count > MOST_SUMS:
        raise ValueError(
            f"{', '.join(sums)} are {count} sums over all items, and a function has {MOST_SUMS} at "
            f"most; return the value of each item, and sum them by ct.sum_by"
        )
    if dtype and len(sums) == len(returned):
        raise ValueError(
            f"sums over all items are float64, and -> {dtype} is said of what is returned; leave "
            f"it out"
        )
    if sums and len(sums) == len(returned) and {*uses} <= {"all", "column"}:
        raise ValueError(
            f"{', '.join(sums)}: sums over all items are computed where rows lie, and no array is "
            f"given row by row; give one as ct.Row, or return a value of each item, too"
        )
    if sums and text is not None and re.search(r"\breturn\b", text.text.text):
        raise ValueError(
            f"the OpenCL C ({text.where}) of sums over all items has a return, which would leave "
            f"out the items after it; write an if"
        )
    return sums
