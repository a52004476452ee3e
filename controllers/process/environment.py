# SPDX-License-Identifier: MIT
"""The environment variables of this process, changed for a while."""
from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_lock = threading.RLock()   # of two threads, the second one would restore the first one's change


@contextmanager
def environment(changed: Mapping[str, str | None]) -> Iterator[None]:
    """These variables have these values in here, and what they had before afterwards.

    None takes a variable away.

    >>> with environment({"CONTROLLERS_EXAMPLE": "on"}):
    ...     os.environ["CONTROLLERS_EXAMPLE"]
    'on'
    >>> "CONTROLLERS_EXAMPLE" in os.environ
    False
    """
    with _lock:
        before = {name: os.environ.get(name) for name in changed}
        _set(changed)
        try:
            yield
        finally:
            _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, text in values.items():
        if text is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = text
