# SPDX-License-Identifier: MIT
"""The strategy "rows": bands of rows, for CPUs.

It imports `kgt.text`, `kgt.kernel` and `kgt.launch`, and no other strategy.
"""
from controllers.kgt.strategies.rows.config import RowsConfig

__all__ = ["RowsConfig"]
