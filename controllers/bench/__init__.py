# SPDX-License-Identifier: MIT
"""Measurements that tell the truth: everything compared takes turns in one run, and is checked."""
from controllers.bench.case import run_case
from controllers.bench.comparator import Comparator, comparators_of
from controllers.bench.problem import SIZES, STENCILS, Problem
from controllers.bench.results import Case, Figure

__all__ = [
    "SIZES", "STENCILS", "Case", "Comparator", "Figure", "Problem", "comparators_of", "run_case",
]  # fmt: skip
