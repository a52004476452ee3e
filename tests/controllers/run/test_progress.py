# SPDX-License-Identifier: MIT
"""Who is told how far a run is: a bar, a function, a bar of tqdm's."""
from __future__ import annotations

import io
import sys

import pytest
from mpi_jobs import run_ranks

from controllers import Computation, Stencil, stencil_computation
from controllers.run.progress import ProgressBar
from hitmap import SerialCommunicator

MEAN = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)


def run(n_steps: int, progress: object) -> None:
    with Computation(
        MEAN.program("float32"), 9, devices="reference", comm=SerialCommunicator()
    ) as computation:
        computation.run(n_steps, progress)  # type: ignore[arg-type]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_is_a_bar_in_one_line() -> None:
    stream, clock = Terminal(), iter([0.0, 0.05, 0.2, 9.0])
    progress = ProgressBar(stream, lambda: next(clock))
    for done in (1, 2, 4):
        progress(done, 4)
    assert stream.getvalue() == (
        "\r[##########----------] step 2 of 4 (50%), 0 s, 0 s left"
        "\r[####################] step 4 of 4 (100%), 9 s         \n"
    )


def test_progress_in_a_file_is_a_line_now_and_then() -> None:
    stream, clock = io.StringIO(), iter([0.0, 1.0, 6.0, 7.0, 8.0])
    progress = ProgressBar(stream, lambda: next(clock))
    for done in (1, 2, 3, 4):
        progress(done, 4)
    assert stream.getvalue() == "step 2 of 4 (50%), 6 s, 6 s left\nstep 4 of 4 (100%), 8 s\n"


def test_a_notebook_is_rewritten_like_a_terminal() -> None:
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    ProgressBar(stream)(4, 4)
    assert stream.getvalue().startswith("\r[####")


def test_true_is_a_bar_and_false_is_silence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(30, True)
    assert capsys.readouterr().err.startswith("step 30 of 30 (100%), ")
    stencil_computation(
        9, [(-1, 1)], [1, 0, 1], 2, 20, devices="reference", comm=SerialCommunicator(),
        progress=True,
    )  # fmt: skip
    assert capsys.readouterr().err.startswith("step 20 of 20 (100%), ")
    run(30, False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys, "stderr", None)    # closed
    run(30, True)


class Bar:
    def __init__(self, total: int | None) -> None:
        self.total, self.n, self.n_updates = total, 0, 0

    def update(self, n: int) -> None:
        self.n += n
        self.n_updates += 1


def test_a_bar_like_those_of_tqdm_is_updated() -> None:
    for total in (None, 100):
        bar = Bar(total)
        run(100, bar)
        assert (bar.total, bar.n) == (100, 100) and bar.n_updates > 1
    bar = Bar(150)      # of two runs
    for n_steps in (100, 50):
        run(n_steps, bar)
    assert (bar.total, bar.n) == (150, 150)


def test_a_bar_of_tqdm_itself_is_updated() -> None:
    tqdm = pytest.importorskip("tqdm")
    stream = io.StringIO()
    with tqdm.tqdm(file=stream) as bar:
        run(100, bar)
        assert (bar.total, bar.n) == (100, 100)


def test_what_cannot_be_told_is_refused() -> None:
    with pytest.raises(TypeError, match="True, a function, or a bar .* got 'yes'"):
        run(1, "yes")


@pytest.mark.whole
def test_only_rank_0_shows_a_bar() -> None:
    job = run_ranks(
        2,
        "from controllers import stencil_computation\n"
        "stencil_computation(9, [(-1, 1)], [1, 0, 1], 2, 20, devices='reference', progress=True)\n",
    )
    assert job.returncode == 0 and job.stderr.count("step 20 of 20") == 1
