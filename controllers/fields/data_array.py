# SPDX-License-Identifier: MIT
"""Arrays of xarray, which is optional."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray


def data_array_type() -> type[xarray.DataArray]:
    """xarray.DataArray; ImportError where xarray is not installed."""
    try:
        from xarray import DataArray
    except ImportError:
        raise ImportError(
            'to_xarray needs xarray; pip install "opencl-controllers[xarray]"'
        ) from None
    data_array: type[xarray.DataArray] = DataArray
    return data_array
