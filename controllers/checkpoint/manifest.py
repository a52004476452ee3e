# SPDX-License-Identifier: MIT
"""The manifest of a checkpoint: what is in it, where each block of cells lies, and its checksum.

It is one line that names the format and has the checksum of that and of all that follows, which is
JSON: the state of the run but for its cells, and a row per block.  It is written last: where there
is one, all the rest is there.  Checksums are CRC-32: a single bit that has flipped never passes,
other damage once in 2**32.
"""
# docs/decisions/0073-checkpoints-are-blocks-and-a-manifest.md
from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from controllers.checkpoint.error import Damaged
from hitmap.shape import Shape

MANIFEST = "manifest"
_HEAD = re.compile(rb"controllers checkpoint (\d+) crc32 ([0-9a-f]{8})\n")
FORMAT = 1
_FILE = re.compile(r"rank-\d{1,9}\.cells")


@dataclass(frozen=True)
class Block:
    """The cells lower <= i < upper of a field, in C order, from byte `first` of a file on."""

    field: str
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    file: str
    first: int
    nbytes: int
    crc: int

    @property
    def box(self) -> Shape:
        return Shape(self.lower, self.upper)


@dataclass(frozen=True)
class Manifest:
    """state: of the run but for its cells, in words and numbers.  files: how long each one is.

    Of another `format` nothing else is known.
    """

    state: Mapping[str, Any]
    files: Mapping[str, int]
    blocks: Sequence[Block]
    format: int = FORMAT

    def encoded(self) -> bytes:
        """As it is in its file.

        >>> one = Manifest({"step": 3}, {"rank-0.cells": 4}, [])
        >>> one.encoded()[:24], Manifest.decoded(one.encoded()) == one
        (b'controllers checkpoint 1', True)
        """
        rows = [astuple(block) for block in self.blocks]
        content = {"state": self.state, "files": self.files, "blocks": rows}
        text = json.dumps(content, separators=(",", ":")).encode()
        head = f"controllers checkpoint {self.format} crc32 {_crc(self.format, text):08x}\n"
        return head.encode() + text

    @classmethod
    def decoded(cls, content: bytes) -> Manifest:
        """What `encoded` has given; `Damaged` for anything else."""
        head = _HEAD.match(content)
        if head is None:
            raise Damaged("its manifest does not begin as one does")
        version, text = int(head[1]), content[head.end() :]
        if _crc(version, text) != int(head[2], 16):
            raise Damaged("its manifest has another checksum")
        if version != FORMAT:
            return cls({}, {}, [], version)
        found = json.loads(text)
        blocks = [
            Block(row[0], tuple(row[1]), tuple(row[2]), *row[3:]) for row in found["blocks"]
        ]
        return cls(found["state"], found["files"], blocks)

    @classmethod
    def of(cls, folder: Path) -> Manifest:
        """That of a checkpoint, whose files are as long as it says; `Damaged` else."""
        try:
            manifest = cls.decoded((folder / MANIFEST).read_bytes())
            for name, nbytes in manifest.files.items():
                if not _FILE.fullmatch(name):
                    raise Damaged(f"its manifest names a file {name!r}")
                found = os.stat(folder / name).st_size
                if found != nbytes:
                    raise Damaged(f"{name} has {found} bytes of {nbytes}")
        except OSError as error:
            raise Damaged(f"{error.filename}: {error.strerror}") from None
        return manifest

    def check(self, extents: Mapping[str, Sequence[int]], itemsizes: Mapping[str, int]) -> None:
        """`Damaged` unless blocks lie in files and fields, and have all cells of these."""
        cells = dict.fromkeys(extents, 0)
        for one in self.blocks:
            if one.field not in extents:
                raise Damaged(f"it has cells of {one.field!r}, which the run has not")
            inside = one.box in Shape.of_extent(tuple(extents[one.field]))
            length = one.box.n_cells * itemsizes[one.field]
            end = one.first + one.nbytes
            if not inside or one.nbytes != length or end > self.files.get(one.file, 0):
                raise Damaged(f"its block {one.box} of {one.field} cannot be")
            cells[one.field] += one.box.n_cells
        for field, extent in extents.items():
            if cells[field] != math.prod(extent):
                raise Damaged(f"it has {cells[field]} cells of {field}, not {math.prod(extent)}")


def _crc(version: int, text: bytes) -> int:
    return zlib.crc32(text, zlib.crc32(str(version).encode()))
