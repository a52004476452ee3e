# SPDX-License-Identifier: MIT
"""Programs lowered to schedules, and schedules built by hand, in NumPy."""
from __future__ import annotations

import numpy as np
import pytest
from random_programs import random_program

from controllers.language.weights import Stencil
from controllers.program.expression import Read, Scalar
from controllers.program.fold import Fold
from controllers.program.interpreter import run_schedule
from controllers.program.program import Field, Program
from controllers.program.reference import reference_run
from controllers.program.schedule import Repeat, Sequence, lowered, sweeps
from controllers.program.stage import Stage
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Version
from hitmap import Shape

MEAN = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float64")
DOMAIN = Shape.of_extent((9,))


NO_RENAMES = [number for number in range(60) if not random_program(number).program.renames]


@pytest.mark.parametrize("number", NO_RENAMES)
def test_a_repeated_step_is_what_the_reference_runs(number: int) -> None:
    case = random_program(number)
    step = lowered(case.program, Shape.of_extent(case.extent), case.periodic)
    got = run_schedule(Repeat(step, case.n_steps), case.arrays, case.periodic)
    for field, expected in case.expected.items():
        assert got[field].tobytes() == expected.tobytes(), field


def test_what_a_sweep_folds_is_given_to_the_next_ones() -> None:
    u = Read("u", (0,))
    look = Stage("look", {}, ((0, 0),), {"top": Fold("max", u, u < 7)})
    use = Stage("use", {"u": u / Scalar("share")}, ((0, 0),))
    program = Program(
        "p", (Field("u", "float64"),), (look, use), scalars={"share": Scalar("top") + 1}
    )
    around, start = Surroundings.usual(program, DOMAIN), {"u": np.arange(9.0)}
    step = lowered(program, DOMAIN, (False,))
    got = run_schedule(Repeat(step, 2), start, (False,), None, around, program.rules)
    assert np.array_equal(got["u"], reference_run(program, start["u"], 2))


def test_a_repeat_ends_when_the_data_say_so_or_after_so_many_times() -> None:
    step = lowered(MEAN, DOMAIN, (True,))
    start = {"u": np.random.default_rng(1).random(9)}

    def is_flat(now: object) -> bool:
        assert isinstance(now, dict)
        return bool(np.ptp(now["u"]) < 0.1)

    after = [reference_run(MEAN, start["u"], n, (True,)) for n in range(60)]
    wanted = next(n for n in range(1, 60) if np.ptp(after[n]) < 0.1)
    for at_most, done in ((59, wanted), (2, 2), (0, 0)):
        got = run_schedule(Repeat(step, at_most, is_flat), start, (True,))["u"]
        assert np.array_equal(got, after[done])
    with pytest.raises(ValueError, match="0 times or more, got -1"):
        Repeat(step, -1)


def test_repeats_nest_and_what_follows_goes_on_with_what_they_leave() -> None:
    (sweep,) = sweeps(lowered(MEAN, DOMAIN, (False,)))
    tree = Sequence((sweep, Repeat(Sequence((Repeat(sweep, 2), sweep)), 3), sweep))
    start = {"u": np.random.default_rng(2).random(9)}
    expected = reference_run(MEAN, start["u"], 1 + 3 * 3 + 1, (False,))
    assert np.array_equal(run_schedule(tree, start, (False,))["u"], expected)
    assert [*sweeps(tree)] == [sweep] * 4


def test_what_cannot_be_lowered_or_interpreted_is_refused() -> None:
    (stage,) = MEAN.stages
    twice = Program("p", (Field("u", "float64"),), (stage, stage))
    with pytest.raises(ValueError, match="launches of 2 steps are for programs of one stage"):
        lowered(twice, DOMAIN, (False,), 2)
    with pytest.raises(ValueError, match="lower the program for 1"):
        run_schedule(lowered(MEAN, DOMAIN, (False,), 3), {"u": np.zeros(9)}, (False,))


def test_a_stage_of_several_updates_is_one_sweep_that_reads_what_there_was_before() -> None:
    u, v = Read("u", (0,)), Read("v", (0,))
    turn = Stage("turn", {"u": v, "v": -u}, ((0, 0),))
    program = Program("p", (Field("u", "float64"), Field("v", "float64")), (turn, turn))
    first, second = sweeps(lowered(program, DOMAIN, (False,)))
    assert first.writes == second.writes == ("u", "v")
    assert [use.version for use in second.uses] == [Version("v", 1), Version("u", 1)]
    assert [update.version for update in second.updates] == [Version("u", 2), Version("v", 2)]
