# SPDX-License-Identifier: MIT
"""The space of a user's kernel: names in its text and its declaration, with the values to try.

    Kernel.of("tiled", text, space={"EDGE": (8, 16)}, work_group=("EDGE", "EDGE"))

is a kernel of two variants, of which the first is the default: in its text EDGE is defined as 8
and work-groups have 8 x 8 items, in that of the other one 16.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from controllers.kgt.text.fixed import fixed_source
from controllers.language.source import KernelSource
from controllers.program.identifier import check_identifier
from hitmap.argument import short, wholes, wrong

MOST_COMBINATIONS = 1024
_TAKEN = {"AXES", "VALUE", "ONCE"}


def combinations(
    what: str, source: KernelSource, given: Mapping[str, object], space: object
) -> Iterator[tuple[tuple[tuple[str, int], ...], dict[str, object]]]:
    """The values of all names, and with them the declaration `given`, for each combination.

    The last name changes fastest.  ValueError or TypeError where `space` is none.

    >>> source, form = KernelSource("NEW(u) = N;"), {"work_group": ("N", 4)}
    >>> [*combinations("k", source, form, {"N": (1, 2)})][1]
    ((('N', 2),), {'work_group': (2, 4)})
    """
    values = _values(what, space)
    sizes = {key: value for key, value in given.items() if key != "like"}
    declared = {*_names(sizes)}
    for name in values:
        if name not in declared and not re.search(rf"\b{name}\b", source.code):
            raise ValueError(
                f"{what}: the text names no {name!r} of the space; use it there, or leave it out"
            )
    for chosen in product(*values.values()):
        numbers = dict(zip(values, chosen))
        form = {key: _with(value, numbers) for key, value in sizes.items()}
        yield (*numbers.items(),), {**given, **form}


def _values(what: str, space: object) -> dict[str, tuple[int, ...]]:
    """The names of a space, each with its values."""
    if not isinstance(space, Mapping):
        raise wrong(f"{what}: space", "a dict", space, 'write {"EDGE": (8, 16)}')
    found: dict[str, tuple[int, ...]] = {}
    for name, values in space.items():
        check_identifier(name, "parameter")
        if name in _TAKEN or re.search(rf"#define {name}\b", fixed_source("accessors")):
            raise ValueError(
                f"{what}: the name {name!r} of the space is one of the accessors; choose another"
            )
        found[name] = wholes(values, f"{what}: the values of {name!r}")
        if not found[name]:
            raise ValueError(f"{what}: {name!r} has no values; write at least the usual one")
    n_all = prod(map(len, found.values()))
    if n_all > MOST_COMBINATIONS:
        raise ValueError(
            f"{what}: the space has {n_all} combinations, at most {MOST_COMBINATIONS} are "
            f"possible; leave out values"
        )
    return found


def _names(value: object) -> Iterator[str]:
    """The names in a part of a declaration."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _names(each)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _names(each)


def _with(value: object, numbers: Mapping[str, int]) -> object:
    """A part of a declaration, with the values of its names."""
    if isinstance(value, str):
        if value not in numbers:
            raise ValueError(
                f"{short(value)} is no name of the space, which has {', '.join(numbers)}; "
                f"write one of them, or a number"
            )
        return numbers[value]
    if isinstance(value, Mapping):
        return {name: _with(each, numbers) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_with(each, numbers) for each in value)
    return value
