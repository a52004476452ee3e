# SPDX-License-Identifier: MIT
"""Tables of text, in columns."""
from __future__ import annotations

from collections.abc import Sequence


def format_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str] = ()
) -> str:
    """Columns as wide as they must be, right-aligned but those named in `left`.

    >>> print(format_table(("n", "what"), [("10", "a"), ("9", "bcdef")], left=("what",)))
     n  what
    10  a
     9  bcdef
    """
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    lines = [
        "  ".join(
            text.ljust(width) if name in left else text.rjust(width)
            for name, text, width in zip(head, row, widths)
        )
        for row in (head, *rows)
    ]
    return "\n".join(line.rstrip() for line in lines)
