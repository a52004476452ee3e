# SPDX-License-Identifier: MIT
"""The checkpoints of a run: a folder of them, or one."""
from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.checkpoint.error import Damaged
from controllers.checkpoint.folder import newest_first
from controllers.checkpoint.manifest import FORMAT, MANIFEST, Manifest
from controllers.checkpoint.reading import BlockFiles
from controllers.contents.content import Content, Instant, Stored
from controllers.fields.sampling import put_together
from controllers.fields.selection import Selection
from controllers.program.coordinates import Coordinates
from controllers.settings.initial import Place


def is_kept(path: Path) -> bool:
    """Whether a folder is a checkpoint, or has some."""
    return (path / MANIFEST).is_file() or bool(_checkpoints(path))


class KeptContent(Content):
    """Those that are whole, the oldest first; of the others it is said what is wrong."""

    def __init__(self, path: Path) -> None:
        """ValueError where none is whole."""
        self.kind, self.notes = "checkpoints", []
        self._kept: list[tuple[Path, Manifest]] = []
        for folder in [path] if (path / MANIFEST).is_file() else _checkpoints(path):
            try:
                manifest = Manifest.of(folder)
                if manifest.format != FORMAT:
                    raise Damaged(f"it has the format {manifest.format}, this version {FORMAT}")
                self._kept.append((folder, manifest))
            except Damaged as error:
                self.notes.append(f"{folder.relative_to(path)} cannot be read: {error}")
        if not self._kept:
            raise ValueError(f"no checkpoint in it is whole: {'; '.join(self.notes)}")
        state = self._kept[-1][1].state
        facts = state["facts"]
        numbers = state["numbers"]["parameters"]
        self.facts = {
            "program": facts["the program"],
            "parameters": ", ".join(f"{name} = {value!r}" for name, value in numbers.items()),
            "grid": facts["the grid"], "ranks": str(state["ranks"]),
            "devices": ", ".join(state["devices"]),
        }  # fmt: skip
        self.instants = [Instant(one.state["step"], one.state["time"]) for _, one in self._kept]
        self.fields = _fields(facts)
        for folder, manifest in self._kept:
            nbytes = sum(manifest.files.values())
            self.notes.append(
                f"{folder.relative_to(path)}: {len(manifest.blocks)} blocks with checksums, "
                f"{nbytes} bytes in {len(manifest.files)} files"
            )
            for name, (digest, n_nan) in manifest.state.get("digests", {}).items():
                self.notes.append(f"    {name}: digest {digest}, {n_nan} NaN")
        for number, one in enumerate(state["records"], 1):
            said = one["said"]
            self.notes.append(
                f"record {number} of {said['of']}: {len(one['steps'])} samples, every "
                f"{said['every']} steps"
            )

    def read(self, number: int, field: str, selection: Selection) -> npt.NDArray[Any]:
        """The cells of a selection; only the blocks are read and checked that have some."""
        folder, manifest = self._kept[number]
        dtype, parts = self.fields[field].dtype, []
        try:
            with BlockFiles(folder) as files:
                for block in (one for one in manifest.blocks if one.field == field):
                    part = selection.within(block.box)
                    if part is not None:
                        cells, at = part
                        inside = (one - low for one, low in zip(cells, block.lower))
                        parts.append((at, files.cells(block, dtype)[np.ix_(*inside)]))
        except Damaged as error:
            raise ValueError(f"{folder} is damaged: {error}") from None
        return put_together([parts], selection, dtype)


def _checkpoints(path: Path) -> list[Path]:
    """Those of a folder, or else of its newest run; the oldest first."""
    runs = [path] + sorted(
        path.glob("run-*"), key=lambda one: (len(one.name), one.name), reverse=True
    )
    return next((found[::-1] for found in map(newest_first, runs) if found), [])


def _fields(facts: dict[str, str]) -> dict[str, Stored]:
    """From what the manifest says of the program."""
    cells = {key: text for key, text in facts.items() if key.startswith("the cells of ")}
    found = {}
    for key, text in cells.items():
        name = key.removeprefix("the cells of ")
        extent = ast.literal_eval(text)
        found[name] = Stored(np.dtype(facts[f"the bytes of {name}"]), Place(extent, _grid(facts)))
    return found


def _grid(facts: dict[str, str]) -> Coordinates | None:
    """That of the program, where its text says all of it."""
    try:
        call = ast.parse(facts["the grid"], mode="eval").body
        assert isinstance(call, ast.Call)
        return Coordinates(**{str(one.arg): ast.literal_eval(one.value) for one in call.keywords})
    except (AssertionError, SyntaxError, TypeError, ValueError):
        return None
