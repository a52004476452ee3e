# SPDX-License-Identifier: MIT
"""Sources: where the values of an array expression come from, and go to.

All of them lie as a field of the computation does, its *home*: cell by cell at the same places.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from controllers.memory.tile import Tile
from controllers.program.dtypes import Kind

Half: TypeAlias = tuple[bool, ...]


class Source:
    """Values by cell.  key: equal for sources that can stand for each other in bound kernels.

    changes: whether they may be assigned, so that expressions are computed before.  lasts: whether
    nothing is freed with it, so that it may be kept.
    """

    __slots__ = ("dtype", "half", "home", "key", "kind")
    changes = True
    lasts = False

    def assigned(self) -> None:
        """Some cells are others now."""

    def __init__(self, key: object, dtype: str, home: str, half: Half) -> None:
        self.key, self.dtype, self.home, self.half = key, dtype, home, half
        self.kind = Kind(dtype)


class FieldSource(Source):
    """A field of the computation, as it is when the expression is computed."""

    __slots__ = ("name",)
    lasts = True

    def __init__(self, name: str, dtype: str, half: Half) -> None:
        super().__init__(name, dtype, name, half)
        self.name = name


class HeldSource(Source):
    """Values that an expression had, or an array: in tiles of their own, which others get later.

    number: of these tiles, among those of one dtype and home.
    """

    __slots__ = ("number", "tiles", "_give_back")
    changes = False

    def __init__(
        self,
        number: int,
        dtype: str,
        home: Source,
        tiles: Mapping[int, Tile],
        give_back: Callable[[], None],
    ) -> None:
        super().__init__((number, dtype, home.home), dtype, home.home, home.half)
        self.number, self.tiles, self._give_back = number, tiles, give_back

    def __del__(self) -> None:
        self._give_back()


class ArraySource(HeldSource):
    """An array that is no field: in tiles of its own, which are assigned as those of fields are."""

    __slots__ = ("copies",)
    changes = True
    copies: object      # of the whole at each place, which are valid until it is assigned

    @property
    def name(self) -> str:
        """For people."""
        return f"array {self.number}"

    def assigned(self) -> None:
        """Some cells are others now."""
        self.copies = None
