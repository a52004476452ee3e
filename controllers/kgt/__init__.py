# SPDX-License-Identifier: MIT
"""The kernel generation tool: stages become OpenCL C that people can read.

After KGT, de Castro et al. 2023, doi:10.1007/s11227-022-05040-y.  It needs no OpenCL device.
"""

from controllers.kgt.candidates import (
    candidates,
    configuration_from,
    plain,
    steps_per_launch,
    suits,
)
from controllers.kgt.choice import (
    STRATEGIES,
    Launch,
    choose,
    described,
    loops_over_terms,
    step_counts,
    terms_of,
    usual_steps,
)
from controllers.kgt.generator import Configuration, generate
from controllers.kgt.kernel import GeneratedKernel

__all__ = [
    "STRATEGIES",
    "Configuration",
    "GeneratedKernel",
    "Launch",
    "candidates",
    "choose",
    "configuration_from",
    "described",
    "generate",
    "loops_over_terms",
    "plain",
    "step_counts",
    "steps_per_launch",
    "suits",
    "terms_of",
    "usual_steps",
]
