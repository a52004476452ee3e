# SPDX-License-Identifier: MIT
"""The strategy "generic": any weighted sum, whose terms are data, for any device.

It imports `kgt.text`, `kgt.kernel` and `kgt.launch`, and no other strategy.
"""
from controllers.kgt.strategies.generic.config import GenericConfig

__all__ = ["GenericConfig"]
