# SPDX-License-Identifier: MIT
"""What random traced programs are made of: a choice of each option, so that all pairs occur."""
from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from itertools import combinations
from typing import Any

N_CASES = 150
OPTIONS: dict[str, tuple[Any, ...]] = {
    "axes": (1, 2, 3),
    "fields": (1, 2, 3, 4, 5),      # of the program: each component of a struct is one
    "stages": (1, 2, 3, 4),
    "dtypes": ("float32", "float64", "integers", "floats", "mixed"),
    "boundary": ("keep", "periodic", "fixed", "mirror", "extrapolate", "custom", "function"),
    "over": ("all", "box", "parity", "mask"),
    "structs": (False, True),
    "renames": ("none", "earlier", "swap"),
    "stored": ("none", "never", "always"),      # what `stored` marks is kept in memory
    "scalars": ("none", "parameter", "time", "coordinate", "point"),
    "strategy": ("cell", "rows", "marching"),
    "steps": (1, 2, 3, 4),          # of a launch
}
Choice = Mapping[str, Any]
Pair = tuple[tuple[str, Any], tuple[str, Any]]


def allowed(chosen: Choice) -> bool:
    """Whether options go together; those that are not chosen yet are no hindrance."""
    fields, dtypes = chosen.get("fields", 5), chosen.get("dtypes", "float32")
    structs, renames = chosen.get("structs", False), chosen.get("renames", "none")
    # of unlike dtypes: a struct is of one kind, and names are exchanged within one dtype
    groups = fields - structs - {"none": 0, "earlier": 1 + structs, "swap": 1}[renames]
    computed = groups - (renames == "swap")
    if computed < 1 or (dtypes == "mixed" and groups < 2):
        return False
    if dtypes == "floats" and fields - (renames != "none") * (1 + structs) < 2:
        return False
    if dtypes == "integers" and chosen.get("boundary") == "function":
        return False                # its values are no whole numbers
    if renames != "none" and chosen.get("over", "all") != "all" and chosen.get("stages", 4) == 1:
        return False                # a rename is of all cells
    return chosen.get("steps", 1) == 1 or (
        chosen.get("stages", 1) == 1 and renames == "none" and not structs
        and chosen.get("stored", "none") == "none"
        and chosen.get("over", "all") in ("all", "mask")
        and chosen.get("scalars", "none") in ("none", "parameter")
        and chosen.get("boundary", "keep") in ("keep", "periodic", "fixed")
    )  # fmt: skip


@cache
def all_pairs() -> frozenset[Pair]:
    """Those of two options that go together."""
    singles = [(name, value) for name, values in OPTIONS.items() for value in values]
    pairs = ((a, b) for a, b in combinations(singles, 2) if a[0] != b[0])
    return frozenset(pair for pair in pairs if allowed(dict(pair)))


def pairs_of(chosen: Choice) -> frozenset[Pair]:
    """Of one case."""
    return frozenset(combinations([(name, chosen[name]) for name in OPTIONS], 2))


@cache
def choices() -> tuple[Choice, ...]:
    """What each case is: each has as many pairs that none before had as a quick search finds."""
    rng, missing = random.Random(12), set(all_pairs())
    found = []
    for _ in range(N_CASES):
        chosen: dict[str, Any] = dict(min(missing, key=repr)) if missing else {}
        for name in rng.sample(sorted(OPTIONS), len(OPTIONS)):
            if name not in chosen:
                values = [v for v in OPTIONS[name] if allowed({**chosen, name: v})]
                rng.shuffle(values)
                chosen[name] = max(values, key=lambda v: _n_missing(chosen, (name, v), missing))
        missing -= pairs_of(chosen)
        found.append(chosen)
    return tuple(found)


def _n_missing(chosen: Choice, one: tuple[str, Any], missing: set[Pair]) -> int:
    return sum((one, other) in missing or (other, one) in missing for other in chosen.items())
