# SPDX-License-Identifier: MIT
"""The strategy "marching": vectors in registers that march along an axis, for GPUs.

It imports `kgt.text`, `kgt.kernel` and `kgt.launch`, and no other strategy.
"""
from controllers.kgt.strategies.marching.config import MarchingConfig

__all__ = ["MarchingConfig"]
