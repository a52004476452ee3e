# SPDX-License-Identifier: MIT
"""Durations, for people."""
from __future__ import annotations


def duration(seconds: float) -> str:
    """Three digits, in s, ms or us.

    >>> duration(12.345), duration(0.0321), duration(1.5e-5), duration(0)
    ('12.3 s', '32.1 ms', '15 us', '0 s')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds >= 1 / scale or unit == "us":
            return f"{seconds * scale:.3g} {unit}" if seconds else "0 s"
    raise AssertionError("the last unit takes everything")
