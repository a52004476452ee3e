# SPDX-License-Identifier: MIT
"""`run --dry-run N`: figures by hand, no OpenCL and no MPI, a thousand places in seconds."""
from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from mpi_jobs import run_ranks
from sample import sample

from controllers import Stencil
from controllers.cli import main
from controllers.memory.tile import SLACK
from controllers.plan import Plan
from controllers.program.expression import Read
from controllers.program.program import Field, Program, Stage
from controllers.run.dry_run import DryRun, dry_run
from hitmap import HaloPattern

HEAT = Stencil.of("heat", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
PATTERN = "shape = ((-1, 1), (-1, 1))\npattern = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]\nfactor = 4\n"
ALONE = """
import sys
from controllers.cli import main
code = main(sys.argv[1:])
loaded = {"pyopencl", "mpi4py", "mpi4py.MPI"} & set(sys.modules)
sys.exit(f"loaded: {loaded}" if loaded else code)
"""


@pytest.fixture
def pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "heat.py").write_text(PATTERN)
    monkeypatch.chdir(tmp_path)
    return "heat.py"


def planned(n_places: int, **options: object) -> DryRun:
    return dry_run(HEAT.program("float32"), (30, 20), n_places, **options)  # type: ignore[arg-type]


def test_bytes_and_messages_are_those_one_counts_by_hand() -> None:
    data = planned(3, devices="cpu", overlap="on").as_dict()
    middle = data["places"][1]      # type: ignore[index]
    row = 18 * 4    # columns 1 to 18, float32
    assert middle == {
        "place": 1, "owned": 200, "halo": 40, "border": 36, "inner": 144,
        "memory": {
            "tiles": 2 * 12 * 20 * 4, "alignment": 2 * SLACK, "device_staging": 0,
            "host_staging": 0, "host_images": 0, "image_files": 0,
        },
        "sends": 2, "receives": 2, "copies": 0, "bytes_sent": 2 * row, "bytes_received": 2 * row,
        "folds": 0,
    }  # fmt: skip
    assert (data["messages_per_step"], data["bytes_per_step"]) == (4, 4 * row)
    assert (data["cells"], data["excess_cells_per_step"]) == (600, 0)
    assert data["bytes"] == 2 * (11 + 12 + 11) * 20 * 4 + 3 * 2 * SLACK


def test_devices_with_memory_of_their_own_need_staging() -> None:
    on_device = planned(3).sizes[1].memory
    assert on_device.host_staging == 4 * 18 * 4 and on_device.device_staging == 0    # whole rows
    blocks = planned(4, partition="blocks").sizes[0]
    assert blocks.memory.device_staging > 0    # columns are packed
    mixed = planned(4, devices=["gpu", "cpu"])
    assert [where.shares_host for where in mixed.plan.locations] == [False, True, False, True]


def test_excess_cells_are_those_of_the_halo_pattern() -> None:
    # of the two rows below, all cells but the corners are read: a run of whole rows is one copy
    hollow = Stencil.of("hollow", [(0, 2), (-1, 1)], [0, 1, 0, 1, 1, 1, 0, 1, 0], 7)
    result = dry_run(hollow.program("float64"), (9, 40), 3)
    (pattern,) = result.plan.patterns.values()
    assert isinstance(pattern, HaloPattern)
    excess = pattern.n_cells - pattern.n_cells_needed
    assert excess > 0
    assert result.as_dict()["excess_cells_per_step"] == excess
    assert f"{excess} more than the least possible" in str(result)


Cells = set[tuple[int, ...]]


def received_at_least(plan: Plan, offsets: list[tuple[int, ...]]) -> int:
    """What the cells of all places depend on, cell by cell, from the last step of a launch back."""
    domain, periodic, total = plan.layout.domain, plan.periodic, 0
    updated = plan.program.updated(domain, periodic)

    def changes(cell: tuple[int, ...]) -> bool:
        ends = zip(cell, updated.lower, updated.upper, periodic)
        return all(wraps or low <= i < high for i, low, high, wraps in ends)

    for owned in plan.layout.owned:
        mine: Cells = set(product(*map(range, owned.lower, owned.upper)))
        needed = mine
        for _ in range(plan.steps_per_launch):
            needed = {
                tuple(i + step for i, step in zip(cell, offset))
                for cell in needed
                for offset in (offsets if changes(cell) else [(0,) * domain.n_axes])
            }
        total += len(needed - mine)
    return total


@pytest.mark.parametrize(("shape", "n_steps", "boundary"), sample(product(
    ["corners", "star", "forward", "far"], [1, 2, 3], ["fixed", "periodic", ["fixed", "periodic"]]
), 5), ids=str)  # fmt: skip
def test_the_excess_is_over_what_all_steps_of_a_launch_depend_on(
    shape: str, n_steps: int, boundary: str | list[str]
) -> None:
    box = [(-1, 1), (-1, 1)] if shape in ("corners", "star") else [(0, 1), (0, 2)]
    weights = {
        "corners": [1, 0, 1, 0, 0, 0, 1, 0, 1], "star": [0, 1, 0, 1, 1, 1, 0, 1, 0],
        "forward": [0, 0, 0, 0, 1, 0], "far": [1, 0, 1, 0, 0, 1],
    }[shape]  # fmt: skip
    offsets = [o for o, w in zip(product(*(range(a, b + 1) for a, b in box)), weights) if w]
    program = Stencil.of(shape, box, weights, 3).program("float32")
    for sizes, n_places, partition in [((4, 4), 2, "bands"), ((9, 11), 4, "blocks")]:
        result = dry_run(
            program, sizes, n_places, partition=partition, boundary=boundary,
            steps_per_launch=n_steps, devices="reference",
        )  # fmt: skip
        sent = sum(pattern.n_cells for pattern in result.plan.patterns.values())
        excess = sent - received_at_least(result.plan, offsets)
        assert excess >= 0
        assert result.as_dict()["excess_cells_per_step"] == excess
        assert f"{excess} more than the least possible" in str(result)


def test_layouts_are_made_as_for_a_run() -> None:
    weighted = planned(2, weights=[1, 2])
    assert [box.extent[0] for box in weighted.plan.layout.owned] == [10, 20]
    cyclic = planned(2, partition="cyclic", block=[10, 20])
    assert [where.rank for where in cyclic.plan.locations] == [0, 1, 0]
    assert planned(2, dims=(1, 2)).plan.layout.owned[1].lower == (0, 10)
    periodic = planned(3, boundary="periodic")
    assert periodic.plan.periodic == (True, True)
    aligned = planned(3, align=[8, 1])
    assert [box.lower[0] % 8 for box in aligned.plan.layout.owned] == [0, 0, 0]


def test_a_place_without_cells_takes_nothing() -> None:
    sizes = dry_run(HEAT.program("float32"), (2, 9), 3).sizes
    assert (sizes[2].owned, sizes[2].memory.nbytes, sizes[2].sends) == (0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--weights", "1,2"], "3 places need as many weights"),
        (["--partition", "cyclic"], "block"),
        (["--dims", "2", "2"], "dims (2, 2), 4 places: there are 3 controllers"),
        (["--dims", "3", "1", "--partition", "bands"], "dims: it says how the field is cut"),
        (["--boundary", "periodic", "fixed", "fixed"], "2 axes"),
    ],
)
def test_options_that_do_not_fit_are_refused_as_in_a_run(
    pattern: str, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", pattern, "--size", "30", "20", "--dry-run", "3", *arguments]) == 2
    told = capsys.readouterr()
    assert words in told.err and told.out == ""
    assert main(["run", pattern, "--size", "30", "20", "--dry-run", "0"]) == 2


def test_the_command_loads_neither_opencl_nor_mpi_and_writes_nothing(
    pattern: str, tmp_path: Path
) -> None:
    np.save("field.npy", np.zeros((300, 200), "float64"))
    before = sorted(tmp_path.iterdir())
    for more in (["--kernel", "generic"], ["--json", "--output", "out.npy", "--iterations", "5"]):
        command = ["run", pattern, "--input", "field.npy", "--dry-run", "8", *more]
        job = subprocess.run(
            [sys.executable, "-c", ALONE, *command],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (job.returncode, job.stderr) == (0, "")
    assert json.loads(job.stdout)["cells"] == 60_000
    assert sorted(tmp_path.iterdir()) == before


def test_only_the_header_of_the_input_is_read(pattern: str) -> None:
    whole = np.lib.format.open_memmap("huge.npy", "w+", "float32", (40_000, 50_000))   # sparse
    del whole
    start = time.process_time()
    assert main(["run", pattern, "--input", "huge.npy", "--dry-run", "5"]) == 0
    assert time.process_time() - start < 20     # 8 GB would take longer


@pytest.mark.whole
def test_ranks_of_a_job_print_once(pattern: str) -> None:
    job = run_ranks(2, ["-m", "controllers", "run", pattern, "--size", "9", "9", "--dry-run", "3"])
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("program heat") == 1


def test_a_run_needs_iterations_but_a_dry_run_does_not(
    pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", pattern, "--size", "9", "9"]) == 2
    assert "--iterations" in capsys.readouterr().err
    assert main(["run", pattern, "--size", "9", "9", "--dry-run", "2"]) == 0


@pytest.mark.whole
def test_a_thousand_places_take_a_few_seconds() -> None:
    start = time.process_time()
    result = dry_run(
        HEAT.program("float32"), (400_000, 400_000), 1000, partition="blocks", steps_per_launch=1
    )
    text = str(result)
    assert time.process_time() - start < 30     # 1 s on an idle core
    assert len(text.splitlines()) < 200
    assert sum(size.owned for size in result.sizes) == 400_000**2
    assert result.as_dict()["messages_per_step"] == 2 * (24 * 40 + 25 * 39)    # neighbours


def test_explain_comes_before_the_run_and_json_stays_alone_on_stdout(
    pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", pattern, "--size", "9", "9", "--iterations", "3", "--device", "reference"]
    assert main([*arguments, "--explain"]) == 0
    out = capsys.readouterr().out
    assert out.index("program heat") < out.index("plan of heat") < out.index("3 steps of 81 cells")
    assert main([*arguments, "--explain", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["steps"] == 3
    assert "program heat" in told.err


def test_run_writes_a_timeline(pattern: str, tmp_path: Path) -> None:
    arguments = ["run", pattern, "--size", "9", "9", "--iterations", "3", "--device", "reference"]
    assert main([*arguments, "--trace", "trace.json"]) == 0
    assert len(json.loads((tmp_path / "trace.json").read_text())["traceEvents"]) > 3
    assert main([*arguments, "--trace", "nowhere/trace.json"]) == 2


def test_a_renamed_level_is_written_over_on_cpus_alone() -> None:
    at = partial(Read, "u")
    new = at((-1, 0)) + at((1, 0)) - at((0, 0)) - Read("old", (0, 0))
    leap = Stage("leap", {"u": new}, ((-1, 1), (0, 0)))
    fields = Field("u", "float32"), Field("old", "float32")
    wave = Program("wave", fields, (leap,), renames={"old": "u"})
    for devices, n_buffers in (("cpu", 2), ("gpu", 3), (("cpu", "gpu"), 3)):
        made = dry_run(wave, (30, 20), 2, devices=devices).plan
        assert made.liveness.n_buffers == {"u": n_buffers}
        assert made.sweeps[0].stage.overwrites == ({"u": "old"} if n_buffers == 2 else {})
