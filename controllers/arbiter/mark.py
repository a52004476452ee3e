# SPDX-License-Identifier: MIT
"""A `Mark` says that a process uses units without holding them."""
from __future__ import annotations

import weakref
from collections.abc import Sequence
from pathlib import Path

from controllers.arbiter.home import Home, changed, home
from controllers.arbiter.note import Note, holder
from controllers.arbiter.table import mark_of


class Mark:
    """Says that this process uses units: others are given those first that nobody uses.

    It never waits, and nobody waits for it.  It goes with the last reference, if it was not closed.
    OSError where the folder cannot be used.
    """

    def __init__(self, units: Sequence[str], what: str = "", folder: Path | None = None) -> None:
        path = folder or home()
        self._end: weakref.finalize[[Home, Note], Mark] | None = None
        if path is None:
            return
        with changed:
            opened = Home(path)
            try:
                for unit in units:
                    opened.locks.take(mark_of(unit), shared=True)
                note = Note(opened)
                note.write([holder(units, "used", what)])
            except BaseException:
                opened.close()
                raise
            self._end = weakref.finalize(self, _close, opened, note)

    def close(self) -> None:
        """The units are not used any more."""
        if self._end is not None:
            self._end()


def _close(opened: Home, note: Note) -> None:
    with changed:
        note.close()
        opened.close()
