# SPDX-License-Identifier: MIT
"""Arguments of public calls, checked at the door: what was expected, what came, what to do.

NumPy's integers count as whole numbers; `True`, 10.0 and "10" do not: who writes them means
something else.
"""
from __future__ import annotations

import numbers
import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

MAX_BITS = 1024     # of a number in a message
_T = TypeVar("_T")


def short(value: object) -> str:
    """`repr(value)`, cut where it is long, for messages.

    >>> short("a" * 99)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
    >>> short(10**9999)     # of which Python makes no text
    'a whole number of 33216 bits'
    """
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"a whole number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def wrong(what: str, expected: str, got: object, remedy: str = "") -> TypeError:
    """The error to raise where `what` is of another type than expected."""
    named = f"{type(got).__name__} {short(got)}" if got is not None else "None"
    return TypeError(f"{what}: {expected} is expected, got {named}{remedy and f'; {remedy}'}")


def whole(value: object, what: str, least: int | None = None) -> int:
    """`value` as an int; TypeError unless it is a whole number, ValueError below `least`.

    >>> whole(np.int64(3), "steps"), whole(0, "steps", 0)
    (3, 0)
    >>> whole(10.0, "steps")
    Traceback (most recent call last):
    TypeError: steps: a whole number is expected, got float 10.0; write 10
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        remedy = "write it without a point or quotes"
        if isinstance(value, (float, np.floating)) and float(value).is_integer():
            remedy = f"write {short(int(value))}"
        raise wrong(what, "a whole number", value, remedy)
    if least is not None and value < least:
        raise ValueError(
            f"{what} must be at least {least}, got {short(int(value))}; use a larger number"
        )
    return int(value)


def wholes(values: object, what: str, least: int | None = None) -> tuple[int, ...]:
    """Several whole numbers, of a sequence or an array with one axis.

    >>> wholes([3, np.int64(4)], "sizes")
    (3, 4)
    """
    return tuple(whole(value, what, least) for value in sequence(values, what, "whole numbers"))


def sizes_of(sizes: object, what: str = "sizes") -> tuple[int, ...]:
    """Extents, given as one number or several.

    >>> sizes_of(9), sizes_of([np.int64(3), 4])
    ((9,), (3, 4))
    """
    if isinstance(sizes, (int, float, np.generic)):
        return (whole(sizes, what),)
    return wholes(sizes, what)


def number(value: object, what: str) -> float:
    """`value`, if it is a real number; TypeError otherwise."""
    is_bool = isinstance(value, (bool, np.bool_))
    if is_bool or not isinstance(value, (numbers.Real, np.floating, np.integer)):
        raise wrong(what, "a number", value, "write one without quotes")
    return value  # type: ignore[return-value]


def sequence(values: object, what: str, of: str) -> Sequence[Any]:
    """`values`, if they are a list, a tuple or the like; TypeError otherwise."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return values.tolist()  # type: ignore[no-any-return]
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        return values
    raise wrong(what, f"a list or tuple of {of}", values, "put them into brackets")


def instance(value: object, kind: type[_T], what: str, remedy: str = "") -> _T:
    """`value`, if it is a `kind`; TypeError otherwise."""
    if not isinstance(value, kind):
        name = "text" if kind is str else kind.__name__
        raise wrong(what, f"{'an' if name[0] in 'AEIOU' else 'a'} {name}", value, remedy)
    return value


def function(value: object, what: str) -> None:
    """TypeError unless `value` can be called."""
    if not callable(value):
        raise wrong(what, "a function", value, "give its name, without calling it")


def file_name(value: object, what: str) -> None:
    """TypeError unless `value` names a file."""
    if not isinstance(value, (str, os.PathLike)):
        raise wrong(what, "the name of a file", value, "write a text or a Path")


def one_of(value: object, words: Iterable[str], what: str) -> None:
    """TypeError where `value` is no text, ValueError where it is none of `words`."""
    known = tuple(words)
    if not isinstance(value, str):
        raise wrong(what, f"one of {', '.join(known)}", value, "write it in quotes")
    if value not in known:
        raise ValueError(f"{what} is one of {', '.join(known)}, got {short(value)}")
