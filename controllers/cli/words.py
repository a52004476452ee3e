# SPDX-License-Identifier: MIT
"""What words after options mean: files, counts, seconds, bytes.

Each of these functions is the `type` of options; what it raises, the command line tells.
"""
from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from controllers.kernel.registry import GENERIC, SPECIALISED
from controllers.memory.ledger import parse_cap
from controllers.program.identifier import short
from controllers.settings.division import AUTO
from controllers.settings.launches import WIDTH_SEARCHES, check_steps, check_width
from controllers.settings.watchdog import limit

_T = TypeVar("_T")


def file_name(text: str) -> Path:
    """The name of a file."""
    if not text:
        raise ArgumentTypeError("the name of a file, got ''")
    return Path(text)


def kernel_word(text: str) -> str:
    """A kind of kernel, or the name of a file that holds one."""
    if text not in (SPECIALISED, GENERIC) and not text.endswith(".cl"):
        raise ArgumentTypeError(
            f"{SPECIALISED}, {GENERIC} or the name of a .cl file, got {short(text)}"
        )
    return text


def count(text: str) -> int:
    """A whole number."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise ArgumentTypeError(f"a whole number that is not negative, got {short(text)}")
    return value


def n_cells(text: str) -> int:
    """A number of cells, 1 or more."""
    return _at_least_one(text, "cell")


def n_places(text: str) -> int:
    """A number of places, 1 or more."""
    return _at_least_one(text, "place")


def n_chunks(text: str) -> int:
    """A number of chunks or slots, 1 or more."""
    return _at_least_one(text, "chunk")


def chunks_or_auto(text: str) -> int | Literal["auto"]:
    """The same, or that it is found out.

    >>> chunks_or_auto("auto"), chunks_or_auto("3")
    ('auto', 3)
    """
    return "auto" if text == "auto" else n_chunks(text)


def _at_least_one(text: str, noun: str) -> int:
    value = count(text)
    if value == 0:
        raise ArgumentTypeError(f"at least 1 {noun}, got 0")
    return value


def n_steps(text: str) -> int | tuple[int, ...]:
    """A number of steps per launch, or one for each place between commas.

    >>> n_steps("4"), n_steps("12,8")
    (4, (12, 8))
    """
    values = tuple(count(part) for part in text.split(","))
    for value in values:
        _told(check_steps, value)
    return values if len(values) > 1 else values[0]


def halo_width(text: str) -> int | str:
    """A number of steps between two exchanges, or how that is found out."""
    width = text if text in WIDTH_SEARCHES else count(text)
    _told(check_width, width)
    return width


def duration(text: str) -> float:
    """A number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"a number of seconds, at least 0, got {short(text)}")
    return value


def patience(text: str) -> float | bool:
    """The most seconds to wait; True for as long as it takes.

    >>> patience("2.5"), patience("yes")
    (2.5, True)
    """
    if text == "yes":
        return True
    value = duration(text)
    if not value:
        raise ArgumentTypeError(f"a number of seconds above 0, got {short(text)}")
    return value


def often(text: str) -> tuple[float, str]:
    """How often something is done: a number and its unit, `s` of seconds, `t` of time, or none.

    >>> often("100"), often("0.5t")
    ((100.0, ''), (0.5, 't'))
    """
    unit = text[-1:] if text[-1:] in ("s", "t") else ""
    try:
        value = float(text.removesuffix(unit))
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(
            f"a number above 0, of seconds with s, of time with t, got {short(text)}"
        )
    return value, unit


def watchdog_limit(text: str) -> float:
    """The seconds of a watchdog."""
    _told(limit, text)
    return float(text)


def memory_cap(text: str) -> int:
    """A number of bytes."""
    return _told(parse_cap, text)


def place_on_axis(text: str) -> tuple[str, float]:
    """The name of an axis and a number on it: z=1.5."""
    name, _, given = text.partition("=")
    try:
        return name, int(given) if given.lstrip("-").isdigit() else float(given)
    except ValueError:
        raise ArgumentTypeError(f"an axis and a number, such as z=10, got {short(text)}") from None


def limits(text: str) -> tuple[float, float]:
    """Two numbers, the first below: 0,1."""
    try:
        low, high = (float(one) for one in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"two numbers, such as 0,1.5, got {short(text)}") from None
    return low, high


def weights(text: str) -> list[float] | Literal["auto"]:
    """Numbers between commas, or "auto"."""
    if text == AUTO:
        return AUTO
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(
            f"numbers between commas, such as 1,3.7, or {AUTO}, got {short(text)}"
        ) from None


def _told(read: Callable[..., _T], given: object) -> _T:
    """What `read` makes of what is given; its ValueError is told."""
    try:
        return read(given)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
