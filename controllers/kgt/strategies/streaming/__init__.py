# SPDX-License-Identifier: MIT
"""The strategy "streaming": several steps in registers, plane by plane, for GPUs.

It imports `kgt.text`, `kgt.kernel` and `kgt.launch`, and no other strategy.
"""
from controllers.kgt.strategies.streaming.config import StreamingConfig

__all__ = ["StreamingConfig"]
