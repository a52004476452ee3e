# SPDX-License-Identifier: MIT
"""A disk without room, for tests of what writes files."""
from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full_disk(nbytes: int) -> Iterator[None]:
    """In here files of this process get no longer than so many bytes; more is an OSError."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
