# SPDX-License-Identifier: MIT
"""One field in a .npy file."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.contents.content import Content, Instant, Stored
from controllers.fields.selection import Selection
from controllers.program.offsets import MAX_AXES
from controllers.settings.initial import Place
from hitmap.npy import open_npy


class NpyContent(Content):
    """The array, mapped: only what is looked at is read."""

    def __init__(self, path: Path) -> None:
        """OSError or ValueError where it is no such file of numbers."""
        self._array = open_npy(path)
        if self._array.dtype.kind not in "iufb" or not 1 <= self._array.ndim <= MAX_AXES:
            raise ValueError(
                f"holds {self._array.dtype} along {self._array.ndim} axes; fields are real numbers "
                f"along 1 to {MAX_AXES}"
            )
        self.kind = "an array of NumPy"
        self.facts = {}
        self.fields = {path.stem: Stored(self._array.dtype, Place(self._array.shape))}
        self.instants = [Instant()]
        self.notes = []

    def read(self, number: int, field: str, selection: Selection) -> npt.NDArray[Any]:
        """The cells of a selection."""
        return np.asarray(self._array[np.ix_(*selection.chosen)])
