# SPDX-License-Identifier: MIT
"""What `check=` may say, and the environment where it says nothing."""
from __future__ import annotations

import os
from typing import Literal, TypeAlias, Union, get_args

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
    if isinstance(check, bool):
        return "on" if check else "off"
    return _named(check, "check")


def _named(word: str, what: str) -> Setting:
    for setting in get_args(Setting):
        if word == setting:
            found: Setting = setting
            return found
    raise ValueError(f"{what} is one of off, on, oclgrind (or True, False), got {word!r}")
