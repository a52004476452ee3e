# SPDX-License-Identifier: MIT
"""Programs whose stored values are in temporary fields are made what they were."""
from __future__ import annotations

from dataclasses import replace

import pytest
from random_boundaries import same
from sample import sample
from stored_programs import stored_program

from controllers.program.expression import Application, Read
from controllers.program.field import Field
from controllers.program.functions import STORED
from controllers.program.neighbour import shifted
from controllers.program.program import Program
from controllers.program.repeat import Repeat
from controllers.program.stage import Part, Stage
from controllers.program.storing import with_temporaries
from controllers.program.undivided import undivided

U = Read("u", (0,))


@pytest.mark.parametrize("number", sample(range(60), 20))
def test_a_program_becomes_what_it_was(number: int) -> None:
    case = stored_program(number)
    made = with_temporaries(case.program, "always")
    found = undivided(made)
    assert not found.temporaries and len(found.stages) == len(case.program.stages)
    wholes = {stage.whole for stage in made.stages if isinstance(stage, Part) and not stage.rim}
    assert wholes <= {*found.stages} & {*case.program.stages}
    for name, right in replace(case, program=found).expected.items():
        assert same(case.expected[name], right), name
    assert undivided(case.program) is case.program


def test_repeats_are_of_the_stages_that_they_were_of() -> None:
    flux = Application(STORED, U * Read("u", (1,)))
    flow = Stage("flow", {"u": U + flux - shifted(flux, (-1,))}, ((-1, 1),))
    plain = Stage("plain", {"u": U + 1}, ((0, 0),))
    program = Program(
        "p", (Field("u", "float64"),), (plain, flow, flow, plain), repeats=(Repeat("r", 1, 3, 4),)
    )
    made = with_temporaries(program, "always")
    assert (made.repeats[0].first, made.repeats[0].end) == (1, 5)
    assert undivided(made) == replace(program, results=())
