# SPDX-License-Identifier: MIT
"""A zarr store of format 3: fields at many steps, and where their cells lie.

What is in it is read from its JSON, the cells by TensorStore, or else by zarr; only the chunks are
read that have cells which are looked at.
"""
from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.contents.content import Content, Instant, Stored
from controllers.fields.selection import Selection
from controllers.program.coordinates import Coordinates
from controllers.settings.initial import Place

DOCUMENT = "zarr.json"
TIMES = ("step", "t", "time")   # the first axis of fields that are there at many steps
EXTRA = 'pip install "opencl-controllers[io]"'


def is_store(path: Path) -> bool:
    """Whether a folder is a zarr store of format 3."""
    return (path / DOCUMENT).is_file()


class ZarrContent(Content):
    """The arrays of more than one axis are the fields; all have the same steps."""

    def __init__(self, path: Path) -> None:
        """ValueError for a store without fields; ImportError without what reads it."""
        self._path = path
        group = _document(path / DOCUMENT)
        arrays = _arrays(path, group)
        attributes = group.get("attributes", {})
        self.kind, self.notes = "a zarr store", []
        self.facts = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in attributes.items()
            if name != "controllers_facts"
        }
        self.fields = {}
        dims = {name: tuple(one.get("dimension_names") or ()) for name, one in arrays.items()}
        self._timed = {name: bool(one) and one[0] in TIMES for name, one in dims.items()}
        counts = {one["shape"][0] for name, one in arrays.items() if self._timed[name]}
        n_instants = min(counts, default=1)
        for name, one in arrays.items():
            axes = dims[name][self._timed[name] :]
            if axes and not (len(axes) == 1 and axes[0] == name):
                extent = tuple(one["shape"][self._timed[name] :])
                dtype = np.dtype(one["data_type"])
                self.fields[name] = Stored(dtype, Place(extent, self._grid(axes, arrays)))
        if not self.fields:
            raise ValueError(f"has no arrays that are fields, only {', '.join(arrays) or 'none'}")
        steps, times = (self._along(name, arrays, n_instants) for name in ("step", "t"))
        self.instants = [
            Instant(None if steps is None else int(steps[n]),
                    None if times is None else float(times[n]))
            for n in range(n_instants)
        ]  # fmt: skip

    def read(self, number: int, field: str, selection: Selection) -> npt.NDArray[Any]:
        """The cells of a selection."""
        chosen: tuple[Any, ...] = selection.chosen
        if self._timed[field]:
            chosen = (np.array([number]), *chosen)
        cells = _cells(self._path / field, chosen)
        return cells[0] if self._timed[field] else cells

    def _along(
        self, name: str, arrays: Mapping[str, Any], n: int | None = None
    ) -> npt.NDArray[Any] | None:
        """The values of an array of one axis, or the first of them; None where it is not there."""
        if name not in arrays or len(arrays[name]["shape"]) != 1:
            return None
        count = arrays[name]["shape"][0] if n is None else n
        return _cells(self._path / name, (np.arange(count),))

    def _grid(self, axes: tuple[str, ...], arrays: Mapping[str, Any]) -> Coordinates | None:
        """Where cells lie at even distances along all axes; None where they do not."""
        lower, spacing = [], []
        for axis in axes:
            at = self._along(axis, arrays)
            if at is None or not len(at) or at.dtype.kind not in "iuf":
                return None
            step = float(at[-1] - at[0]) / (len(at) - 1) if len(at) > 1 else 1.0
            even = at[0] + step * np.arange(len(at))
            if not step > 0 or not np.allclose(at, even, atol=1e-6 * step):
                return None
            lower.append(float(at[0]) - step / 2)
            spacing.append(step)
        return Coordinates(axes, tuple(lower), tuple(spacing))


def _document(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text("utf-8"))
    if not isinstance(found, dict) or found.get("zarr_format") != 3:
        raise ValueError(f"{path.name} is no document of zarr of format 3")
    return found


def _arrays(path: Path, group: Mapping[str, Any]) -> dict[str, Any]:
    """The documents of all arrays: as the group lists them, at one moment, else one by one."""
    if group.get("node_type") == "array":
        raise ValueError("is one array; give the folder above it")
    listed = (group.get("consolidated_metadata") or {}).get("metadata")
    if listed is None:
        folders = sorted(one.parent for one in path.glob(f"*/{DOCUMENT}"))
        listed = {one.name: _document(one / DOCUMENT) for one in folders}
    return {name: one for name, one in listed.items() if one.get("node_type") == "array"}


def _cells(path: Path, chosen: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Those at all combinations of these indices."""
    if importlib.util.find_spec("tensorstore") is not None:
        import tensorstore

        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
        array = tensorstore.open(spec, read=True).result()
        return np.asarray(array.oindex[chosen].read().result())
    if importlib.util.find_spec("zarr") is None:
        raise ImportError(f"a zarr store is read by tensorstore or zarr; {EXTRA}")
    import zarr

    return np.asarray(zarr.open_array(path, mode="r").oindex[chosen])
