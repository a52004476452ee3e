# SPDX-License-Identifier: MIT
"""Requests: a program, its field's extents and cells, and how it is to be divided and executed."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, TypeVar, Union

import numpy as np
import numpy.typing as npt

from controllers.language.dtype import dtype_name
from controllers.language.weights import Stencil
from controllers.program.program import Program
from controllers.settings.division import Division, DivisionKeywords
from controllers.settings.execution import Execution, ExecutionKeywords
from hitmap.argument import instance, sequence, sizes_of, wrong

Described = Union[Program, Stencil]
Sizes = Union[int, Sequence[int], npt.NDArray[Any]]
DEFAULT_DTYPE = "float64"
_Group = TypeVar("_Group", Division, Execution)


class Keywords(DivisionKeywords, ExecutionKeywords, total=False):
    """The fields of both groups, as keywords of calls."""


@dataclass(frozen=True)
class Request:
    """What is to be computed, and how: as the user says it on this rank.

    initial: the cells to begin with, if they were given in place of the sizes.
    """

    program: Program
    sizes: tuple[int, ...]
    boundary: str | tuple[str, ...]
    division: Division
    execution: Execution
    initial: npt.NDArray[Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        program: Described,
        sizes: Sizes,
        dtype: npt.DTypeLike | None = None,
        boundary: str | Sequence[str] = "fixed",
        division: Division | None = None,
        execution: Execution | None = None,
        keywords: Mapping[str, Any] | None = None,
    ) -> Request:
        """TypeError or ValueError where an argument is wrong by itself.

        An array with as many axes as the program is the initial field.  `keywords` are fields of
        the two groups, and change what these say.
        """
        if not isinstance(program, (Program, Stencil)):
            remedy = "write Stencil.of(...)"
            raise wrong("program", "a Program or a Stencil", program, remedy)
        initial = sizes if isinstance(sizes, np.ndarray) and sizes.ndim == program.n_axes else None
        return cls(
            _program(program, dtype, initial),
            _sizes(sizes) if initial is None else initial.shape,
            _words(boundary),
            *grouped(division, execution, keywords or {}),
            initial,
        )

    @property
    def facts(self) -> dict[str, object]:
        """What all ranks must say alike, but for the program."""
        return {
            "sizes": self.sizes, "boundary": self.boundary,
            "initial": None if self.initial is None else "an array",
            **self.division.facts, **self.execution.facts,
        }  # fmt: skip


def grouped(
    division: Division | None, execution: Execution | None, keywords: Mapping[str, Any]
) -> tuple[Division, Execution]:
    """The two groups, changed as the keywords say, each of which is a field of one of them."""
    known = [*DivisionKeywords.__annotations__, *ExecutionKeywords.__annotations__]
    for name in keywords:
        if name not in known:
            close = get_close_matches(name, known, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise TypeError(f"there is no keyword {name!r}{meant} (there are {', '.join(known)})")
    return (
        merged(Division, division, "division", keywords),
        merged(Execution, execution, "execution", keywords),
    )


def divided_anew(
    before: Division, given: Division | None, keywords: Mapping[str, Any]
) -> Division:
    """What is asked for in place of an earlier division, whose places per controller it keeps."""
    usual = Division(places_per_controller=before.places_per_controller)
    unknown = [name for name in keywords if name not in DivisionKeywords.__annotations__]
    if unknown:
        known = ", ".join(DivisionKeywords.__annotations__)
        raise TypeError(f"there is no keyword {unknown[0]!r}; a division has {known}")
    return merged(Division, usual if given is None else given, "division", keywords)


def merged(
    kind: type[_Group], given: _Group | None, what: str, keywords: Mapping[str, Any]
) -> _Group:
    """A group, `given` or the default one, changed by those of the keywords that are its fields."""
    group = kind() if given is None else instance(given, kind, what, f"write {kind.__name__}(...)")
    names = {one.name for one in fields(kind)}
    return replace(group, **{name: keywords[name] for name in keywords if name in names})


def _program(
    program: Described, dtype: npt.DTypeLike | None, initial: npt.NDArray[Any] | None
) -> Program:
    if isinstance(program, Stencil):
        if dtype is None:
            dtype = DEFAULT_DTYPE if initial is None else initial.dtype
        return program.program(dtype)
    if dtype is not None and {dtype_name(dtype)} != {*program.dtypes.values()}:
        raise ValueError(
            f"dtype: the fields of the program {program.name!r} are {program.dtype_text}, got "
            f"{dtype_name(dtype)}; leave it out, or make the program of this dtype"
        )
    return program


def _sizes(sizes: Sizes) -> tuple[int, ...]:
    if isinstance(sizes, np.ndarray) and sizes.ndim > 1:
        raise ValueError(
            f"sizes: an array has as many axes as the program, got one of {sizes.ndim}; give the "
            f"extents, or the initial field"
        )
    try:
        return sizes_of(sizes)
    except TypeError as error:
        nested = isinstance(sizes, (list, tuple)) and any(
            isinstance(row, (list, tuple)) for row in sizes
        )
        hint = "; an initial field is a NumPy array: write np.asarray(...)" if nested else ""
        raise TypeError(f"{error}{hint}") from None


def _words(boundary: str | Sequence[str]) -> str | tuple[str, ...]:
    if isinstance(boundary, str):
        return boundary
    words = sequence(boundary, "boundary", "words")
    return tuple(instance(word, str, "boundary", "write fixed or periodic") for word in words)
