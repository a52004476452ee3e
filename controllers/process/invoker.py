# SPDX-License-Identifier: MIT
"""The invokers of kernels, kept in memory.

PyOpenCL writes Python for each kernel that is made, its invoker, and keeps it as a pickle in an
SQLite file in the user's cache folder: one that is locked stops every run, one that is damaged or
cannot be written fails it, and whoever can write it has code executed.  Here it is a dictionary.
"""
from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

_NAME = "pyopencl.invoker"
_lock = threading.Lock()


class InvokersInMemory(dict[Any, Any]):
    """What PyOpenCL uses of its cache of invokers, with neither file nor pickle."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def store_if_not_present(self, key: Any, value: Any) -> None:
        """Keep an invoker."""
        self.setdefault(key, value)


def keep_invokers_in_memory() -> None:
    """From now on no kernel of this process, whoever makes it, reads or writes the file."""
    with _lock:
        if _NAME not in sys.modules:
            _import_without_file()
        names = vars(sys.modules[_NAME])
        if not isinstance(names.get("invoker_cache"), InvokersInMemory):
            names["invoker_cache"] = InvokersInMemory()


def _import_without_file() -> None:
    """Import PyOpenCL's module, which would open the file at once."""
    names = vars(importlib.import_module("pytools.persistent_dict"))
    usual = names["WriteOncePersistentDict"]
    names["WriteOncePersistentDict"] = InvokersInMemory
    try:
        importlib.import_module(_NAME)
    finally:
        names["WriteOncePersistentDict"] = usual
