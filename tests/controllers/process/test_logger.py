# SPDX-License-Identifier: MIT
"""The logger `controllers` tells what happens, to those who ask."""
from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from controllers import Computation, Stencil
from controllers.cli import main

MEAN = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
WARNS = """
import faulthandler, logging, controllers, controllers.process.entry_cache as e, pathlib
assert not faulthandler.is_enabled()
e.EntryCache(pathlib.Path("/proc/none"), ".x", 9).store(["a"], b"")
"""


def test_devices_kernels_and_new_divisions_are_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "controllers")
    with Computation(MEAN, 90, devices="cpu") as computation:
        computation.redistribute(align=8)
    told = caplog.text
    assert "rank 0 computes on" in told and "built for" in told
    assert "mean: the field is divided anew, places: 1" in told


def test_it_is_silent_by_default() -> None:
    command = [sys.executable, "-c", WARNS]
    job = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert job.stdout == job.stderr == ""


def test_a_verbose_run_tells_and_leaves_the_logger_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.py"
    path.write_text("shape = ((-1, 1), (0, 0))\npattern = [[1], [0], [1]]\nfactor = 2\n")
    options = ["--size", "9", "9", "--iterations", "1", "--device", "reference"]
    logger = logging.getLogger("controllers")
    before = logger.level, list(logger.handlers)
    assert main(["run", str(path), *options, "--verbose"]) == 0
    said = capsys.readouterr().err
    assert "rank 0, controllers.placement.placement: rank 0 computes on reference" in said
    assert (logger.level, list(logger.handlers)) == before
    assert main(["run", str(path), *options]) == 0
    assert "computes on" not in capsys.readouterr().err
