# SPDX-License-Identifier: MIT
"""Structs: several values per cell, by the names of a NumPy structured dtype.

A field of structs is one field per component below the front end.  Arithmetic, comparisons and
np.where go component by component; a number or a plain value meets each of them.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, Union

import numpy as np
import numpy.typing as npt

from controllers.language.foldable import folded, of_numpy
from controllers.language.value import Components, Operand, Value, is_value
from hitmap.argument import short, wrong

_set = object.__setattr__   # structs refuse theirs
_TAKEN = ("at",)            # what `q.NAME` means otherwise


class Struct(Components):
    """The components of one cell while a step is traced: `q.rho`, by the names of the dtype."""

    __slots__ = ("parts",)
    __hash__: ClassVar[Any] = object.__hash__
    parts: dict[str, Operand]

    def __init__(self, parts: Mapping[str, Operand]) -> None:
        _set(self, "parts", dict(parts))

    def __array_ufunc__(
        self, ufunc: Callable[..., Any], method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        """Component by component."""
        if method != "__call__" or kwargs:
            raise TypeError(
                f"np.{ufunc.__name__} on structs takes operands alone, got "
                f"{', '.join(kwargs) or method}; leave it out"
            )
        return _componentwise(ufunc, inputs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """The same for functions that NumPy does not call universal, as np.where."""
        fold = of_numpy(func)
        if fold is not None:
            return of_parts(lambda part: folded(fold, func, (part, *args[1:]), kwargs), args[0])
        if kwargs:
            raise TypeError(
                f"np.{func.__name__} on structs takes operands alone, got {', '.join(kwargs)}; "
                f"leave it out"
            )
        return _componentwise(func, args)

    def __getitem__(self, offset: Any) -> Struct:
        """The neighbour at so many cells along each axis, in their order."""
        return of_parts(lambda value: value[offset], self)

    def at(self, axis: str, step: float) -> Struct:
        """The neighbour so many cells along an axis, by its name; see `Value.at`."""
        return of_parts(lambda value: value.at(axis, step), self)

    def __getattr__(self, name: str) -> Operand:
        if name.startswith("_"):    # what Python and NumPy look for
            raise AttributeError(name)
        if name not in self.parts:
            raise AttributeError(
                f"there is no component {name!r}; the struct has {', '.join(self.parts)}"
            )
        return self.parts[name]

    def __delattr__(self, name: str) -> None:
        setattr(self, name, None)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"a component is not assigned, got a new {name!r}; build a struct by "
            f"ct.struct(dtype, {name}=...)"
        )

    def __repr__(self) -> str:
        return f"<a struct per cell: {', '.join(self.parts)}>"


def struct(dtype: npt.DTypeLike, **components: Union[Value, float]) -> Struct:
    """A struct of `dtype`, all of whose components are given: `struct(Gas, rho=1, energy=p / 2)`.

    >>> struct([("rho", "f8"), ("energy", "f8")], rho=1, energy=2.5)
    <a struct per cell: rho, energy>
    """
    names = components_of(dtype)
    if sorted(names) != sorted(components):
        raise ValueError(
            f"a struct of this dtype has the components {', '.join(names)}, got "
            f"{', '.join(components) or 'none'}; give one for each"
        )
    for name, value in components.items():
        if not is_value(value):
            raise wrong(f"component {name!r}", "one value per cell, or a number,", value)
    return Struct({name: components[name] for name in names})


def of_parts(function: Callable[[Value], Operand], struct: Struct) -> Struct:
    """A function of each component that is a value; the others are numbers."""
    return Struct({
        name: function(value) if isinstance(value, Value) else value
        for name, value in struct.parts.items()
    })  # fmt: skip


def is_structured(dtype: npt.DTypeLike | None) -> bool:
    """Whether it is a dtype with components."""
    return dtype is not None and np.dtype(dtype).names is not None


def components_of(dtype: npt.DTypeLike) -> dict[str, np.dtype[Any]]:
    """The dtype of each component; ValueError where it has none, or they are no plain numbers.

    >>> components_of([("rho", "f4"), ("energy", "f4")])
    {'rho': dtype('float32'), 'energy': dtype('float32')}
    """
    whole = np.dtype(dtype)
    if whole.names is None or whole.fields is None:
        raise ValueError(
            f"a struct has a dtype with names, got {whole}; write [(\"rho\", \"f8\"), ...]"
        )
    found = {name: whole.fields[name][0] for name in whole.names}
    for name, part in found.items():
        if part.names is not None or part.shape:
            raise ValueError(
                f"component {name!r} is of {part}, but components are single numbers; give each a "
                f"name of its own"
            )
        if name in _TAKEN or name.startswith("_"):
            raise ValueError(f"a component cannot be called {name!r}; choose another name")
    return found


def _componentwise(function: Callable[..., Any], operands: Sequence[Any]) -> Struct:
    structs = [operand for operand in operands if isinstance(operand, Struct)]
    if not structs:
        raise TypeError(
            f"np.{function.__name__} gets structs in a list or an array, and a step knows them "
            f"one by one; write what happens to each"
        )
    names = [*structs[0].parts]
    for other in structs[1:]:
        if [*other.parts] != names:
            raise TypeError(
                f"structs of unlike components meet: {', '.join(names)} and "
                f"{', '.join(other.parts)}; build one by ct.struct(dtype, ...)"
            )
    for operand in operands:
        if not isinstance(operand, Struct) and not is_value(operand):
            raise TypeError(
                f"a struct meets structs, values and numbers, got {short(operand)}; build one by "
                f"ct.struct(dtype, ...)"
            )

    def of(operand: Any, name: str) -> Any:
        return operand.parts[name] if isinstance(operand, Struct) else operand

    with np.errstate(all="ignore"):     # numbers among themselves are NumPy's
        return Struct(
            {name: _number(function(*[of(one, name) for one in operands])) for name in names}
        )


def _number(value: Any) -> Any:
    """A plain number where NumPy computed one."""
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value
