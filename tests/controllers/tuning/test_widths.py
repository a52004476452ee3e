# SPDX-License-Identifier: MIT
"""The choice of a halo width, by times that are made up."""
from __future__ import annotations

import pytest

from controllers.tuning.widths import FEWEST, WINDOW_S, WidthChooser
from hitmap import SerialCommunicator

WIDTHS = (1, 2, 4, 8, 16, 32, 64)


def chosen(message_s: float, cell_s: float, search: str, piece: int = 10**9) -> WidthChooser:
    """What is chosen where an exchange takes so long, and so does each step more of a width."""
    chooser = WidthChooser(WIDTHS, 1, SerialCommunicator(), search)
    for _ in range(10**4):
        if chooser.over:
            return chooser
        n_steps = min(piece, chooser.until_decision(10**9))
        step_s = message_s / chooser.width + cell_s * (1 + 0.02 * chooser.width)
        chooser.ran(n_steps, n_steps * step_s)
    raise AssertionError("it never ends")


@pytest.mark.parametrize("search", ["dichotomic", "hill_climb", "exhaustive"])
@pytest.mark.parametrize("message_s", [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
def test_it_is_the_best_one(search: str, message_s: float) -> None:
    found = chosen(message_s, 1e-4, search)
    times = {w: message_s / w + 1e-4 * (1 + 0.02 * w) for w in WIDTHS}
    assert times[found.width] <= min(times.values()) / 0.98
    assert found.width in found.seconds and found.until_decision(7) == 7


def test_windows_go_on_over_runs_that_are_shorter() -> None:
    assert chosen(1e-3, 1e-4, "dichotomic", piece=3).width == chosen(1e-3, 1e-4, "dichotomic").width


def test_a_window_is_whole_rounds_and_long_enough() -> None:
    chooser = WidthChooser((3, 6), 3, SerialCommunicator())
    assert chooser.until_decision(10**9) == 3       # the first round is not timed
    chooser.ran(3, 3e-4)
    wanted = chooser.until_decision(10**9)
    assert wanted % 3 == 0 and wanted >= FEWEST and wanted * 1e-4 >= WINDOW_S
    assert chooser.until_decision(5) == 5


def test_one_width_is_no_choice() -> None:
    chooser = WidthChooser((4,), 4, SerialCommunicator())
    assert chooser.over and chooser.until_decision(100) == 100
