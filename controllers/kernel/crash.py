# SPDX-License-Identifier: MIT
"""What was being done when native code crashes.

A driver that crashes ends the process at once; Python's `faulthandler` can then still print the
calls that were under way: file, line and name of each.  So what is done with a driver is called
through a function whose file is a label: which kernel, on which device, with which cache.
"""
from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import Any, TypeVar, cast

_R = TypeVar("_R")
_Work = TypeVar("_Work", bound=Callable[..., object])
_ERROR_OUTPUT = 2


def labelled(label: str, work: Callable[..., _R]) -> Callable[..., _R]:
    """`work`, under the name `label` in the list of calls that a crash prints."""

    def in_native_code(*args: Any) -> _R:
        return work(*args)

    return named(label, in_native_code)


def named(label: str, work: _Work) -> _Work:
    """A function under that name, without a call more; `work` is written in Python."""
    function = cast(FunctionType, work)
    code = function.__code__.replace(co_filename=label)
    made = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    return cast(_Work, made)


def tell_of_crashes() -> None:
    """Crashes of this process print the calls under way, if it has a standard error.

    Even where that leads elsewhere for a while, as it does while a user's kernel is built.
    """
    if not faulthandler.is_enabled():
        with suppress(OSError):
            faulthandler.enable(os.dup(_ERROR_OUTPUT))
