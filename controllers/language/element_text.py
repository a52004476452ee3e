# SPDX-License-Identifier: MIT
"""What the text of an element function says of its fields, as far as it can be told by reading it.

Offsets that are written as numbers are looked at here; all others by the checked mode.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

_NO_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_NUMBER = re.compile(r"[-+]?\s*\d+")
_NEW = re.compile(r"\b(\w+)_new\b")
_INDEX = re.compile(r"\bINDEX\s*\(")
_BRACKET = re.compile(r"[(),]")
MOST_LISTED = 9     # offsets in a message

Offsets = Mapping[str, tuple[tuple[int, ...], ...]]


@dataclass(frozen=True)
class ElementText:
    """The text, and where it begins; `file` is "" where it lies in none."""

    text: str
    file: str
    line: int

    @cached_property
    def code(self) -> str:
        """The text with blanks in place of comments and texts in quotes."""
        return _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), self.text)

    @property
    def indexed(self) -> bool:
        """Whether it asks for the index of the cell."""
        return _INDEX.search(self.code) is not None

    def is_fixed(self, fields: Sequence[str]) -> bool:
        """Whether all offsets at which it reads fields are written as numbers."""
        return all(
            _NUMBER.fullmatch(one) for _, _, arguments in self._accesses(fields)
            for one in arguments
        )  # fmt: skip

    def check(
        self, around: Offsets, writes: Sequence[str], fields: Sequence[str], n_axes: int
    ) -> None:
        """ValueError where it reads or sets what is not declared, or does not set what is.

        around: the offsets that are declared, by the names of the fields that are read.
        """
        for name, at, arguments in self._accesses(fields):
            text = f"{name}({', '.join(arguments)})"
            if name not in around:
                raise self._wrong(at, f"{text} reads {name!r}, which reads= does not name; add it")
            if len(arguments) != n_axes:
                raise self._wrong(
                    at, f"{text} has {len(arguments)} and not {n_axes} offsets; write one for each "
                    f"axis of the grid"
                )  # fmt: skip
            if all(_NUMBER.fullmatch(one) for one in arguments):
                offset = tuple(int(one.replace(" ", "")) for one in arguments)
                if offset not in around[name]:
                    raise self._wrong(
                        at, f"{text} is not declared to be read (reads= has "
                        f"{_listed(around[name])}); declare it there"
                    )  # fmt: skip
        set_here = {found[1]: found.start() for found in _NEW.finditer(self.code)}
        for name, at in set_here.items():
            if name in fields and name not in writes:
                raise self._wrong(
                    at, f"{name}_new is set, and writes= does not name {name!r}; add it, or use a "
                    f"variable of another name"
                )  # fmt: skip
        for name in writes:
            if name not in set_here:
                raise self._wrong(
                    0, f"it never sets {name}_new, though writes= names {name!r}; set it, or leave "
                    f"{name!r} out of writes"
                )  # fmt: skip

    def _accesses(self, fields: Sequence[str]) -> Iterator[tuple[str, int, list[str]]]:
        """The uses of fields as `u(0, 1)`: the name, where it stands, the offsets as they are."""
        names = "|".join(map(re.escape, sorted(fields, key=len, reverse=True)))
        for found in re.finditer(rf"\b({names})\s*\(", self.code):
            yield found[1], found.start(), self._arguments(found.end())

    def _arguments(self, start: int) -> list[str]:
        """What stands in brackets, of which the first is open already, parted by commas."""
        depth, first, arguments = 1, start, []
        for sign in _BRACKET.finditer(self.code, start):
            depth += {"(": 1, ")": -1, ",": 0}[sign[0]]
            if depth == 0 or (depth == 1 and sign[0] == ","):
                arguments.append(self.code[first : sign.start()].strip())
                first = sign.end()
            if depth == 0:
                break
        return arguments

    def _wrong(self, at: int, what: str) -> ValueError:
        number = self.line + self.code.count("\n", 0, at)
        return ValueError(f"line {number}: {what}")


def _listed(offsets: Sequence[tuple[int, ...]]) -> str:
    if len(offsets) <= MOST_LISTED:
        return ", ".join(map(str, offsets)) or "no offset"
    ends = " x ".join(f"{min(axis)}..{max(axis)}" for axis in zip(*offsets))
    return f"{len(offsets)} within {ends}"
