# SPDX-License-Identifier: MIT
"""`controllers run program.py` executes a program, and its options hold for the computations."""
from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from films import n_frames
from mpi_jobs import run_ranks

from controllers.cli import main
from controllers.settings.division import Division
from controllers.settings.overrides import Overrides, overrides, overriding

PROGRAM = '''\
"""A program."""
import sys
import numpy as np
import controllers as ct
import beside

@ct.step
def heat(u, *, k=0.1):
    return dict(u=u + k * (u[-1] + u[1] - 2 * u))

grid = ct.Grid(x=40, boundary="periodic")
if "catch" in sys.argv:
    try:
        ct.Computation(heat, grid, u=beside.start)
    except ValueError:
        raise RuntimeError("mine") from None
for devices in ("reference", ["reference"]):
    with ct.Computation(heat, grid, u=beside.start, devices=devices, dims=(1,)) as run:
        if "record" in sys.argv:
            run.record("u", every=5)
        while run.step < 10:
            run.run(5)
        total = float(np.asarray(run.u).sum())
        if run.comm.rank == 0:
            print("PROGRAM", __name__, *sys.argv[1:], run.step, run.layout.n_places, f"{total:.6f}")
        if "wrong" in sys.argv:
            run.u[0, 0]
        if "leave" in sys.argv:
            sys.exit(int(sys.argv[2]))
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test works in a folder with a program and a module beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    (tmp_path / "heat.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "beside.py").write_text("def start(x):\n    return x\n", encoding="utf-8")
    return tmp_path


def run(command: str) -> int:
    return main(["run", *command.split()])


def said(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("PROGRAM")]


def test_a_program_is_executed_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.argv[:], sys.path[:]
    assert run("heat.py -- --own words") == 0
    out = capsys.readouterr().out
    assert said(out) == ["PROGRAM __main__ --own words 10 1 800.000000"] * 2
    assert out.count("10 steps of 40 cells") == 2
    assert (sys.argv, sys.path) == before


def test_options_hold_in_place_of_what_the_program_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = "heat.py --iterations 4 --device reference --device reference --weights 1,3 --json"
    assert run(f"{command} --trace t.json --overlap off --check") == 0
    out = capsys.readouterr().out
    assert said(out) == ["PROGRAM __main__ 12 2 800.000000"] * 2
    reports = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert [one["steps"] for one in reports] == [12, 12]
    assert [place["cells"] for place in reports[0]["places"]] == [10, 30]
    assert "text" not in reports[0]["kernels"][0]
    assert {path.name for path in tmp_path.glob("*.json")} == {"t.json", "t-2.json"}
    assert overrides() == Overrides()


def test_options_hold_for_workspaces(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(
        "import controllers as ct\n"
        "with ct.workspace(devices='cpu') as on:\n"
        "    x = on.array([1.0, 2.0, 3.0, 4.0])\n"
        "    print(len(on.report().places), on.report().places[1].share, (x * x).sum())\n"
    )
    assert run("rows.py --device reference --device reference --weights 1,3") == 0
    assert capsys.readouterr().out == "2 0.75 30.0\n"
    for option, what in (("--partition blocks", "split by rows"), ("--check", "steps of a comp")):
        assert run(f"rows.py --device reference {option}") == 2
        assert what in capsys.readouterr().err


def test_options_hold_for_pools_of_tasks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "sums.py").write_text(
        "import numpy as np\n"
        "import controllers as ct\n"
        "with ct.tasks((), cores=1) as pool:\n"
        "    total = pool.submit(np.sum, np.arange(5))\n"
        "    pool.submit(float, total)\n"
    )
    assert run("sums.py --explain") == 0
    sent, later, header, *_ = capsys.readouterr().out.splitlines()
    assert sent.startswith("0 sum: host on the host (ends at ")
    assert later.startswith("1 float: host on the host") and header.startswith("task ")
    assert run("sums.py --device cpu --json --trace t.json") == 0
    assert json.loads(capsys.readouterr().out)["n_jobs"] == 2
    assert "sum (host)" in (tmp_path / "t.json").read_text()
    assert run("sums.py --device bogus") == 2
    assert "error: sums.py: no device fits 'bogus'" in capsys.readouterr().err
    (tmp_path / "none.py").write_text("import controllers as ct\nct.tasks((), cores=1).close()\n")
    assert run("none.py") == 0 and not capsys.readouterr().out


def test_explain_ends_where_the_first_step_would_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("heat.py --explain") == 0
    out = capsys.readouterr().out
    assert out.startswith("program heat: float64") and "u[i-1]" in out
    assert not said(out) and out.count("program heat") == 1


def test_kernels_are_written(tmp_path: Path) -> None:
    assert run("heat.py --device cpu --kgt-out kernels --iterations 1") == 0
    (kernel,) = (tmp_path / "kernels").iterdir()
    assert kernel.name == "kgt_heat.cl" and "__kernel void kgt_heat(" in kernel.read_text()
    (tmp_path / "mean.py").write_text("shape = ((-1, 1),)\npattern = [1, 0, 1]\nfactor = 2\n")
    assert run("mean.py --size 50 --iterations 1 --device cpu --kgt-out kernels") == 0
    assert (tmp_path / "kernels" / "kgt_mean.cl").is_file()


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("none.py", 2, "none.py: No such file"),
        ("literal.py", 2, "literal.py: is a pattern file.*one of --input --size"),
        ("heat.py --size 9 --iterations 1", 2, "cannot stand here.*without --size and --input"),
        ("heat.py --plot u.gif --plot-field q", 2, "no field 'q'.*there are u|needs matplotlib"),
        ("heat.py --plot u.xyz", 2, "must end with one of .*png|needs matplotlib"),
        ("heat.py --plot heat.py", 2, "is the file of the program"),
        ("heat.py --plot t.png -- leave 0", 2, "no picture was written|needs matplotlib"),
        ("heat.py --explain --plot t.png", 2, "--plot: --explain ends|needs matplotlib"),
        ("heat.py --dry-run 2", 2, "--dry-run is for a pattern"),
        ("literal.py --size 9 --iterations 1 -- x", 2, "after -- is for programs"),
        ("heat.py --trace heat.py", 2, "is the file of the program"),
        ("open.py", 2, r"open.py has failed\n.*line 1(.|\n)*SyntaxError"),
        ("nothing.py", 2, "it has made no computation"),
        ("heat.py --trace t.json -- leave 0", 2, "it has closed no computation"),
        ("heat.py --iterations 10 -- leave 7", 7, "heat.py: exit code 7"),
        ("heat.py -- wrong", 1, r'has failed\n  File "heat.py", line 27(.|\n)*IndexError: the'),
        ("heat.py --weights 1,2,3", 2, "^controllers: error: heat.py: weighted: .*, got 3"),
        ("heat.py --device bogus", 2, "^controllers: error: heat.py: no device fits 'bogus'"),
        ("heat.py --memory-cap 9", 2, 'error: heat.py: field "u" needs .*the cap is 9 B'),
        ("heat.py --tune 1 --check", 2, "error: heat.py: tune searches among"),
        ("heat.py --steps-per-launch 2 --check", 2, "error: heat.py: the checked mode looks"),
        ("heat.py --explain --trace t.json", 2, "--trace: --explain ends a program before"),
        ("heat.py --explain --iterations 3", 2, "--iterations: --explain ends a program"),
        ("heat.py --kgt-out heat.py", 2, "--kgt-out heat.py: File exists; give a folder"),
        ("heat.py --stencil s", 2, "--stencil is for a pattern.*a program says that itself"),
        ("heat.py --output u.npy", 2, "--output is for a pattern"),
        ("heat.py --boundary mirror", 2, "--boundary is for a pattern"),
        ("heat.py --dtype float32", 2, "--dtype is for a pattern"),
        ("heat.py --kernel generic", 2, "--kernel is for a pattern"),
        ("heat.py --weights 1,2 -- catch", 1, "heat.py has failed(.|\n)*RuntimeError: mine"),
        ("heat.py --no-such", 2, "unknown option '--no-such'"),
    ],
)
def test_what_cannot_be_run_ends_with_a_code_and_the_line(
    command: str, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "literal.py").write_text('"""P."""\nshape = ((-1, 1),)\n', encoding="utf-8")
    (tmp_path / "open.py").write_text("x = (", encoding="utf-8")
    (tmp_path / "nothing.py").write_text("import sys", encoding="utf-8")
    assert run(command) == code
    err = capsys.readouterr().err
    assert re.search(words, err), err
    assert "controllers/" not in err


def test_two_ranks_run_a_program_and_fail_together() -> None:
    command = ["-m", "controllers", "run", "heat.py", "--partition", "bands", "--iterations", "10"]
    job = run_ranks(2, [*command, "--", "wrong"])
    assert job.returncode == 1
    assert said(job.stdout) == ["PROGRAM __main__ wrong 10 2 800.000000"]
    assert job.stderr.count("IndexError: the index (0, 0) has more than 1 axes") == 1


@pytest.mark.whole
@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ("--weights 1,2,3", 2, "error: heat.py: weighted: 2 places need as many weights, got 3"),
        ("--explain --tune 1", 2, "--tune: --explain ends a program"),
        ("--kgt-out heat.py --partition bands", 2, "--kgt-out heat.py: File exists"),
        ("--partition bands --trace t.json --kgt-out k --check --watchdog 100 --json -v", 0, ""),
    ],
)
def test_two_ranks_say_once_what_does_not_fit(options: str, code: int, words: str) -> None:
    job = run_ranks(2, ["-m", "controllers", "run", "heat.py", *options.split()])
    assert job.returncode == code, job.stderr
    assert job.stderr.count("controllers: error") == bool(code)
    assert re.search(words, job.stderr), job.stderr


def test_who_says_how_to_cut_says_all_of_that() -> None:
    said = Overrides({"partition": "blocks"}, {"overlap": "off"})
    with overriding(said):
        assert overrides() is said
    division = said.divided(Division(dims=(2, 1), align=4, places_per_controller=2))
    assert division == Division("blocks", align=4, places_per_controller=2)
    assert Overrides({"align": 2}).divided(Division(weights=[1, 2])).weights == (1, 2)


@pytest.mark.whole
@pytest.mark.filterwarnings("error")
def test_a_program_that_records_gets_a_picture_for_each_computation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    Path("heat.py").write_text(PROGRAM, encoding="utf-8")
    Path("beside.py").write_text("def start(x):\n    return x\n", encoding="utf-8")
    assert main(["run", "heat.py", "--plot", "u.svg", "--", "record"]) == 0
    assert sorted(path.name for path in Path().glob("*.svg")) == ["u-2.svg", "u.svg"]
    assert "heat: 10 steps" in Path("u-2.svg").read_text("utf-8")
    assert main(["run", "heat.py", "--plot", "end.svg"]) == 0      # nothing is recorded
    assert sorted(path.name for path in Path().glob("end*.svg")) == ["end-2.svg", "end.svg"]
    assert main(["run", "heat.py", "--plot", "u.gif", "--plot-every", "3"]) == 0
    assert sorted(path.name for path in Path().glob("*.gif")) == ["u-2.gif", "u.gif"]
    assert n_frames(Path("u.gif")) == 1 + 3 + 1       # of both runs: 0, 3, 6, 9 and the last


def test_a_film_without_ffmpeg_is_refused_before_the_program_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    animation = pytest.importorskip("matplotlib.animation")
    monkeypatch.setattr(animation.FFMpegWriter, "isAvailable", lambda: False)
    assert run("heat.py --plot u.mp4") == 2
    said = capsys.readouterr()
    assert re.search("ffmpeg, which is not there.*name a file .gif", said.err)
    assert "PROGRAM" not in said.out
