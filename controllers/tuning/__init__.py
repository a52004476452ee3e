# SPDX-License-Identifier: MIT
"""Tuning: the search for the configuration that is fastest on a device (docs/tuning.md).

What searches is loaded when it is asked for.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controllers.tuning.offline import Tried, Tuned, tune
    from controllers.tuning.under_way import Tuner, check_tuning

_HOMES = {
    "Tried": "offline",
    "Tuned": "offline",
    "Tuner": "under_way",
    "check_tuning": "under_way",
    "tune": "offline",
}
__all__ = ["Tried", "Tuned", "Tuner", "check_tuning", "tune"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'controllers.tuning' has no attribute {name!r}")
    return getattr(importlib.import_module(f"controllers.tuning.{_HOMES[name]}"), name)
