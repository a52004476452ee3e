# SPDX-License-Identifier: MIT
"""Programs without temporary fields: what is stored is computed where it is read."""
from __future__ import annotations

from dataclasses import replace

from controllers.program.program import Program
from controllers.program.repeat import moved
from controllers.program.stage import Part


def undivided(program: Program) -> Program:
    """The program that became one with temporary fields (`controllers.program.storing`)."""
    if not program.temporaries:
        return program
    lasting = [not stage.rim for stage in program.stages]
    return replace(
        program,
        stages=tuple(
            stage.whole if isinstance(stage, Part) else stage
            for stage, lasts in zip(program.stages, lasting) if lasts
        ),
        repeats=tuple(moved(program.repeats, [*map(int, lasting)])),
        temporaries=(),
    )  # fmt: skip
