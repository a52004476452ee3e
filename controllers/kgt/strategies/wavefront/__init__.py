# SPDX-License-Identifier: MIT
"""The strategy "wavefront": several steps of a tile while it is in the cache, for CPUs.

It imports `kgt.text`, `kgt.kernel` and `kgt.launch`, and no other strategy.
"""
from controllers.kgt.strategies.wavefront.config import WavefrontConfig

__all__ = ["WavefrontConfig"]
