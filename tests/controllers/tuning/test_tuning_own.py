# SPDX-License-Identifier: MIT
"""Tuning of kernels of the user's own: variants for the same device, and spaces of values."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sample import sample

from controllers import Computation, Kernel, Stencil, reference_run, tune
from controllers.kernel.candidate import OwnCandidate
from controllers.kernel.winners import VARIABLE
from controllers.tuning import Tuned
from hitmap.comm import SerialCommunicator

FOUR = Stencil.of("four", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
EXTENT = (45, 83)
STEPS = 300     # enough for a search of a few candidates
SUM = "(NEAR(u, -1, 0) + NEAR(u, 0, -1) + NEAR(u, 0, 1) + NEAR(u, 1, 0))"
MEAN = f"NEW(u) = {SUM} / 4;"
OTHER = f"NEW(u) = {SUM} * 0.26f;"
HIGHER = "NEW(u) = NEAR(u, -1, 0) > NEAR(u, 1, 0) ? NEAR(u, -1, 0) : NEAR(u, 1, 0)"
FAR = f"{HIGHER} + 0 * NEAR(u, 1, 1);"
CELLS = """
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void cells(__global const VALUE *restrict u, __global VALUE *restrict u_new, TILE(u), BOX)
{
    const long i = (long)get_global_id(1);
    for (long j = CELLS * (long)get_global_id(0); j < CELLS * (long)get_global_id(0) + CELLS; ++j)
        if (i < extent_0 && j < extent_1)
            u_new[u_first + i * u_pitch_0 + j] = (AT_LOCAL(u, i - 1, j) + AT_LOCAL(u, i, j - 1)
                + AT_LOCAL(u, i, j + 1) + AT_LOCAL(u, i + 1, j)) / 4;
}
"""
SPACE = Kernel.of("cells", CELLS, space={"CELLS": (1, 4), "ITEMS": (8, 16)},
                  cells_per_item=(1, "CELLS"))  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tuning"))
    return tmp_path / "tuning"


def field() -> npt.NDArray[Any]:
    return np.random.default_rng(1).random(EXTENT, np.float32)


def run_of(kernel: Kernel, tune: float = 600.0, **options: Any) -> Computation:
    run = Computation(
        FOUR, EXTENT, kernel=kernel, tune=tune, devices="cpu:0", comm=SerialCommunicator(),
        overlap="off", **options,
    )  # fmt: skip
    run.scatter(field())
    return run


def in_use(run: Computation) -> str:
    (kernel,) = run.report().kernels
    return kernel.origin


def right(n_steps: int) -> npt.NDArray[Any]:
    return reference_run(FOUR, field(), n_steps, (False, False))


def test_a_space_makes_variants_of_which_the_first_is_the_default() -> None:
    forms = [variant.form for variant in SPACE.variants]
    assert [form.cells_per_item for form in forms] == [(1, 1), (1, 1), (1, 4), (1, 4)]
    assert forms[1].described() == "CELLS 1, ITEMS 16, cells_per_item 1 x 1"
    assert SPACE.with_variant(CELLS, cells_per_item=(1, 2)).steps == (1,)
    with run_of(SPACE, 0) as run:
        assert "CELLS 1, ITEMS 8" in in_use(run)


@pytest.mark.whole
def test_a_run_tries_the_candidates_and_later_runs_take_the_winner(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controllers.tuning.site.WORTH", 10.0)      # whatever is not the default
    monkeypatch.setattr("controllers.tuning.trials.Trials.best", property(
        lambda trials: [*trials.ratios][-1]))  # fmt: skip
    with run_of(SPACE) as run:
        run.run(STEPS)
        report, used = run.report(), in_use(run)
        assert np.array_equal(run.gather(), right(STEPS))
    assert report.tuning is not None and report.tuning.tried >= 1
    assert used != "a text of the program's, CELLS 1, ITEMS 8, cells_per_item 1 x 1"
    assert len([*cache.iterdir()]) == 1
    with run_of(SPACE, 0) as run:
        assert in_use(run) == used
    changed = Kernel.of("cells", CELLS + "\n", space={"CELLS": (1, 4), "ITEMS": (8, 16)},
                        cells_per_item=(1, "CELLS"))  # fmt: skip
    with run_of(changed, 0) as run:
        assert in_use(run) != used      # another text


def found_for(kernel: Kernel, **options: Any) -> Tuned:
    (found,) = tune(
        FOUR, EXTENT, kernel=kernel, devices="cpu:0", comm=SerialCommunicator(), seconds=600,
        **options,
    )  # fmt: skip
    return found


def problems(found: Tuned) -> dict[str, str]:
    return {tried.configuration.described(): tried.problem for tried in found.tried}


@pytest.mark.whole
def test_variants_for_the_same_device_are_candidates_and_wrong_ones_are_refused(
    caplog: pytest.LogCaptureFixture
) -> None:
    kernel = Kernel.of("mean", MEAN).with_variant(OTHER, beside=True, work_group=(4, 8))
    kernel = kernel.with_variant(MEAN, "gpu")
    found = found_for(kernel)
    assert found.n_configurations == len(found.tried) == 2      # none is for a GPU
    assert found.at_once[0][0] == 1 and found.kept
    assert "with other bits" in problems(found)["for any device, work_group 4 x 8"]
    assert isinstance(found.winner, OwnCandidate) and found.winner.variant.source.text == MEAN
    with run_of(kernel) as run:
        run.run(30)
        assert np.array_equal(run.gather(), right(30))
    assert "kernel 'mean', for any device, work_group 4 x 8: not tried, it computes" in caplog.text


@pytest.mark.whole
def test_a_variant_that_reads_what_is_not_declared_is_refused_whatever_it_computes() -> None:
    higher = Kernel.of("higher", f"{HIGHER};")      # not what the program describes
    found = found_for(higher.with_variant(FAR, beside=True, work_group=(2, 8)))
    problem = problems(found)
    assert problem["for any device"] == ""
    assert "at the offset (1, 1)" in problem["for any device, work_group 2 x 8"]


LINE = Stencil.of("line", [(-1, 1)], [1, 0, 1], 2).program("float32")
ONCE = "NEW(u) = (NEAR(u, -1) + NEAR(u, 1)) / 2;"
TWICE = """
__kernel void line(__global const VALUE *restrict u, __global VALUE *restrict u_new, TILE(u), BOX,
                   const long computed_first_0, const long computed_last_0)
{
    CELL;
    VALUE near[2];
    for (int n = 0; n < 2; ++n) {
        const long i = cell_0 + 2 * n - 1;
        near[n] = AT_LOCAL(u, i);
        if (i >= computed_first_0 && i < computed_last_0)
            near[n] = (AT_LOCAL(u, i - 1) + AT_LOCAL(u, i + 1)) / 2;
    }
    NEW(u) = (near[0] + near[1]) / 2;
}
"""


@pytest.mark.whole
@pytest.mark.parametrize("is_wrong", sample([True, False], 2))
def test_numbers_of_steps_are_candidates_and_must_give_what_single_ones_do(is_wrong: bool) -> None:
    text = TWICE.replace("near[1]) / 2", "near[1]) / 3") if is_wrong else TWICE
    kernel = Kernel.of("line", ONCE).with_variant(text, steps_per_launch=2)
    given: dict[str, Any] = {
        "kernel": kernel, "devices": "cpu:0", "comm": SerialCommunicator(), "overlap": "off",
    }  # fmt: skip
    (found,) = tune(LINE, 1001, seconds=600, **given)
    assert [n for n, _ in found.at_once] == ([1] if is_wrong else [1, 2])
    if is_wrong:
        assert "with other bits" in found.tried[-1].problem
    fastest = min(found.at_once, key=lambda each: each[1])[0]
    with Computation(LINE, 1001, **given) as run:
        assert run.plan.steps_per_launch == (2 if is_wrong else fastest)    # nothing was kept
    values = np.random.default_rng(0).random(1001, np.float32)
    with Computation(LINE, values, **given, steps_per_launch=1 + (not is_wrong)) as run:
        run.run(7)
        result = run.gather()
    assert result is not None
    assert np.array_equal(result, reference_run(LINE, values, 7, (False,)))


def test_what_has_no_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="kernel 'mean' has one; add others with with_variant"):
        run_of(Kernel.of("mean", MEAN))
    with pytest.raises(ValueError, match="kernel 'mean' has one"):
        tune(FOUR, EXTENT, kernel=Kernel.of("mean", MEAN), comm=SerialCommunicator())


@pytest.mark.parametrize(("declared", "message"), [
    ({"space": 8}, "space: a dict is expected"),
    ({"space": {"TILED": (8,)}}, "the text names no 'TILED'"),
    ({"space": {"NEAR": (8,)}}, "'NEAR' of the space is one of the accessors"),
    ({"space": {"float4": (8,)}}, "a word of OpenCL C"),
    ({"space": {"N": ()}, "work_group": ("N", 1)}, "'N' has no values"),
    ({"space": {"N": range(2000)}, "work_group": ("N", 1)}, "has 2000 combinations, at most"),
    ({"work_group": ("N", 1)}, "'N' is no name of the space"),
    ({"space": {"N": (0, 1)}, "work_group": ("N", 1)}, "one extent per axis, of 1 to"),
    ({"space": {"gain": (1, 2)}, "scalars": {"gain": 1}}, "'gain' is a scalar and in the space"),
])  # fmt: skip
def test_a_space_that_is_none_is_refused(declared: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Kernel.of("k", "NEW(u) = gain * HERE(u);", **declared)
