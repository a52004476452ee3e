# SPDX-License-Identifier: MIT
"""The kernel generation tool: stages become OpenCL C that people can read.

After KGT, de Castro et al. 2023, doi:10.1007/s11227-022-05040-y.  It needs no OpenCL device, and
imports the rooms `language` and `program`.  `text` is the C that all kernels share, `strategies`
holds the ways to write one, the modules above these choose among them.
"""

from controllers.kgt.choice import (
    can_vary,
    candidates,
    choose,
    config_of,
    step_counts,
    usual_steps,
)
from controllers.kgt.generator import generate
from controllers.kgt.kernel import StageKernel
from controllers.kgt.launch import Launch
from controllers.kgt.strategies.config import Config
from controllers.kgt.strategies.table import STRATEGIES, config_from, plain, strategy_named

__all__ = [
    "STRATEGIES",
    "Config",
    "StageKernel",
    "Launch",
    "can_vary",
    "candidates",
    "choose",
    "config_from",
    "config_of",
    "generate",
    "plain",
    "step_counts",
    "strategy_named",
    "usual_steps",
]
