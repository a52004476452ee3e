# SPDX-License-Identifier: MIT
"""What a function of items asks for: rows, whole arrays, numbers, the number of the item."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from controllers.language.dtype import dtype_name
from controllers.program.expression import Index
from controllers.program.items import ItemUse
from controllers.program.items import Near as Near
from hitmap.argument import number


class Row:
    """Annotates a parameter that is the item's row of an array, or what is returned."""


class Column:
    """Annotates a parameter that is the item's column of an array, a line along its rows."""


class All:
    """Annotates a parameter that is a whole array, on every device."""


_WORDS: Mapping[Any, ItemUse] = {Row: "row", Column: "column", All: "all"}


@dataclass(frozen=True)
class Parameters:
    """What a function asks for.

    uses: by positional parameter, as what it is given.  numbers: keyword-only ones, with their
    defaults.  places: those that are the number of the item.  dtype: of the one result, "" where it
    is that of its values.
    """

    uses: Mapping[str, ItemUse]
    numbers: Mapping[str, float | None]
    places: tuple[str, ...]
    dtype: str

    @classmethod
    def of(cls, function: Callable[..., Any], what: str) -> Parameters:
        """TypeError for parameters that no function of items has."""
        uses: dict[str, ItemUse] = {}
        numbers: dict[str, float | None] = {}
        places: list[str] = []
        signature = inspect.signature(function, eval_str=True)
        for name, one in signature.parameters.items():
            if one.kind is one.KEYWORD_ONLY and one.annotation is Index:
                places.append(name)
            elif one.kind is one.KEYWORD_ONLY:
                default = one.default
                numbers[name] = None if default is one.empty else number(default, name)
            elif one.kind is one.POSITIONAL_OR_KEYWORD and isinstance(one.annotation, Near):
                uses[name] = one.annotation
            elif one.kind is one.POSITIONAL_OR_KEYWORD and one.annotation in _WORDS:
                uses[name] = _WORDS[one.annotation]
            else:
                raise TypeError(
                    f"{what}: {name!r} is no array of items; write {name}: ct.Row, the item's row, "
                    f"ct.Column, ct.Near(-1, 1), rows around it, or ct.All, the whole array; "
                    f"numbers stand after a *"
                )
        if {*uses.values()} <= {"all"}:
            raise TypeError(
                f"{what} has no parameter of ct.Row, which says how many items there are; give one"
            )
        given = signature.return_annotation
        known = (signature.empty, Row, None, dict)
        return cls(uses, numbers, tuple(places), "" if given in known else dtype_name(given))
