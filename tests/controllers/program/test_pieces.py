# SPDX-License-Identifier: MIT
"""Which updates of fields at unlike locations are one sweep, and what completes it."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from controllers.program.boundary import Boundary, Mirror
from controllers.program.expression import Expression, Read, Scalar
from controllers.program.fold import Fold
from controllers.program.interpreter import run_schedule
from controllers.program.liveness import Liveness
from controllers.program.pieces import computes_alike, division, pieces
from controllers.program.program import Field, Program
from controllers.program.reference import reference_run
from controllers.program.scalars import Parameter
from controllers.program.schedule import lowered, sweeps
from controllers.program.stage import Stage
from controllers.program.sweep import Version
from hitmap.region import Region
from hitmap.shape import Shape

DOMAIN, OPEN, RING = Shape((0, 0), (5, 6)), (False, False), (True, True)
HALVES = {"p": (), "u": (False, True), "v": (True, False), "z": (True, True)}
STAR = ((-1, 1), (-1, 1))


def near(name: str) -> Expression:
    return Read(name, (0, 0)) + Read(name, (-1, 0)) * Read(name, (0, -1))


def program_of(rule: str = "mirror", **more: str) -> Program:
    """All four locations in one stage; fields are float64 but for `more`."""
    boundary = Boundary.of(rule, 2)
    fields = tuple(
        Field(name, more.get(name, "float64"), boundary, half) for name, half in HALVES.items()
    )
    updates = {name: Read(name, (0, 0)) / 2 + near("p") / 8 for name in HALVES}
    return Program("flow", fields, (Stage("flow", updates, STAR),))


def test_each_point_is_computed_once_with_all_fields_that_have_it() -> None:
    program = program_of()
    (group,) = pieces(program, program.stages[0], DOMAIN, OPEN)
    assert [(stage.name, str(box)) for stage, box in group] == [
        ("flow", "[0:5, 0:6]"), ("flow_of_z", "[5:6, 6:7]"), ("flow_of_u_z", "[0:5, 6:7]"),
        ("flow_of_v_z", "[5:6, 0:6]"),
    ]  # fmt: skip
    for field in program.fields:
        boxes = [box for stage, box in group if field.name in stage.updates]
        own = Region.of([field.boundary.points(DOMAIN, OPEN)])
        assert Region.of(boxes) == own and sum(box.n_cells for box in boxes) == own.n_cells


def test_on_rings_one_sweep_computes_all() -> None:
    program = program_of("periodic")
    stage = program.stages[0]
    assert pieces(program, stage, DOMAIN, RING) == (((stage, DOMAIN),),)
    assert computes_alike(program, stage)
    assert not computes_alike(program_of(), program_of().stages[0])
    assert division(program, stage, DOMAIN, RING) == (
        "flow: one sweep for p and u and v and z, which lie at unlike points: it moves 64 instead "
        "of 88 bytes per cell"
    )


def reason(program: Program, domain: Shape = DOMAIN, launch_nbytes: float = 0) -> str:
    """Why locations are sweeps of their own."""
    stage = program.stages[0]
    groups = pieces(program, stage, domain, program.periodic, launch_nbytes)
    assert all(len(group) == 1 for group in groups) and len(groups) > 1
    return division(program, stage, domain, program.periodic, launch_nbytes).partition("since ")[2]


def test_locations_stay_apart_where_that_is_needed_or_faster() -> None:
    program = program_of()
    (stage,) = program.stages
    total = replace(stage, folds={"total": Fold("sum", Read("p", (0, 0)))})
    assert reason(replace(program, stages=(total,))) == "total is folded of the cells of p alone"
    assert len(pieces(program_of("periodic"), total, DOMAIN, RING)) == 1
    mixed = program_of(v="float32")
    scaled = {name: value * Scalar("rate") for name, value in stage.updates.items()}
    mixed = replace(mixed, scalars={"rate": Parameter(1.0)},
                    stages=(replace(stage, updates=scaled),))  # fmt: skip
    assert len(pieces(mixed, mixed.stages[0], DOMAIN, OPEN)) == 1   # all of them read p
    singles = replace(mixed, stages=(replace(
        stage, updates={name: Read(name, (0, 0)) * Scalar("rate") for name in "uv"}
    ),))  # fmt: skip
    assert reason(singles) == "they round scalars or coordinates to unlike dtypes"
    both = {name: Read(name, (0, 0)) / 2 for name in "uv"}
    other = replace(program, stages=(Stage("halve", both, STAR),))
    assert reason(other) == "that moves as many bytes"
    flat = {"u": near("p"), "v": near("p")}
    thin = replace(program_of("keep"), stages=(Stage("thin", flat, STAR),))
    assert reason(thin, Shape((0, 0), (1, 1))) == "they have no cells in common"
    more = {"p": near("p"), "z": near("p")}
    small = replace(program, stages=(Stage("small", more, STAR),))
    assert reason(small, DOMAIN, 300) == "1 launches more take longer than 8 bytes less per cell"
    assert len(pieces(small, small.stages[0], DOMAIN, OPEN, 200)) == 1


def test_versions_are_made_when_all_their_sweeps_are_done() -> None:
    program = program_of()
    made = [*sweeps(lowered(program, DOMAIN, OPEN))]
    domains = {one.name: one.boundary.points(DOMAIN, OPEN) for one in program.fields}
    live = Liveness(domains, made)
    assert live.groups == ((0, 1, 2, 3),)
    assert [one.completes for one in made] == [False, True, True, True]
    assert {live.maker(Version(name, 1)) for name in HALVES} == {3}
    assert live.n_buffers == {"p": 2, "u": 1, "v": 1, "z": 1}     # p is read at neighbours
    assert {name for one in live.sweeps for name in one.stage.overwrites} == {"u", "v", "z"}
    assert all(live.carried(Version(name, 1), 0).empty for name in HALVES)
    assert live.first_near(Version("p", 1)) == 4
    assert live.writings("z") == (Region.of([domains["z"]]),)


def test_nothing_is_written_over_that_a_sweep_reads_where_it_does_not_write() -> None:
    """What is copied to cells that are not computed comes before all launches."""
    u, p, old = (Read(name, (0, 0)) for name in ("u", "p", "old"))
    moved, both = {"u": u + old}, {"u": u + old, "p": p + u + old}
    n_buffers = []
    for sign, updates in ((1, moved), (1, both), (-1, moved), (-1, both)):
        rule = Boundary.of([Mirror(), Mirror(sign)], 2)
        fields = (Field("u", "float64", rule, HALVES["u"]), Field("old", "float64", rule,
                  HALVES["u"]), Field("p", "float64", rule))  # fmt: skip
        program = Program("p", fields, (Stage("s", updates, STAR),), renames={"old": "u"})
        domains = {one.name: one.boundary.points(DOMAIN, OPEN) for one in program.fields}
        made = [*sweeps(lowered(program, DOMAIN, OPEN))]
        n_buffers.append(Liveness(domains, made, program.renames).n_buffers["u"])
    assert n_buffers == [2, 2, 2, 3]    # the last p reads what is old at a wall of u


@pytest.mark.parametrize("rule", ["mirror", "periodic", "keep"])
def test_schedules_of_several_pieces_mean_what_programs_mean(rule: str) -> None:
    program = program_of(rule)
    values = np.random.default_rng(4)
    arrays = {
        one.name: values.random(one.boundary.points(DOMAIN, program.periodic).extent)
        for one in program.fields
    }
    schedule = lowered(program, DOMAIN, program.periodic)
    found = run_schedule(schedule, arrays, program.periodic, program.boundaries)
    right = reference_run(program, arrays, 1)
    assert all(np.array_equal(found[name], right[name]) for name in right)
