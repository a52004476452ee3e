# SPDX-License-Identifier: MIT
"""Which cells a launch of a user's kernel touches, as far as the text of the kernel says so.

`HERE(u)` is the work-item's cell and `NEAR(u, -1, 0)` one beside it: where these lie follows from
the box of the launch alone, so that a box that leads out of a tile is refused before anything is
written there.  `AT`, `AT_LOCAL`, and elements that a kernel counts itself, are the kernel's affair.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hitmap.shape import Shape

_MACRO = re.compile(r"^[ \t]*#[ \t]*define\b[^\n]*", re.MULTILINE)
_TOKEN = re.compile(
    r"(?P<touch>\b(?:HERE|ELEMENT|NEW|NEAR)\b[ \t]*\()|(?P<bracket>[(){};])|(?P<leaves>\b(?:return|"
    r"goto)\b|#[ \t]*if)|(?P<branches>\?|&&|\|\||\b(?:if|else|for|while|do|switch)\b)"
)
_WHOLE = re.compile(r"[(\s]*([+-]?)\s*(\d+)[)\s]*")


@dataclass(frozen=True)
class Touch:
    """One use of an accessor: `offset` from the work-item's cell, None where it is computed.

    always: whether every work-item comes by, not only some, as behind an `if`.
    """

    name: str
    text: str
    offset: tuple[int, ...] | None
    always: bool

    def launched_within(self, cells: Shape, over: Shape) -> Shape | None:
        """None if `over` may be launched where only `cells` may be touched, else what may be.

        An offset that is computed, or that only some work-items use, may lead anywhere: then the
        box has to lie in `cells`, moved by the offset or not.
        """
        offset = self.offset or (0,) * over.n_axes
        back = cells.shift(tuple(-step for step in offset))
        if over in back or (not self.always and over in cells):
            return None
        return over & (back if self.always else cells)


def touches(body: str, macros: str = "") -> tuple[Touch, ...]:
    """What the body of a kernel touches; `macros` is the text that defines its macros.

    Both without comments, texts in quotes, and lines that are continued.

    >>> touches("{ CELL; HERE(new) = INDEX(0) ? NEAR(u, -1, 0) : HERE(u); }")[1]
    Touch(name='u', text='NEAR(u, -1, 0)', offset=(-1, 0), always=False)
    """
    found = [*_found(body)]
    for macro in _MACRO.findall(macros):
        found += [Touch(one.name, one.text, one.offset, False) for one in _found(macro)]
    return tuple(dict.fromkeys(found))


def _found(text: str) -> Iterator[Touch]:
    """The uses in `text`, statement by statement."""
    outer: list[bool] = []      # per open brace: whether what stands in it may be passed over
    in_parentheses, branches, left = 0, False, False
    for token in _TOKEN.finditer(text):
        sign = token["bracket"]
        if token["touch"]:
            yield from _touch(text, token, not (branches or left or any(outer)))
            in_parentheses += 1
        elif token["leaves"]:
            left = True
        elif token["branches"]:
            branches = True
        elif sign == "{":
            outer.append(branches)
        elif sign in ("(", ")"):
            in_parentheses += 1 if sign == "(" else -1
        elif sign == "}" or in_parentheses == 0:
            outer = outer[:-1] if sign == "}" else outer
            branches = False


def _touch(text: str, token: re.Match[str], always: bool) -> Iterator[Touch]:
    """The use whose opening parenthesis ends `token`; none where it is not closed."""
    depth, end = 1, token.end()
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    name, *steps = (part.strip() for part in text[token.end() : end - 1].split(","))
    accessor = token["touch"].rstrip("( \t")
    use = " ".join(text[token.start() : end].split())
    if accessor == "NEW":
        name += "_new"
    if accessor != "NEAR":
        yield Touch(name, use, (), True)
        return
    numbers = [_WHOLE.fullmatch(step) for step in steps]
    known = tuple(int(number[1] + number[2]) for number in numbers if number)
    yield Touch(name, use, known if len(known) == len(steps) else None, always)
