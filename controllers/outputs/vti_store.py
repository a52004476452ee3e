# SPDX-License-Identifier: MIT
"""Moments for ParaView: `run.pvd` lists them, `run/` has a `.vti` for each place, and a `.pvti`.

Every rank writes the files of its places; rank 0 writes what lists them, that of the moments last.
So what is listed is complete.
"""
from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

from controllers.outputs.files import encoded, replace_file
from controllers.outputs.image_data import Image, collection
from controllers.outputs.moment import FORMAT, Facts, Moment
from controllers.outputs.variable import Part, Variable
from hitmap.files import sync
from hitmap.shape import Shape

LAYOUT = 1
FACTS = "facts.json"


class VtiStore:
    """The files of some variables; see `Store`."""

    takes_slabs = False

    def __init__(self, path: Path, variables: Sequence[Variable]) -> None:
        self.path, self.folder = path, path.with_suffix("")
        self._image = Image(tuple(variables))
        self._boxes: dict[int, Sequence[Shape]] = {}    # of moments that are not listed yet
        self._files: list[tuple[float, str]] = []       # that are

    def moments(self) -> list[Moment]:
        if not self.path.exists() and not self.folder.exists():
            return []
        try:
            facts = json.loads((self.folder / FACTS).read_bytes())
            if facts[FORMAT] != LAYOUT:
                raise ValueError("of another format")
            found = [one.attrib for one in ElementTree.parse(self.path).iter("DataSet")]
            return [Moment(int(Path(one["file"]).stem), float(one["timestep"])) for one in found]
        except (OSError, KeyError, TypeError, ValueError, ElementTree.ParseError):
            raise FileExistsError(
                17, f"or {self.folder.name} is there, and is no series that a run has written; "
                f"remove it, or name another one", str(self.path)
            ) from None  # fmt: skip

    def begin(self, step: int, facts: Facts) -> list[Moment]:
        stay = [one for one in self.moments() if one.step <= step]
        self._boxes = {}
        if stay:
            facts.check(json.loads((self.folder / FACTS).read_bytes()), self.path)
            self._files = self._listed(stay)
            replace_file(self.path, collection(self._files))
            return stay
        self._files = []
        if self.folder.exists():
            replace_file(self.path, collection([]))
            shutil.rmtree(self.folder)
        self.folder.mkdir()
        replace_file(self.folder / FACTS, encoded(facts.attributes(LAYOUT)))
        replace_file(self.path, collection([]))
        return []

    def write(
        self, number: int, moment: Moment, boxes: Sequence[Shape], parts: Iterable[Part]
    ) -> None:
        self._boxes[number] = boxes
        for box, group in groupby(parts, lambda part: part.box):
            name = _name(moment, boxes, boxes.index(box))
            replace_file(self.folder / name, self._image.piece([*group]))

    def show(self, moments: Sequence[Moment], facts: Facts) -> None:
        for number in range(len(self._files), len(moments)):
            moment, boxes = moments[number], self._boxes.pop(number)
            if len(boxes) > 1:
                sources = [(box, _name(moment, boxes, n)) for n, box in enumerate(boxes)]
                name = f"{moment.step:09d}.pvti"
                replace_file(self.folder / name, self._image.pieces(sources))
            self._files += self._listed([moment])
        replace_file(self.folder / FACTS, encoded(facts.attributes(LAYOUT)))
        replace_file(self.path, collection(self._files))
        sync(self.folder)

    def _listed(self, moments: Sequence[Moment]) -> list[tuple[float, str]]:
        """The times of moments, or their steps where these take none, and their files."""
        found = []
        for one in moments:
            whole = self.folder / f"{one.step:09d}.pvti"
            name = whole if whole.exists() else whole.with_suffix(".vti")
            found.append((one.time or float(one.step), f"{self.folder.name}/{name.name}"))
        return found


def _name(moment: Moment, boxes: Sequence[Shape], number: int) -> str:
    """Of the file of a box."""
    return f"{moment.step:09d}-{number}.vti" if len(boxes) > 1 else f"{moment.step:09d}.vti"
