# SPDX-License-Identifier: MIT
"""Initial values: what a user gives for the cells of a field, recognised and checked.

A number, an array, an array with named axes such as xarray's, the name of a .npy file, of a zarr
store or of a NetCDF file, or a function of coordinates.  The components of a field of structs,
which are fields `q_rho`, `q_my` ..., are given together: by a mapping, a structured array, a file
with a variable for each, or a function that returns a mapping.
"""
from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

import numpy as np
import numpy.typing as npt

from controllers.language.grid import Grid, Labelled
from controllers.program.coordinates import Coordinates
from hitmap.argument import number, short, wrong
from hitmap.shape import Shape

Function = Callable[..., Any]
Given = Union[float, npt.ArrayLike, Labelled, str, "os.PathLike[str]", Function, Mapping[str, Any]]
DATASETS = (".zarr", ".nc", ".nc4")     # files with variables by name, which xarray reads
_UNEVEN = 1e-6      # by how much of a spacing the coordinates of an array may be beside the grid's
_REMEDY = "give a number, an array, a function of coordinates, or a .npy, .zarr or .nc file"


@dataclass(frozen=True)
class Place:
    """Where the values belong: cells of `extent`, on axes that a grid names or nobody does.

    half: along which axes they belong to half points.
    """

    extent: tuple[int, ...]
    grid: Coordinates | None = None
    half: tuple[bool, ...] = ()

    @property
    def axes(self) -> Coordinates:
        """Those of the grid; else the usual ones, with cell i from i to i + 1."""
        return Grid.of(self.extent).places if self.grid is None else self.grid

    def coordinates(self, box: Shape) -> dict[str, npt.NDArray[np.float64]]:
        """Where the cells of `box` lie, an array per axis, which broadcast to all.

        >>> y, x = Place((4, 4)).coordinates(Shape((0, 2), (2, 4))).values()
        >>> (y + x).tolist()
        [[3.0, 4.0], [4.0, 5.0]]
        """
        ends = enumerate(zip(box.lower, box.upper))
        along = (self.along(axis, *between) for axis, between in ends)
        return dict(zip(self.axes.axes, np.ix_(*along)))

    def along(self, axis: int, first: int, end: int) -> npt.NDArray[np.float64]:
        """Where the cells first <= i < end lie along an axis."""
        return self.axes.along(axis, first, end, bool(self.half) and self.half[axis])


@dataclass(frozen=True, repr=False)
class Initial:
    """The values of some fields, which a user calls by one name.

    components: what the user calls each of the fields; "" for a field that is no component.
    """

    name: str
    components: Mapping[str, str]
    kind: Literal["number", "array", "function", "file", "parts"]
    value: Any = field(compare=False)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it sets."""
        return tuple(self.components.values())

    def __repr__(self) -> str:
        """What all ranks must say alike: of an array or a function, that it is one."""
        said = f" {self.value!r}" if self.kind in ("number", "file") else ""
        return f"<{self.name}: {self.kind}{said}>"

    def at(self, place: Place, box: Shape) -> Mapping[str, npt.ArrayLike]:
        """What the function gives for the cells of `box`, by field."""
        coordinates = place.coordinates(box)
        found = self.value(coordinates)
        if "" in self.components:
            return {self.components[""]: self._plain(found)}
        if not isinstance(found, Mapping):
            raise wrong(f"{self.name}: what its function gives", "a mapping of components", found)
        _check_components(self.name, found, self.components)
        return {self.components[part]: self._plain(found[part]) for part in found}

    def _plain(self, found: object) -> npt.ArrayLike:
        array = np.asarray(found)
        if array.dtype.kind not in "biuf":
            raise wrong(f"{self.name}: what its function gives", "an array of numbers", found)
        return array


def initials(
    given: Mapping[str, Given], fields: Sequence[str], place: Place
) -> tuple[Initial, ...]:
    """What is given, by the names of fields or of groups of components; checked.

    TypeError or ValueError, which name the field, where it cannot be what a field begins with.
    """
    found: list[Initial] = []
    for name, value in given.items():
        found += _initials(name, value, _components(name, fields), place)
    return tuple(found)


def is_named(name: str, fields: Sequence[str]) -> bool:
    """Whether values can be given by this name: a field's, or what components begin with.

    >>> [is_named(name, ["u", "q_rho", "q_m"]) for name in ("u", "q", "q_rho", "rho")]
    [True, True, True, False]
    """
    return bool(_components(name, fields))


def _components(name: str, fields: Sequence[str]) -> dict[str, str]:
    if name in fields:
        return {"": name}
    return {one[len(name) + 1 :]: one for one in fields if one.startswith(f"{name}_")}


def _initials(
    name: str, value: Given, components: Mapping[str, str], place: Place
) -> list[Initial]:
    if "" not in components:
        parts = _parts(value)
        if parts is not None:
            _check_components(name, parts, components)
            return [
                _initial(f"{name}.{part}", one, {"": components[part]}, place)
                for part, one in parts.items()
            ]
    elif isinstance(value, Mapping):
        raise ValueError(
            f"{name}: a mapping is for the components of structs, and {name!r} is a field of "
            f"numbers; {_REMEDY}"
        )
    return [_initial(name, value, components, place)]


def _parts(value: Given) -> Mapping[str, Given] | None:
    """What each component is given as, or None where one value is given for all of them."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, np.ndarray) and value.dtype.names is not None:
        return {name: value[name] for name in value.dtype.names}
    return None


def _initial(
    name: str, value: Given, components: Mapping[str, str], place: Place
) -> Initial:
    if isinstance(value, (str, os.PathLike)):
        if "" not in components and not is_dataset(value):
            raise ValueError(
                f"{name}: a file holds the values of one component; name one for each of "
                f"{', '.join(components)}"
            )
        return Initial(name, components, "file", os.fspath(value))
    if is_lazy(value):
        array = in_order(name, value, place)
        _check_extent(name, array.shape, place)
        return Initial(name, components, "parts", array)
    if isinstance(value, (int, float, np.number)):
        return Initial(name, components, "number", np.asarray(number(value, name)).item())
    if callable(value) and not hasattr(value, "__array__"):
        return Initial(name, components, "function", _on_axes(name, value, place.axes.axes))
    array = _array(name, value, place)
    if array.ndim == 0:
        return Initial(name, components, "number", array.item())
    return Initial(name, components, "array", array)


def _array(name: str, value: Any, place: Place) -> npt.NDArray[Any]:
    try:
        array = np.asarray(in_order(name, value, place))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if array.dtype.kind not in "biuf":
        raise wrong(name, "an array of numbers", value, _REMEDY)
    if array.ndim:
        _check_extent(name, array.shape, place)
    return array


def _check_extent(name: str, shape: tuple[int, ...], place: Place) -> None:
    if shape != place.extent:
        raise ValueError(
            f"{name}: an array for {place.extent} cells is needed, got one of {shape}; give "
            f"one value per cell, boundary cells included"
        )


def is_dataset(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds variables by name, by what it is called."""
    return os.fspath(path).endswith(DATASETS)


def is_lazy(value: object) -> bool:
    """Whether an array of xarray's lies in a file, of which parts are read when they are needed."""
    return not getattr(getattr(value, "variable", None), "_in_memory", True)


def in_order(name: str, value: Any, place: Place) -> Any:
    """An array whose axes are in the order of the grid's, where both have names.

    Of one that lies in a file nothing is read.  ValueError where it is on other cells.
    """
    if not isinstance(value, Labelled) or place.grid is None:
        return value
    axes, dims = place.grid.axes, [str(one) for one in value.dims]
    if sorted(dims) != sorted(axes):
        raise ValueError(
            f"the axes of the array are {', '.join(dims) or 'none'}, those of the grid "
            f"{', '.join(axes)}; rename them"
        )
    for number_, axis in enumerate(axes):
        if axis in value.coords:
            centres = np.asarray(value.coords[axis])
            right = place.along(number_, 0, len(centres))
            spacing = place.grid.spacing[number_]
            if not np.allclose(centres, right, rtol=0, atol=_UNEVEN * spacing):
                raise ValueError(
                    f"the coordinates of the array along {axis!r} are not those of the grid; "
                    f"interpolate it to those where the field lies (grid.coordinates({axis!r}) "
                    f"for cells), or give the bare values"
                )
    if is_lazy(value):
        lazy: Any = value
        return lazy.transpose(*axes)
    return np.transpose(np.asarray(value), [dims.index(axis) for axis in axes])


def _on_axes(name: str, function: Function, axes: tuple[str, ...]) -> Function:
    """`function` as one of coordinates by name: it may take some of them, in any order.

    A function that names none of the axes takes all of them, in order.
    """
    parameters = _parameters(function)
    wanted = [
        one.name for one in parameters
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        and (one.name in axes or one.default is one.empty)
    ]  # fmt: skip
    if wanted and set(wanted) <= set(axes):
        return lambda at: function(**{axis: at[axis] for axis in wanted})
    if any(one.name in axes for one in parameters) or not _takes(function, len(axes)):
        shown = ", ".join(map(str, parameters))
        raise ValueError(
            f"{name}: a function of coordinates takes {', '.join(axes)}, or some of them, got one "
            f"of ({shown}); name its parameters after the axes"
        )
    return lambda at: function(*at.values())


def _parameters(function: Function) -> list[inspect.Parameter]:
    """None for NumPy's functions, whose names are not those of axes."""
    try:
        found = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return []
    return [] if isinstance(function, np.ufunc) else found


def _takes(function: Function, n: int) -> bool:
    """Whether it can be called with `n` arguments."""
    if isinstance(function, np.ufunc):
        return function.nin == n
    try:
        inspect.signature(function).bind(*range(n))
    except TypeError:
        return False
    except ValueError:      # it does not say what it takes
        return True
    return True


def _check_components(
    name: str, given: Mapping[str, object], components: Mapping[str, str]
) -> None:
    if sorted(map(str, given)) != sorted(components):
        raise ValueError(
            f"{name}: one value for each of the components {', '.join(components)} is needed, got "
            f"{short(', '.join(map(str, given)))}; give the others, too"
        )
