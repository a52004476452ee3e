# SPDX-License-Identifier: MIT
"""`bench streams`: what it measures of data that do not fit, what it prints and refuses."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample import sample

from controllers.bench import streams
from controllers.bench.stream_cases import STREAMS
from controllers.bench.streams import StreamSpeed, run_stream, streams_table
from controllers.cli.companions import folder
from controllers.cli.main import main


@pytest.mark.whole
@pytest.mark.parametrize("name", sample(STREAMS, len(STREAMS)))
def test_each_benchmark_passes_through_a_cap_of_a_quarter(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same results by one slot and by three, or an error."""
    monkeypatch.setitem(streams.BYTES, "quick", 1 << 19)
    found = run_stream(name, folder("examples"), "quick", "cpu", "a CPU", 0.01)
    assert found.slots == 3 and found.chunks >= found.least >= streams.SHARE
    assert min(found.up_s, found.kernel_s, found.down_s, found.pipelined_s, found.one_slot_s) > 0
    longest = max(found.up_s, found.kernel_s, found.down_s)
    at_best = longest + (found.up_s + found.down_s) / found.chunks
    assert found.ideal_s > longest if name == "srad" else found.ideal_s == at_best


def test_the_table_compares_with_what_is_possible() -> None:
    one = StreamSpeed(
        "vector_add", "a GPU", 2**22, 2**20, 8, 5, 3, 0.014, 0.008, 0.004, 0.002, 0.006, 0.0072,
        "link, down",
    )  # fmt: skip
    assert one.achieved == pytest.approx(0.9) and one.speed_up == pytest.approx(1.5)
    text = streams_table([one])
    assert "1.50 times faster on average" in text
    (row,) = (line.split() for line in text.splitlines() if line.startswith("vector_add"))
    assert row == ["vector_add", "4", "1", "8", "5", "3", "12", "14", "8", "7.2", "0.90", "1.50",
                   "link,", "down"]  # fmt: skip


@pytest.mark.whole
def test_it_is_written_and_takes_no_other_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("controllers.cli.bench_streams.STREAMS", ("monte_carlo", "srad"))
    monkeypatch.setitem(streams.BYTES, "quick", 1 << 18)
    target = tmp_path / "streams.json"
    words = ["bench", "streams", "--quick", "--device", "cpu", "--seconds", "0.01"]
    assert main([*words, "--chunks", "auto", "--json", str(target)]) == 0
    found = json.loads(target.read_text())["streams"]
    assert [one["benchmark"] for one in found] == ["monte_carlo", "srad"]
    assert found[0]["in_turn_s"] == sum(found[0][way] for way in ("up_s", "kernel_s", "down_s"))
    assert "monte_carlo" in capsys.readouterr().out
    assert main(["bench", "--chunks", "3"]) == 2
    assert "--chunks is an option of bench streams" in capsys.readouterr().err
    assert main([*words, "--sizes", "9x9"]) == 2
    assert "--chunks, --quick and --json alone" in capsys.readouterr().err
