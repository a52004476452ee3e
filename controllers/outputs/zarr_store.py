# SPDX-License-Identifier: MIT
"""A zarr store of moments: every rank writes its own cells, rank 0 says which moments there are.

Ranks write beyond the length along time that the metadata say; when all have written, rank 0
replaces the metadata, that of the group last.  So what is listed is complete.  Chunks of which one
place has all cells are written as files; TensorStore writes the others, which ranks may share, by
comparing and exchanging them, so that no cell is lost.
"""
# docs/decisions/0074-output-lists-what-is-complete.md
from __future__ import annotations

import json
import os
import shutil
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from controllers.outputs import zarr_documents as documents
from controllers.outputs.chunk_files import chunks_of, sync_folders, write_chunks
from controllers.outputs.files import encoded, replace_all, replace_file
from controllers.outputs.moment import FORMAT, Facts, Moment
from controllers.outputs.variable import Part, Variable
from hitmap.files import sync
from hitmap.shape import Shape

METADATA = "zarr.json"
AT_ONCE = 4             # chunks that TensorStore writes at a time
_ENDLESS = 1 << 40      # moments, as far as a rank that writes knows


def tensorstore() -> Any:
    """The module; ImportError, which says what to install, where there is none."""
    try:
        import tensorstore as module
    except ImportError:
        raise ImportError(
            'output to zarr needs tensorstore; pip install "opencl-controllers[io]"'
        ) from None
    return module


class ZarrStore:
    """The store of some variables; see `Store`."""

    takes_slabs = True

    def __init__(self, path: Path, variables: Sequence[Variable]) -> None:
        self.path = path
        self._variables = {one.field: one for one in variables}
        self._axes = {axis.name: axis for one in variables for axis in one.axes}
        self._module = tensorstore()
        self._context = self._module.Context({      # the other cores compute
            "cache_pool": {"total_bytes_limit": 0}, "data_copy_concurrency": {"limit": 1},
            "file_io_concurrency": {"limit": 1},
        })  # fmt: skip
        self._arrays: dict[str, Any] = {}
        self._n_listed = 0

    def moments(self) -> list[Moment]:
        group = self._read()
        return [] if group is None else self._moments(group)

    def begin(self, step: int, facts: Facts) -> list[Moment]:
        group = self._read()
        stay: list[Moment] = []
        if group is not None:
            stay = [one for one in self._moments(group) if one.step <= step]
        self._n_listed = 0
        if not stay:
            self._make(facts, exists=group is not None)
            return []
        assert group is not None, "it has moments"
        facts.check(group["attributes"], self.path)
        self.show(stay, facts)
        for name in self._variables:        # what comes after them is of no more use
            for chunk in self.path.glob(f"{name}/c/*"):
                if int(chunk.name) >= len(stay):
                    shutil.rmtree(chunk) if chunk.is_dir() else chunk.unlink()
        return stay

    def write(
        self, number: int, moment: Moment, boxes: Sequence[Shape], parts: Iterable[Part]
    ) -> None:
        pending: deque[Any] = deque()
        for part in parts:
            one, top = part.variable, self.path / part.variable.field / "c"
            whole: dict[Path, np.ndarray] = {}
            for at, box, is_whole in chunks_of(part):
                cells = part.cells[box.slices(part.box.lower)]
                if is_whole:
                    whole[top.joinpath(str(number), *map(str, at))] = cells
                    continue
                where = (number, *box.slices((0,) * box.n_axes))
                target = self._array(one)[where]
                plain = one.plain(cells)
                pending.append(target.write(plain, can_reference_source_data_indefinitely=True))
                if len(pending) > AT_ONCE:
                    pending.popleft().result()
            folders = {path.parent for path in whole}
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
            write_chunks([(path, one, cells) for path, cells in whole.items()])
            sync_folders(folders, top)
        for written in pending:
            written.result()

    def show(self, moments: Sequence[Moment], facts: Facts) -> None:
        arrays = self._documents(len(moments))
        size = documents.AT_ONCE
        for first in range(self._n_listed // size * size, len(moments), size):
            for name, values in _columns(moments[first : first + size]).items():
                padded = np.zeros(size, values.dtype)
                padded[: len(values)] = values
                replace_file(self.path / name / "c" / str(first // size), _plain(padded))
        self._n_listed = len(moments)
        contents = {self.path / name / METADATA: encoded(one) for name, one in arrays.items()
                    if one["dimension_names"][0] == documents.MOMENTS}  # fmt: skip
        group = documents.group(arrays, facts.attributes(documents.FORMAT))
        replace_all({**contents, self.path / METADATA: encoded(group)})

    def _documents(self, n_moments: int) -> dict[str, documents.Document]:
        """Those of all arrays."""
        found = {"step": documents.moments("int64", n_moments),
                 "t": documents.moments("float64", n_moments)}  # fmt: skip
        found |= {name: documents.coordinate(axis) for name, axis in self._axes.items()}
        return found | {n: documents.variable(v, n_moments) for n, v in self._variables.items()}

    def _make(self, facts: Facts, exists: bool) -> None:
        """An empty store, in place of what was there."""
        new, old = (self.path.with_name(f".{what}-{self.path.name}") for what in ("new", "old"))
        for left in (new, old):
            shutil.rmtree(left, ignore_errors=True)
        new.mkdir()
        arrays = self._documents(0)
        for name, one in arrays.items():
            (new / name / "c").mkdir(parents=True)
            (new / name / METADATA).write_bytes(encoded(one))
        for name, axis in self._axes.items():
            (new / name / "c" / "0").write_bytes(_plain(axis.along))
        group = documents.group(arrays, facts.attributes(documents.FORMAT))
        replace_file(new / METADATA, encoded(group))
        if exists:
            os.rename(self.path, old)
        os.rename(new, self.path)
        sync(self.path.parent)
        shutil.rmtree(old, ignore_errors=True)

    def _read(self) -> documents.Document | None:
        """The metadata of the group, None where there is nothing; FileExistsError of others."""
        try:
            found: documents.Document = json.loads((self.path / METADATA).read_bytes())
            if found["attributes"][FORMAT] == documents.FORMAT:
                return found
        except FileNotFoundError:
            if not self.path.exists():
                return None
        except NotADirectoryError:
            if not self.path.exists():
                raise
        except (KeyError, TypeError, ValueError):
            pass
        raise FileExistsError(
            17, "is there, and is no store that a run has written; remove it, or name another one",
            str(self.path),
        )  # fmt: skip

    def _moments(self, group: documents.Document) -> list[Moment]:
        """All that are listed."""
        arrays = group["consolidated_metadata"]["metadata"]
        count = arrays["step"]["shape"][0]
        columns = []
        for name, dtype in (("step", "<i8"), ("t", "<f8")):
            chunks = range(-(-count // documents.AT_ONCE))
            content = b"".join((self.path / name / "c" / str(n)).read_bytes() for n in chunks)
            columns.append(np.frombuffer(content, dtype)[:count].tolist())
        return [Moment(step, time) for step, time in zip(*columns)]

    def _array(self, one: Variable) -> Any:
        """The array of a variable, of as many moments as there may ever be."""
        if one.field not in self._arrays:
            spec = {
                "driver": "zarr3",
                "kvstore": {"driver": "file", "path": f"{self.path / one.field}/"},
                "metadata": documents.variable(one, _ENDLESS),
            }
            self._arrays[one.field] = self._module.open(
                spec, open=True, assume_metadata=True, context=self._context
            ).result()
        return self._arrays[one.field]


def _columns(moments: Sequence[Moment]) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    return {"step": np.array([one.step for one in moments], np.int64),
            "t": np.array([one.time for one in moments], np.float64)}  # fmt: skip


def _plain(values: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    return values.astype(values.dtype.newbyteorder("<")).tobytes()
