# SPDX-License-Identifier: MIT
"""The environment variables of this process, changed for a while."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def environment(changed: Mapping[str, str]) -> Iterator[None]:
    """These variables have these values in here, and what they had before afterwards.

    >>> with environment({"CONTROLLERS_EXAMPLE": "on"}):
    ...     os.environ["CONTROLLERS_EXAMPLE"]
    'on'
    >>> "CONTROLLERS_EXAMPLE" in os.environ
    False
    """
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, text in before.items():
            if text is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = text
