# SPDX-License-Identifier: MIT
"""Fields: named arrays over a domain."""
from __future__ import annotations

from dataclasses import dataclass

from controllers.program.boundary import KEPT, Boundary
from controllers.program.functions import DTYPES
from controllers.program.identifier import check_field_name


@dataclass(frozen=True)
class Field:
    """A named array over the domain; `dtype` is one of DTYPES, `boundary` what lies outside.

    half: per axis, whether it lies at half points, point i on the lower face of cell i; one more
        than there are cells, but on a ring.  By default it lies at the centres of cells.

    >>> Field("u", "float32").half, Field("vx", "float32", half=(False, True)).half
    ((), (False, True))
    """

    name: str
    dtype: str
    boundary: Boundary = KEPT
    half: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        check_field_name(self.name)
        if self.dtype not in DTYPES:
            raise ValueError(
                f"field {self.name!r}: the dtype is one of {', '.join(DTYPES)}, got {self.dtype!r}"
            )
        half = tuple(map(bool, self.half))
        n_axes = len(self.boundary.axes)
        if half and n_axes and len(half) != n_axes:
            raise ValueError(
                f"field {self.name!r}: half says True or False for each of the {n_axes} axes, got "
                f"{half}"
            )
        object.__setattr__(self, "half", half if any(half) else ())
        object.__setattr__(self, "boundary", self.boundary.placed(half))
