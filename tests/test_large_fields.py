# SPDX-License-Identifier: MIT
"""The comparison of large fields in strips, on small ones: it finds what differs."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sample import sample

from controllers import Computation
from hitmap import SerialCommunicator

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from large_fields import Large


@pytest.mark.whole
@pytest.mark.parametrize("missing", sample([1, 0], 2))
def test_every_way_in_and_out_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    run = Computation.run
    monkeypatch.setattr(Computation, "run", lambda self, n: run(self, n - missing))
    field = Large(0.001, 2, "float32")
    field.run(["cpu/1,1"], SerialCommunicator(), tmp_path)
    assert not [*tmp_path.iterdir()]
    ways = {text.split(":")[0] for text in field.wrong}
    assert ways == ({"load, visit", "save", "scatter, gather"} if missing else set())


def test_strips_lie_at_the_ends_the_cuts_and_around_powers_of_two() -> None:
    field = Large(8.5, 2, "float32")
    firsts = {first + 3 for first, _ in field.strips([1000])}
    n, row = field.extent[0], field.extent[1]
    assert {1000, n // 2, 2**31 // row, 2**31 // 4 // row, 2**32 // 4 // row} <= firsts
    assert (0, 6) in field.strips([]) and (n - 6, n) in field.strips([])
