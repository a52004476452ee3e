# SPDX-License-Identifier: MIT
"""What `check=` may say, and the environment where it says nothing."""
from __future__ import annotations

import os
from typing import Literal, TypeAlias, Union

VARIABLE = "CONTROLLERS_CHECK"
Setting = Literal["off", "on", "oclgrind"]
Check: TypeAlias = Union[bool, str, None]


def setting_of(check: Check) -> Setting:
    """The mode that is wanted; ValueError where `check` is none.

    >>> setting_of(True), setting_of("oclgrind"), setting_of(False)
    ('on', 'oclgrind', 'off')
    """
    if check is None:
        return _named(os.environ.get(VARIABLE) or "off", f"environment variable {VARIABLE}")
    return _named({True: "on", False: "off"}.get(check, check), "check")  # type: ignore[call-overload]


def _named(word: object, what: str) -> Setting:
    for setting in ("off", "on", "oclgrind"):
        if word == setting:
            return setting  # type: ignore[return-value]
    raise ValueError(f"{what} is one of off, on, oclgrind (or True, False), got {word!r}")
