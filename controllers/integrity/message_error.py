# SPDX-License-Identifier: MIT
"""What messages may have suffered on their way."""
from __future__ import annotations

from controllers.process.error import ControllersError


class MessageError(ControllersError, RuntimeError):
    """A halo message has arrived otherwise than it was sent, as its checksum shows.

    Raised on all ranks, with `verify_messages`.
    """

    __module__ = "controllers"
