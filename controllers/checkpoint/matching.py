# SPDX-License-Identifier: MIT
"""Whether a run can go on from a checkpoint: what differs between then and now, by name."""
from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

import numpy as np

from controllers.plan import Plan
from controllers.program.program import Program
from controllers.program.structure import parts
from hitmap.argument import short

MOST = 6        # differences that are told
PROCESS = secrets.token_hex(8)      # this one, and those that it forks


def facts_of(program: Program, plan: Plan) -> dict[str, str]:
    """What must be as it was."""
    found = parts(program)
    for field in program.fields:
        found[f"the cells of {field.name}"] = repr(plan.layout_of(field.name).domain.extent)
        found[f"the bytes of {field.name}"] = np.dtype(field.dtype).str
    return found


def differences(then: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """What is unlike, each by its name.

    >>> differences({"the program": "heat", "dt": 1.0}, {"the program": "heat", "dt": 0.5, "k": 2})
    ['dt was 1.0 and is 0.5', 'k was not there and is 2']
    """
    found = []
    for name in dict.fromkeys((*then, *now)):
        before, after = then.get(name), now.get(name)
        if before != after:
            was = "was not there" if name not in then else f"was {_shown(before)}"
            found.append(f"{name} {was} and is {_shown(after) if name in now else 'no more'}")
    return found


def told(found: Sequence[str]) -> str:
    """Some of them in one text."""
    more = f", and {len(found) - MOST} more" if len(found) > MOST else ""
    return "; ".join(found[:MOST]) + more


def _shown(value: object) -> str:
    return value if isinstance(value, str) else short(value)
