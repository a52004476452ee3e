# SPDX-License-Identifier: MIT
"""The command line where standard streams are closed."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sample import sample

PATTERN = "shape = ((-1, 1),)\npattern = [1, 0, 1]\nfactor = 2\n"


@pytest.mark.parametrize("closed", sample(["<&- >&- 2>&-", "2>&-", ">&-"], 3))
def test_a_run_with_closed_streams_writes_its_output(tmp_path: Path, closed: str) -> None:
    (tmp_path / "mean.py").write_text(PATTERN, encoding="utf-8")
    run = "-m controllers run mean.py --size 90 --iterations 3 --device reference --output u.npy"
    command = f"exec {sys.executable} {run} {closed}"
    job = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, timeout=60, check=False, capture_output=True
    )
    assert job.returncode == 0, job.stderr
    assert np.load(tmp_path / "u.npy").shape == (90,)


@pytest.mark.whole
def test_an_error_that_nobody_hears_has_its_code(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m controllers run no.py --size 9 --iterations 1 2>&-"
    job = subprocess.run(["bash", "-c", command], cwd=tmp_path, timeout=60, check=False)
    assert job.returncode == 2
