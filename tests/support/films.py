# SPDX-License-Identifier: MIT
"""Films that were written, frame by frame."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def n_frames(path: Path) -> int:
    """How many frames a film .gif has."""
    from PIL import Image

    with Image.open(path) as film:
        return film.n_frames


def frame(path: Path, number: int) -> npt.NDArray[Any]:
    """Red, green and blue of one of its frames, [height][width][3]."""
    from PIL import Image

    with Image.open(path) as film:
        film.seek(number)
        return np.asarray(film.convert("RGB"))
