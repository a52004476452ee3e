# SPDX-License-Identifier: MIT
"""Names of users in kernels that have variables of their own.

A field is a parameter of its kernel by its name.  Where a strategy calls a variable so, the kernel
is written for another name; arguments are positional, so that who launches it need not know.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from controllers.kgt.kernel import StageKernel
from controllers.kgt.text.report import REPORT
from controllers.program.names import under_names
from controllers.program.program import Program, Stage

# What bodies and macros of strategies call their variables, unless `check_field_name` refuses it.
LOCALS = re.compile(
    r"age|ahead|at|before|behind|cells|coming|computed|delay|easy|edges|end|fresh|from|hard|held|i|inside|j|"
    r"k|late|made|mirrored|next|odd|offsets|past|plane|seen|side|since|stays|step|to|turn|until|value|"
    r"whole|(back|computed|first|highest|kept|least|lowest|most|tile|wall)_\w+"
)


def clashes(stage: Stage) -> dict[str, str]:
    """The fields of a stage that are called as a variable of kernels, and names to take instead.

    >>> from controllers.program.node import Read
    >>> stage = Stage("s", {"next": Read("k", (0,)) + Read("u", (0,))}, ((0, 0),))
    >>> clashes(stage)
    {'k': 'f_k', 'next': 'f_next'}
    """
    fields = dict.fromkeys((*stage.fields_read, *stage.updates))
    found: dict[str, str] = {}
    for field in fields:
        if LOCALS.fullmatch(field):
            free = f"f_{field}"
            while free in fields or free in found.values():
                free = f"f_{free}"
            found[field] = free
    return found


def renamed(program: Program, stage: Stage, names: Mapping[str, str]) -> tuple[Program, Stage]:
    """The same computed on fields of other names; all of a program that its kernels depend on."""
    stage = under_names(stage, names)
    used = (*stage.fields_read, *stage.updates, stage.home)
    old = {new: name for name, new in names.items()}
    fields = [
        replace(program.field(old.get(name, name)), name=name) for name in dict.fromkeys(used)
    ]
    within = [one for one in program.temporaries if one in fields]     # which lie on no ring
    alone = replace(
        program, fields=tuple(one for one in fields if one not in within) or program.fields[:1],
        stages=(stage,), renames={}, temporaries=tuple(within),
    )  # fmt: skip
    return alone, stage


def with_names(kernel: StageKernel, names: Mapping[str, str]) -> StageKernel:
    """`kernel`, written for other names, with the parameters of the users' ones."""
    old = {new: name for name, new in names.items()}
    each = "|".join(map(re.escape, old))
    words = re.compile(rf"({REPORT})?({each})(_new|_first|_pitch_\d)?")

    def called(name: str) -> str:
        found = words.fullmatch(name)
        return name if found is None else (found[1] or "") + old[found[2]] + (found[3] or "")

    parameters = (replace(one, name=called(one.name)) for one in kernel.parameters)
    return replace(kernel, parameters=tuple(parameters))
