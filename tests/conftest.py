# SPDX-License-Identifier: MIT
"""What all tests share: the header says on what they run; a crash leaves no core file behind."""
from __future__ import annotations

import os
import resource

import pytest

from controllers.device import find_devices


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long the tests of random cases take."""
    parser.addoption(
        "--stencil-cases", type=int, default=60, help="how many random stencils to try"
    )
    parser.addoption(
        "--pattern-cases", type=int, default=2000, help="how many random pattern files to read"
    )
    parser.addoption(
        "--whole", action="store_true", help="start every bad input with mpiexec, not some of them"
    )
    parser.addoption("--kills", type=int, default=12, help="how many jobs to end by a rank's death")
    parser.addoption(
        "--strategy-cases", type=int, default=40, help="how many random stages per strategy"
    )
    parser.addoption(
        "--strategy-device", default="", help="where they are computed, as in `controllers run`"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Core files of processes with an OpenCL driver are huge; what users keep decides nothing."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    os.environ["CONTROLLERS_TUNING"] = "off"


def pytest_report_header(config: pytest.Config) -> list[str]:
    """The MPI library and the devices."""
    devices = ", ".join(f"{d.name} ({d.platform} {d.version})" for d in find_devices()[:-1])
    return [f"MPI: {_mpi_version()}", f"devices: {devices or 'none but the reference'}"]


def _mpi_version() -> str:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return "no library found"
    return MPI.Get_library_version().strip("\0").splitlines()[0].strip()
