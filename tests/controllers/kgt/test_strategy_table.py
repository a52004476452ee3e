# SPDX-License-Identifier: MIT
"""A strategy is a class and a row of the table: nothing else has to know of it."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from controllers import Computation, Stencil, kgt, reference_run
from controllers.kernel.winners import VARIABLE
from controllers.kgt import STRATEGIES, Config, Launch, StageKernel
from controllers.kgt.__main__ import main
from controllers.kgt.kernel import WorkSizes
from controllers.kgt.text import frame
from controllers.kgt.text.c_lines import indented
from controllers.kgt.text.emitter import assignment
from controllers.program.program import Program, Stage
from controllers.tuning import tune
from hitmap.comm import SerialCommunicator

MEAN = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 2, 1, 0, 1, 0], 6).program("float32")


@dataclass(frozen=True)
class StripConfig(Config):
    """A work-item computes `cells` cells of a row, one after another."""

    strategy: ClassVar[str] = "strip"
    kind: ClassVar[str] = "cpu"
    about: ClassVar[str] = "a strip of a row per work-item"

    cells: int = 4

    @classmethod
    def default(
        cls, program: Program, stage: Stage, exceeds_cache: bool = False, nvidia: bool = False
    ) -> StripConfig:
        return cls()

    @classmethod
    def chosen(cls, program: Program, stage: Stage, launch: Launch | None) -> StripConfig | None:
        return cls() if program.n_axes == 2 and (launch is None or launch.n_steps == 1) else None

    def space(self, n_axes: int) -> Iterator[StripConfig]:
        return map(StripConfig, (2, 4, 8))

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        return lambda extent, is_cpu: ((-(-extent[1] // self.cells), extent[0]), (1, 1))

    def kernel(self, program: Program, stage: Stage) -> StageKernel:
        body = [
            "const long start_0 = get_global_id(1);",
            f"const long start_1 = (long)get_global_id(0) * {self.cells};",
            f"for (long item = start_1; item < start_1 + {self.cells}; ++item) {{",
            "    if (item >= extent_1)",
            "        return;",
            "    const long c = u_first + start_0 * u_pitch_0 + item;",
            *indented(assignment("u_new[c]", stage, program.dtype)),
            "}",
        ]
        how = f"strips of {self.cells} cells"
        return frame.kernel(program, stage, how, body, self.work_sizes(program, stage))


@pytest.fixture(autouse=True)
def with_strips(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The table has a row more; and one less, so that one step at a time is what a CPU does."""
    monkeypatch.setitem(STRATEGIES, "strip", StripConfig)
    monkeypatch.delitem(STRATEGIES, "wavefront")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tuning"))


@pytest.mark.whole
def test_it_is_chosen_built_and_tuned() -> None:
    field = np.random.default_rng(0).random((37, 29), np.float32)
    right = reference_run(MEAN, field, 5, (False, False))
    comm = SerialCommunicator()
    for search in ("exhaustive", None):
        with Computation(MEAN, field.shape, devices="cpu", comm=comm) as run:
            run.scatter(field)
            run.run(5)
            result, (used,) = run.gather(), run.report().kernels
        assert result is not None and np.array_equal(result, right)
        assert used.origin.startswith("generated, strategy 'strip', cells ")
        if search:
            (tuned,) = tune(
                MEAN, field.shape, devices="cpu", comm=comm, seconds=60, search=search
            )
            tried = [each.configuration for each in tuned.tried if each.seconds]
            assert {*tried} == {StripConfig(2), StripConfig(4), StripConfig(8)}
            assert tuned.winner in tried


def test_the_command_line_offers_it(capsys: pytest.CaptureFixture[str]) -> None:
    pattern = Path(__file__).parents[3] / "examples" / "patterns" / "jacobi_2d4.py"
    assert main([str(pattern), "--print", "--strategy", "strip"]) == 0
    assert "strips of 4 cells" in capsys.readouterr().out
    assert main([str(pattern), "--print", "--strategy", "strip", "--device", "gpu"]) == 2
    assert "'strip' is for the device 'cpu'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "strip: a strip of a row per work-item, for a CPU" in " ".join(
        capsys.readouterr().out.split()
    )


def test_its_configurations_are_kept_as_plain_data() -> None:
    assert kgt.config_from(kgt.plain(StripConfig(8))) == StripConfig(8)


def test_no_answer_but_the_kernel_writes_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> StageKernel:
        raise AssertionError("text was written")

    monkeypatch.setattr(frame, "kernel", refuse)
    stage = MEAN.stages[0]
    for kind in ("cpu", "gpu"):
        assert kgt.step_counts(MEAN, stage, kind)[0] == 1
        assert kgt.usual_steps(MEAN, stage, kind) >= 1
    for strategy in STRATEGIES.keys() - {"items", "items_on_cpu"}:
        config = kgt.config_of(strategy, MEAN, stage)
        config.work_sizes(MEAN, stage)
        assert config.origin(stage) and config.local_bytes(MEAN, stage) >= 0
