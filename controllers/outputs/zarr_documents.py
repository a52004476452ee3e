# SPDX-License-Identifier: MIT
"""What the `zarr.json` of a store say: a group, and an array for each variable and coordinate.

After the specification of zarr 3 (zarr-specs.readthedocs.io), with the metadata of all arrays in
that of the group, too, as zarr-python and xarray read it.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from controllers.outputs.variable import Axis, Variable

Document: TypeAlias = "dict[str, Any]"
FORMAT = 1
MOMENTS = "step"        # the dimension along which moments are appended
AT_ONCE = 1024          # of their steps and times in a chunk


def array(
    shape: Sequence[int], chunk: Sequence[int], dtype: np.dtype[Any], dims: Sequence[str],
    attributes: Mapping[str, Any],
) -> Document:  # fmt: skip
    """That of an array, uncompressed."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [*map(int, shape)],
        "data_type": dtype.name,
        "chunk_grid": {
            "name": "regular", "configuration": {"chunk_shape": [max(1, int(n)) for n in chunk]}
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN" if dtype.kind == "f" else 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": dict(attributes),
        "dimension_names": [*dims],
    }  # fmt: skip


def variable(one: Variable, n_moments: int) -> Document:
    """That of a variable, of so many moments."""
    attributes: dict[str, Any] = {"coordinates": "t"}
    if one.at:
        attributes["at"] = ", ".join(f"{axis} = {n!r}" for axis, n in one.at.items())
    dims = (MOMENTS, *(axis.name for axis in one.axes))
    return array((n_moments, *one.shape), (1, *one.chunk), one.dtype, dims, attributes)


def moments(dtype: str, n_moments: int) -> Document:
    """That of the steps, or the times, of moments."""
    return array((n_moments,), (AT_ONCE,), np.dtype(dtype), (MOMENTS,), {})


def coordinate(axis: Axis) -> Document:
    """That of the coordinates along an axis, in one chunk."""
    n_cells = (len(axis.along),)
    return array(n_cells, n_cells, axis.along.dtype, (axis.name,), {})


def group(arrays: Mapping[str, Document], attributes: Mapping[str, Any]) -> Document:
    """That of the store, with these arrays."""
    return {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": dict(attributes),
        "consolidated_metadata": {
            "kind": "inline", "must_understand": False, "metadata": dict(arrays)
        },
    }  # fmt: skip
