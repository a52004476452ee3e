# SPDX-License-Identifier: MIT
"""The rest of the command line: devices, exit codes."""
from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mpi_jobs import run_ranks
from sample import sample

import controllers
from controllers.arbiter import Arbiter, Want
from controllers.cli import main
from controllers.cli.outcome import Failure, end_together, on_root
from controllers.device import choose, find_devices, reference_device
from controllers.device.naming import selectors
from hitmap.comm import SerialCommunicator


def test_devices_are_listed_with_names_that_choose_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = find_devices()
    assert main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(found)
    assert main(["devices", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    for entry, device in zip(listed, found, strict=True):
        assert choose([entry["selector"]], found) == [device]
        assert entry["name"] == device.name


def test_who_uses_devices_is_listed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    mean = controllers.Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
    computation = controllers.Computation(mean, np.zeros(9, np.float32), devices="reference")
    with Arbiter() as arbiter, arbiter.acquire([[Want(("core 0",))]], what="a product"):
        assert main(["devices"]) == 0
        assert main(["devices", "--json"]) == 0
    told, listed = capsys.readouterr().out.split("\n[")
    rows = {tuple(line.split()[:4]) for line in told.splitlines()}
    assert {("device", "reference", "used", "mean"), ("core", "0", "held", "a")} <= rows
    used = {entry["kind"]: entry["processes"] for entry in json.loads(f"[{listed}")}
    assert [process["pid"] for process in used["reference"]] == [os.getpid()]
    computation.close()
    del computation
    gc.collect()
    with Arbiter() as arbiter:
        assert arbiter.holders() == []
    (tmp_path / "arbiter").chmod(0o777)
    assert main(["devices"]) == 0
    assert "other users may write it" in capsys.readouterr().err


def test_several_devices_of_a_kind_are_numbered() -> None:
    reference = reference_device()
    assert selectors([reference]) == ["reference"]
    assert selectors([reference] * 2) == ["reference:0", "reference:1"]


@pytest.mark.whole
def test_without_an_opencl_driver_there_is_no_usable_device() -> None:
    script = (
        "import pyopencl as cl, sys, pathlib\n"
        "def none(): raise cl.LogicError('clGetPlatformIDs', -1001)\n"
        "cl.get_platforms = none\n"
        "pathlib.Path('p.py').write_text('shape = ((-1, 1),)\\npattern = [1, 1, 1]\\nfactor = 3')\n"
        "from controllers.cli import main\n"
        "sys.exit(main('run p.py --size 9 --iterations 1'.split() + sys.argv[1:]))\n"
    )
    job = run_script(script)
    assert job.returncode == 3
    assert "opencl-controllers[local]" in job.stderr and "Traceback" not in job.stderr
    assert run_script(script, "--device", "reference").returncode == 0


def run_script(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [sys.executable, "-c", script, *arguments],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.mark.parametrize("arguments", [[], ["measure"], ["run"], ["devices", "extra"]])
def test_unknown_words_end_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("controllers: error: ")


def test_the_module_and_the_console_script_are_the_same_program() -> None:
    job = subprocess.run(
        [sys.executable, "-m", "controllers", "--help"], capture_output=True, text=True, check=True
    )
    assert job.stdout.startswith("usage: controllers ")
    from controllers.cli import console

    assert console.__module__ == "controllers.cli.main"


def test_one_process_ends_with_the_code_of_its_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    comm = SerialCommunicator()
    assert end_together(comm, None) == 0
    assert end_together(comm, Failure(2, "bad word")) == 2
    assert capsys.readouterr().err == "controllers: error: bad word\n"

    def fail() -> None:
        raise Failure(3, "none")

    with pytest.raises(Failure, match="none"):
        on_root(comm, fail)


ENDS = """
import sys, time
from controllers.cli.outcome import Failure, end_together
from hitmap.comm import default_communicator
comm = default_communicator()
codes = [int(word) for word in sys.argv[1:]]
mine = codes[comm.rank]
if mine < 0:
    comm.Dup().recv(source=comm.rank)  # for ever
failure = Failure(mine, f"error {mine}") if mine else None
sys.exit(end_together(comm, failure))
"""


@pytest.mark.parametrize(
    ("codes", "code", "messages"),
    sample([
        ("0 0 0", 0, []),
        ("2 2 2", 2, ["error 2"]),
        ("0 2 0", 2, ["rank 1: error 2"]),
        ("1 1 1", 1, ["error 1"]),
        ("0 1 3", 1, ["rank 1: error 1", "rank 2: error 3"]),
    ], 4),
)  # fmt: skip
def test_ranks_agree_on_the_code_and_say_things_once(
    codes: str, code: int, messages: list[str]
) -> None:
    job = run_ranks(3, ["-c", ENDS, *codes.split()])
    assert job.returncode == code
    said = [line for line in job.stderr.splitlines() if line.startswith("controllers: ")]
    assert said == [f"controllers: error: {message}" for message in messages]


@pytest.mark.whole
def test_a_rank_that_fails_alone_ends_the_job() -> None:
    job = run_ranks(2, ["-c", ENDS.replace("comm.Dup()", "comm"), "-1", "1"])
    assert job.returncode != 0
    assert "controllers: error: rank 1: error 1" in job.stderr
