# SPDX-License-Identifier: MIT
"""The strategy "items": one item per work-item, for any device.

It imports `kgt.text`, `kgt.kernel` and `kgt.launch`, and no other strategy.
"""
from controllers.kgt.strategies.items.config import ItemsConfig, ItemsOnCpuConfig

__all__ = ["ItemsConfig", "ItemsOnCpuConfig"]
