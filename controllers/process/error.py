# SPDX-License-Identifier: MIT
"""The base of all errors of this package's own."""
from __future__ import annotations


class ControllersError(Exception):
    """What goes wrong here and is no mistake of an argument's type or value alone.

    Each of its classes derives from a builtin one too: who catches that catches it.
    """

    __module__ = "controllers"
