# SPDX-License-Identifier: MIT
"""The strategy "cell": one cell per work-item, for any device.

It imports `kgt.text`, `kgt.kernel` and `kgt.launch`, and no other strategy.
"""
from controllers.kgt.strategies.cell.config import CellConfig, GroupsConfig

__all__ = ["CellConfig", "GroupsConfig"]
