# SPDX-License-Identifier: MIT
"""The frames of a film, in a file that appears when it is whole."""
from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from subprocess import CalledProcessError
from typing import TYPE_CHECKING, Any, Protocol

from hitmap.abort import unfinished
from hitmap.files import put, replacing, target_of
from hitmap.temporary import temporary_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

DPI = 100


class Frames(Protocol):
    """A film that is being made; errors are OSError."""

    def add(self, figure: Figure) -> None:
        """One more frame, of a figure that keeps its size."""

    def close(self) -> None:
        """Write it, unless there is no frame."""


def frames(path: Path, fps: float) -> Frames:
    """Those of a film with the format of its name."""
    return GifFrames(path, fps) if path.suffix.lower() == ".gif" else PipedFrames(path, fps)


class GifFrames:
    """In memory until the end, each in 256 colours: a byte per pixel."""

    def __init__(self, path: Path, fps: float) -> None:
        self._path, self._fps = path, fps
        self._images: list[Image] = []

    def add(self, figure: Figure) -> None:
        """One more frame."""
        from PIL import Image

        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=DPI, pil_kwargs={"compress_level": 1})
        pixels = Image.open(drawn).convert("RGB")
        self._images.append(pixels.quantize(256, method=Image.Quantize.MEDIANCUT))

    def close(self) -> None:
        """Write it, unless there is no frame."""
        if not self._images:
            return
        first, *others = self._images
        self._images = []
        with replacing(self._path) as temporary:
            first.save(
                temporary, format="GIF", save_all=True, append_images=others, loop=0,
                duration=round(1000 / self._fps),
            )  # fmt: skip


class PipedFrames:
    """Through a pipe to ffmpeg, which writes as they come."""

    def __init__(self, path: Path, fps: float) -> None:
        self._target, self._fps = target_of(path), fps
        self._temporary = temporary_name(self._target)
        self._writer: Any = None

    def add(self, figure: Figure) -> None:
        """One more frame."""
        from matplotlib.animation import FFMpegWriter

        if self._writer is None:
            unfinished.add(self._temporary)
            self._writer = FFMpegWriter(fps=self._fps)  # type: ignore[arg-type]
            self._told(lambda: self._writer.setup(figure, str(self._temporary), dpi=DPI))
        self._told(self._writer.grab_frame)

    def close(self) -> None:
        """Wait for ffmpeg, and give the film its name."""
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        try:
            self._told(writer.finish)
            put(self._temporary, self._target)
        finally:
            self._temporary.unlink(missing_ok=True)
            unfinished.discard(self._temporary)

    def _told(self, work: Callable[[], object]) -> None:
        """Errors of ffmpeg, and of the pipe to it, as OSError."""
        try:
            work()
        except (CalledProcessError, OSError) as error:
            said = getattr(error, "stderr", None) or error
            raise OSError(f"ffmpeg has failed on {self._target}: {said}") from None
