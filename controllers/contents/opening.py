# SPDX-License-Identifier: MIT
"""Which kind of file or folder it is."""
from __future__ import annotations

from pathlib import Path

from controllers.contents.content import Content
from controllers.contents.kept_content import KeptContent, is_kept
from controllers.contents.npy_content import NpyContent
from controllers.contents.zarr_content import ZarrContent, is_store


def opened(path: Path) -> Content:
    """What is in a .npy file, a folder of checkpoints, or a zarr store.

    OSError or ValueError where it is none of these, or cannot be read; ImportError where what
    reads it is not installed.
    """
    if not path.is_dir():
        return NpyContent(path)
    if is_store(path):
        return ZarrContent(path)
    if is_kept(path):
        return KeptContent(path)
    raise ValueError("has no checkpoints and is no zarr store of format 3")
