# SPDX-License-Identifier: MIT
"""Random programs with folds that repeat one or two runs of their stages, some until something."""
from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

from fold_programs import random_folds
from random_programs import ProgramCase

from controllers.program.repeat import Repeat


@cache
def random_repeats(number: int) -> ProgramCase:
    """Case `number`: a program that folds, of which one or two runs of stages are repeated."""
    case, rng = random_folds(number), random.Random(f"repeats {number}")
    stages = case.program.stages
    ends = sorted(rng.sample(range(len(stages) + 1), min(len(stages) + 1, rng.choice([2, 2, 4]))))
    folded = [{*stage.folds} for stage in stages]
    found: list[Repeat] = []
    for first, end in zip(ends[::2], ends[1::2]):
        names = [n for n in case.program.results if n in set().union(*folded[first:end])]
        asks = None if not names or rng.random() < 0.3 else _asks(rng.choice(names))
        n, every = rng.randint(1, 4), rng.randint(1, 3)
        found.append(Repeat(f"r_{first}", first, end, n, asks, every))
    return replace(case, program=replace(case.program, renames={}, repeats=tuple(found)))


def _asks(name: str) -> Any:
    return lambda now: getattr(now, name) > now.count - 2
