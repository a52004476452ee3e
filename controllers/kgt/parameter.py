# SPDX-License-Identifier: MIT
"""The parameters of a kernel: names, types and roles.

The role of a tile is declared, or read from `const`: a pointer to const is `in`, another one
`inout`, since what a kernel does not write it keeps.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hitmap.argument import number, short

Role = Literal["in", "out", "inout", "local", "scalar"]
TILE_ROLES: tuple[Role, ...] = ("in", "out", "inout")
# What users call them: by these words, or as we do.
ROLE_WORDS: dict[str, Role] = {"reading": "in", "writing": "out", "updating": "inout"}

SCALAR_TYPES = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16",
    "int": "int32", "uint": "uint32", "long": "int64", "ulong": "uint64",
    "float": "float32", "double": "float64",
}  # fmt: skip
_LONG_NAMES = {
    "unsigned char": "uchar", "unsigned short": "ushort", "unsigned": "uint",
    "unsigned int": "uint", "unsigned long": "ulong",
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, as OpenCL C declares it: `type_name` without qualifiers."""

    name: str
    type_name: str
    role: Role

    def typed(self, value: float) -> np.generic:
        """`value` in the type of this scalar; ValueError where that would change it.

        >>> Parameter("n", "uchar", "scalar").typed(255).dtype.name
        'uint8'
        """
        name = _LONG_NAMES.get(self.type_name, self.type_name)
        if name not in SCALAR_TYPES:
            raise ValueError(
                f"the scalar {self.name!r} is a {self.type_name}; use one of "
                f"{', '.join(SCALAR_TYPES)}"
            )
        dtype = np.dtype(SCALAR_TYPES[name])
        what = f"the scalar {self.name!r}"
        if not isinstance(value, (bool, np.bool_)):
            value = number(value, what)
        if dtype.kind != "f":
            info = np.iinfo(dtype)
            if not math.isfinite(value) or value != int(value) or not info.min <= value <= info.max:
                raise ValueError(
                    f"{what} is a {name}, got {short(value)}; give a number that it can hold"
                )
            value = int(value)
        result: np.generic = dtype.type(value)
        return result


def cell_dtype(pointer: str) -> np.dtype[np.generic] | None:
    """What a pointer's cells are in NumPy; None for vectors, structures and the like.

    >>> cell_dtype("unsigned int*"), cell_dtype("float4*")
    (dtype('uint32'), None)
    """
    name = pointer.replace("*", "").strip()
    name = SCALAR_TYPES.get(_LONG_NAMES.get(name, name), "")
    return np.dtype(name) if name else None


def word_of(role: Role) -> str:
    """What users call a role.

    >>> word_of("inout")
    'updating'
    """
    return next((word for word, named in ROLE_WORDS.items() if named == role), role)


def with_roles(
    parameters: Iterable[Parameter], roles: Mapping[str, Role], kernel: str
) -> tuple[Parameter, ...]:
    """The parameters with the roles that were declared; these may not be contrary to `const`."""
    result = tuple(replace(p, role=roles.get(p.name, p.role)) for p in parameters)
    for before, after in zip(parameters, result, strict=True):
        is_tile = before.role in TILE_ROLES
        if before.role != after.role and (before.role == "in" or not is_tile):
            raise ValueError(
                f"kernel {kernel!r}: {after.name!r} is declared {word_of(after.role)!r}, but its "
                f"parameter is {'a pointer to const' if is_tile else 'no tile'}"
            )
        if after.role == "in" and before.role != "in":
            raise ValueError(
                f"kernel {kernel!r}: {after.name!r} is declared 'reading', but its parameter is no "
                f"pointer to const; write `__global const {after.type_name}`"
            )
    missing = [name for name in roles if name not in {p.name for p in result}]
    if missing:
        raise ValueError(
            f"kernel {kernel!r} has no parameter {missing[0]!r}; it has "
            f"{', '.join(p.name for p in result)}"
        )
    return result


def bind(
    kernel: str,
    parameters: Sequence[Parameter],
    values: Mapping[str, object],
    scalars: Mapping[str, float],
) -> list[object]:
    """The arguments in order, by name: `values` as they are, `scalars` in the parameter's type.

    >>> u, n = Parameter("u", "float*", "in"), Parameter("n", "int", "scalar")
    >>> bind("k", [n, u], {"u": "a buffer"}, {"n": 3}) == [np.int32(3), "a buffer"]
    True
    """
    arguments: list[object] = []
    for parameter in parameters:
        if parameter.name in values:
            arguments.append(values[parameter.name])
        elif parameter.name in scalars:
            arguments.append(parameter.typed(scalars[parameter.name]))
        else:
            raise ValueError(
                f"kernel {kernel!r}: the parameter {parameter.name!r} has no value; known are "
                f"{', '.join([*values, *scalars])}; give others as scalars={{name: value}}"
            )
    return arguments
