# SPDX-License-Identifier: MIT
"""Tuning: the search for the configuration that is fastest on a device (docs/tuning.md)."""
from controllers.tuning.offline import Tried, Tuned, tune
from controllers.tuning.under_way import Tuner, check_tuning

__all__ = ["Tried", "Tuned", "Tuner", "check_tuning", "tune"]
