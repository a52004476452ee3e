# SPDX-License-Identifier: MIT
"""Numbers of steps per launch of programs that rename are tuned, and found by runs."""
from __future__ import annotations

from pathlib import Path

import pytest
from time_levels import wave

import controllers as ct
from controllers.kernel.winners import VARIABLE
from controllers.tuning import offline
from controllers.tuning.offline import _Search
from controllers.tuning.trials import Budget
from hitmap import SerialCommunicator


def test_a_run_takes_as_many_steps_as_tuning_has_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program of single steps, which a run asks for, is another one than what is launched."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(_Search, "_times", lambda self, spending: {3: 1.0, 8: 2.0})
    try_out = offline.try_out
    monkeypatch.setattr(offline, "try_out", lambda space, measure, budget, *how: try_out(
        space, measure, Budget(trials=2), *how      # however long they take
    ))  # fmt: skip
    one = {"devices": "cpu:0", "comm": SerialCommunicator()}
    (found,) = ct.tune(wave(), (90, 80), **one)
    assert found.winner.steps_per_launch == 3
    with ct.Computation(wave(), (90, 80), **one) as run:
        assert run.plan.steps_per_launch == 3
