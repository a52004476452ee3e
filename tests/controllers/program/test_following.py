# SPDX-License-Identifier: MIT
"""What a step renames, as launches of several steps write it."""
from __future__ import annotations

from dataclasses import replace

import pytest
from time_levels import wave

from controllers.program.expression import Read
from controllers.program.following import followed, leader, leading
from controllers.program.liveness import Liveness
from controllers.program.program import Field, Program, Stage
from controllers.program.schedule import lowered, sweeps
from controllers.program.steps import offsets_read, why_single
from controllers.program.sweep import Version
from hitmap import Region, Shape

DOMAIN = Shape.of_extent((20, 10))
U, OLD = Read("u", (0, 0)), Read("old", (0, 0))
NEAR = ((-1, 1), (-1, 1))


def program(renames: dict[str, str], *stages: Stage, names: str = "u old") -> Program:
    fields = tuple(Field(name, "float32") for name in names.split())
    return Program("p", fields, stages, renames=renames)


def test_the_field_that_follows_is_written_and_nothing_is_renamed() -> None:
    made = followed(wave())
    (stage,) = made.stages
    assert made.renames == {} and [*stage.updates] == ["u", "before"]
    assert leading(stage) == wave().stages[0] and leader(stage) == "u"
    assert followed(made) is made
    plain = replace(wave(), renames={})
    assert followed(plain) is plain and leading(plain.stages[0]) is plain.stages[0]


@pytest.mark.parametrize(("given", "reason"), [
    (program({"old": "u"}, Stage("s", {"u": U + OLD}, NEAR)), ""),
    (program({"old": "u"}, Stage("s", {"u": U + Read("old", (0, 1))}, NEAR)), "does not read at"),
    (program({"old": "u"}, Stage("s", {"u": U + Read("u", (0, 1))}, NEAR)), "does not read at"),
    (program({"old": "u"}, Stage("s", {"u": U + OLD, "k": U}, NEAR), names="u old k"),
     "not all that its stage updates"),
    (program({"old": "u", "k": "old"}, Stage("s", {"u": U + OLD}, NEAR), names="u old k"),
     "several fields, old, k"),
    (program({"old": "u"}, Stage("s", {"u": OLD * 2}, NEAR)), "does not read the field"),
    (program({"old": "u"}, Stage("s", {"u": U + OLD}, NEAR), Stage("t", {"u": U * 2}, NEAR)),
     "several stages"),
])  # fmt: skip
def test_which_renames_can_be_written(given: Program, reason: str) -> None:
    assert reason in why_single(given, DOMAIN) and bool(reason) == bool(why_single(given, DOMAIN))
    if reason:
        with pytest.raises(ValueError, match="needs 1 step per launch"):
            lowered(given, DOMAIN, (False, False), 2)


def test_it_is_read_as_far_as_all_steps_but_the_last_reach() -> None:
    (sweep,) = sweeps(lowered(wave(), DOMAIN, (False, False), 4))
    over, (u, before) = Shape((8, 5), (9, 6)), sweep.uses
    assert sweep.read(u, over) == Shape((4, 1), (13, 10))
    assert sweep.read(before, over) == Shape((5, 2), (12, 9))
    assert offsets_read(sweep.stage, "before", 4) == Shape((-3, -3), (4, 4))
    assert sweep.writes == ("u", "before")


def test_cells_that_no_step_computes_come_from_the_field_that_it_follows() -> None:
    (sweep,) = sweeps(lowered(wave(), DOMAIN, (False, False), 4))
    live = Liveness({"u": DOMAIN, "before": DOMAIN}, [sweep])
    assert (live.n_buffers, live.period) == ({"u": 2, "before": 2}, 2)
    made = Version("before", 1)
    assert live.before(made) == Version("u", 0) and live.last("before") == made
    edge = Region.of([DOMAIN]) - sweep.cells
    for phase in range(2):
        assert (live.carried(made, phase) - edge).empty and (edge - live.carried(made, phase)).empty
        assert live.carried(Version("u", 1), phase).empty
    assert live.goes_whole("before") and not live.goes_whole("u")
    assert {version.field for version in live.exchanged} == {"u", "before"}
