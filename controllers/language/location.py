# SPDX-License-Identifier: MIT
"""Which line of the user's file an error is about."""
from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import numpy as np

import controllers
import hitmap

# files that no user wrote: those of these packages, but for the examples that travel in ours
_OURS = tuple(
    f"{os.path.dirname(os.path.abspath(str(package.__file__)))}{os.sep}"
    for package in (controllers, hitmap, np)
)
_EXAMPLES = f"{_OURS[0]}examples{os.sep}"
_LIBRARY = f"{os.path.dirname(os.path.abspath(os.__file__))}{os.sep}"
_PLAIN = (AttributeError, IndexError, TypeError, ValueError)


@contextmanager
def located(what: str, function: Callable[..., object]) -> Iterator[None]:
    """An error that arises below, in the packages' code, names the line that called them.

    `function` is the user's, which is called there; where it begins is said where no line is known.
    What the user's own code raises goes through as it is: its traceback says where.
    """
    try:
        yield
    except RecursionError as error:
        where = _users_line(error.__traceback__) or line_of(function)
        raise RecursionError(
            f"{where}, in {what}: a function calls itself too often ({error}); a step is traced "
            f"once, so write what it does as a loop, or as several steps"
        ) from None
    except _PLAIN as error:
        if type(error) not in _PLAIN:
            raise
        line = _line(error.__traceback__)
        if line is None:
            raise
        line = line or line_of(function)
        raise type(error)(f"{line}, in {what}: {error}") from error


def line_of(function: Callable[..., object]) -> str:
    """Where a function begins: "wave.py:12"; its name, where it has no file."""
    where = getattr(function, "where", None)
    if isinstance(where, str):      # of a step in OpenCL C
        return where
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return str(getattr(function, "__name__", "a function"))
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"


def _line(trace: TracebackType | None) -> str | None:
    """The innermost line of the user's where the packages raised; None where the user did."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    if not frames or not _is_ours(frames[-1][0]):
        return None
    return _users_line(trace)


def _users_line(trace: TracebackType | None) -> str:
    """The innermost line that neither the packages nor Python itself wrote; "" without any."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    users = [(name, line) for name, line in frames if not (_is_ours(name) or _is_pythons(name))]
    return f"{os.path.basename(users[-1][0])}:{users[-1][1]}" if users else ""


def _is_pythons(name: str) -> bool:
    """Whether a file is of Python's own library, of which installed packages are none."""
    return name.startswith((_LIBRARY, "<frozen")) and f"{os.sep}site-packages{os.sep}" not in name


def _is_ours(name: str) -> bool:
    path = os.path.abspath(name)
    return path.startswith(_OURS) and not path.startswith(_EXAMPLES)
