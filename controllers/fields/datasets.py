# SPDX-License-Identifier: MIT
"""Variables of zarr stores and NetCDF files, opened by xarray and read by parts."""
from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from controllers.settings.initial import Place, in_order
from hitmap.shape import Shape

if TYPE_CHECKING:
    import xarray

MOMENTS = ("step", "time", "t")     # dimensions of which the last moment is taken


def open_variable(
    path: str | os.PathLike[str], name: str, place: Place
) -> tuple[xarray.DataArray, str]:
    """The variable of a field, its axes those of `place`, nothing of it read; and what it is.

    Of several moments the last.  ImportError where xarray, or what it opens such files by, is not
    there; OSError and ValueError, which say what is wrong.
    """
    try:
        import xarray
    except ImportError:
        raise ImportError(
            f'{path}: reading it needs xarray; pip install "opencl-controllers[io]"'
        ) from None
    try:
        if Path(path).suffix == ".zarr":
            found = xarray.open_zarr(path, chunks=None)
        else:
            found = xarray.open_dataset(path)
    except ModuleNotFoundError as error:
        raise ImportError(f'{path}: {error}; pip install "opencl-controllers[io]"') from None
    if name not in found.data_vars:
        known = ", ".join(map(str, found.data_vars)) or "none"
        raise ValueError(f"has no variable {name!r}; there are {known}")
    array = found[name]
    axes, at = place.axes.axes, ""
    for one in [*array.dims]:
        if one in MOMENTS and one not in axes:
            array = array.isel({one: -1})
            at = f" after the {one} {array.coords[one].item()}" if one in array.coords else ""
    array = array.rename({one: axis for axis in axes for one in array.dims
                          if str(one).startswith(f"{axis}_half")})  # fmt: skip
    array = in_order(name, array, place)
    if array.shape != place.extent:
        raise ValueError(f"{name} has {array.shape} cells, the field {place.extent}")
    return array, f"{array.dtype} {array.shape}{at}"


def part_of(array: Any, box: Shape) -> npt.NDArray[Any]:
    """The cells of a box, read now."""
    return np.asarray(array[box.slices((0,) * box.n_axes)])
