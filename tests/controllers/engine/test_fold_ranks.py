# SPDX-License-Identifier: MIT
"""Folds over three ranks, of which one may have no place: the reference's results on all."""
from __future__ import annotations

from pathlib import Path

import pytest
from mpi_jobs import helpers_path, run_ranks

RANKS = """
import numpy as np
from controllers import Computation, Field, Program, Scalar, Stage
from controllers.program.fold import Fold
from controllers.program.reference import reference_steps
from hitmap.comm import default_communicator
from test_folds import (
    CFL, EXTENT, FASTEST, FLOW, MEAN, RELAX, SEARCHING, STAR, solving, start, u
)
from dataclasses import replace

TOTAL = {"total": Fold("sum", u())}
FASTEST_NOW, NOW = Scalar("fastest"), Scalar("t")
# what hosts may round differently: rank 0 computes it for all
ROUNDED = Program("rounded", (Field("u", "float64"),), (FASTEST, Stage(
    "flow", {"u": FLOW * np.exp(-FASTEST_NOW) + np.sin(NOW) / 9}, STAR, TOTAL
)), scalars={"dt": 0.2 / (1 + np.exp(FASTEST_NOW * 0.1))})
STEADY = Program("steady", (Field("u", "float64"),), (FASTEST, Stage(
    "flow", {"u": MEAN * np.exp(-FASTEST_NOW) + np.sin(NOW) / 9}, STAR, TOTAL
)))
SLOPE, AREA = Scalar("slope"), Scalar("area")
LENGTHS = {**SEARCHING.scalars, "length": np.exp(-SLOPE / AREA)}
FAR = replace(SEARCHING, scalars=LENGTHS)
comm = default_communicator()
for weights in (None, [1, 0, 1]):
    for program, dt in ((CFL, None), (solving(5), 0.1), (ROUNDED, None), (STEADY, 0.1), (RELAX, 1),
                        (SEARCHING, None), (FAR, None)):
        fields = start(1, *(field.name for field in program.fields))
        *_, right = reference_steps(program, fields, (False, False), dt=dt, n_steps=5)
        with Computation(
            program, EXTENT, devices="reference", init=fields, dt=dt, weights=weights
        ) as run:
            run.run(2)
            found = run.run(3)
            assert {**found} == right.results and run.time == right.time, (program, found)
            assert np.array_equal(run.u.get("all"), right.fields["u"]), program
            assert run.repeats == right.counts
"""


@pytest.mark.whole
def test_all_ranks_know_what_the_reference_folds() -> None:
    job = run_ranks(3, RANKS, env=helpers_path(Path(__file__).parent))
    assert job.returncode == 0, job.stderr
