# SPDX-License-Identifier: MIT
"""The fields of steps: their names, dtypes and components, as users and as programs see them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from controllers.language.boundaries import Sides, sides_of
from controllers.language.dtype import dtype_name
from controllers.language.grid import Grid
from controllers.language.half_points import Half, Locations, halves_of
from controllers.language.step import Step
from controllers.language.struct import Struct, components_of, is_structured
from controllers.language.value import Value
from controllers.program.boundary import Boundary
from controllers.program.coordinates import Coordinates
from controllers.program.expression import Read

DEFAULT_DTYPE = "float64"
DTypes = Union[npt.DTypeLike, Mapping[str, npt.DTypeLike], None]


@dataclass(frozen=True)
class Kinds:
    """dtypes, halves: by the names that users give, what a field holds and where it lies.

    alike: of temporary fields, which they begin as.
    """

    dtypes: Mapping[str, np.dtype[Any]]
    halves: Mapping[str, Half]
    alike: Mapping[str, str]

    @classmethod
    def of(
        cls,
        steps: Sequence[Step],
        axes: Sequence[str],
        dtype: DTypes,
        location: Locations,
        fields: Mapping[str, npt.DTypeLike | None],
    ) -> Kinds:
        """Of all that the steps call fields, and all of `fields`, which have initial values."""
        names = dict.fromkeys(name for step in steps for name in step.signature.fields)
        alike: dict[str, str] = {}
        for step in steps:
            alike |= step.temporaries
        for name in fields:
            if name not in names:
                raise ValueError(unknown(name, [*names], "there is an initial value for"))
        each = by_field(dtype)
        for name in each or ():
            if name not in names:
                raise ValueError(unknown(name, [*names], "a dtype is given for"))
        for name in location if isinstance(location, Mapping) else ():
            if name not in names:
                raise ValueError(unknown(name, [*names], "a location is given for"))
        halves = halves_of(location, [*names], axes)
        found: dict[str, np.dtype[Any]] = {}
        for name in names:
            source = alike.get(name, name)
            given: Any = dtype if each is None else each.get(source)
            found[name] = _dtype(given if given is not None else fields.get(source), name)
            halves[name] = halves[source]
        return cls(found, halves, alike)._checked()

    def _checked(self) -> Kinds:
        plain = [name for name, dtype in self.dtypes.items() if dtype.names is None]
        whole = [*self.program_dtypes]
        for name, dtype in self.dtypes.items():
            for part in dtype.names or ():
                if f"{name}_{part}" in plain or whole.count(f"{name}_{part}") > 1:
                    raise ValueError(
                        f"the component {part!r} of {name!r} is stored as {name}_{part}, which is "
                        f"a field, too; rename one of them"
                    )
        return self

    @cached_property
    def program_dtypes(self) -> dict[str, str]:
        """The fields of the program and their dtypes."""
        found = {}
        for name, dtype in self.dtypes.items():
            for part, one in ({"": dtype} if dtype.names is None else components_of(dtype)).items():
                found[f"{name}_{part}" if part else name] = str(one)
        return found

    @cached_property
    def program_halves(self) -> dict[str, Half]:
        """The fields of the program and where they lie."""
        return {
            f"{name}_{part}" if part else name: self.halves[name]
            for name, dtype in self.dtypes.items()
            for part in dtype.names or ("",)
        }

    def values(self, places: Coordinates) -> dict[str, Value | Struct]:
        """What stands for each field while a step is traced."""
        here = (0,) * places.n_axes
        found: dict[str, Value | Struct] = {}
        for name, dtype in self.dtypes.items():
            half = self.halves[name]
            if dtype.names is None:
                found[name] = Value(Read(name, here), places, half=half)
            else:
                found[name] = Struct({
                    part: Value(Read(f"{name}_{part}", here), places, half=half)
                    for part in dtype.names
                })  # fmt: skip
        return found

    def sides(self, boundary: object, grid: Grid) -> dict[str, Sides]:
        """The rules of each field of the program, as far as they are said."""
        given = {name: half for name, half in self.halves.items() if name not in self.alike}
        said = sides_of(boundary, given, grid)
        found: dict[str, Sides] = {}
        for name, dtype in self.dtypes.items():
            sides = said[self.alike.get(name, name)]
            if dtype.names is None:
                found[name] = sides
            for part in dtype.names or ():
                found[f"{name}_{part}"] = tuple(
                    side and Boundary((side,)).component(part).axes[0] for side in sides
                )
        return found


def unknown(name: str, known: Sequence[str], what: str) -> str:
    """A message: there is no such field."""
    close = get_close_matches(name, known, 1)
    meant = f"; did you mean {close[0]!r}?" if close else "; make it a parameter of a step"
    there = f"the fields {', '.join(known)}" if known else "no field at all"
    return f"{what} {name!r}, but the steps have {there}{meant}"


def by_field(dtype: DTypes) -> Mapping[str, Any] | None:
    """The dtypes by the names of fields; None where there is one for all."""
    return dtype if isinstance(dtype, Mapping) else None


def _dtype(given: npt.DTypeLike | None, name: str) -> np.dtype[Any]:
    if given is None:
        return np.dtype(DEFAULT_DTYPE)
    if is_structured(given):
        for part in components_of(given).values():
            dtype_name(part)
        return np.dtype(given)
    return np.dtype(dtype_name(given))
