# SPDX-License-Identifier: MIT
"""The kernel generation tool: stages become OpenCL C that people can read.

After KGT, de Castro et al. 2023, doi:10.1007/s11227-022-05040-y.  It needs no OpenCL device.
"""

from controllers.kgt.generator import DEFAULT_STRATEGY, STRATEGIES, generate
from controllers.kgt.kernel import GeneratedKernel

__all__ = ["DEFAULT_STRATEGY", "STRATEGIES", "GeneratedKernel", "generate"]
