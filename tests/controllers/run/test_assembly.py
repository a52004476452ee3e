# SPDX-License-Identifier: MIT
"""From a request to what runs: what is built when, and what one rank alone cannot do."""
from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from mpi_jobs import SOON_S, run_ranks

from controllers import Computation, Stencil
from controllers.executor import opencl
from controllers.kernel import build as kernel_build

MEAN = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
PROGRAM = """
import sys
from controllers import Computation, Stencil
from controllers.executor import opencl
from controllers.kernel.build import BuildError
from hitmap import default_communicator

compiled, comm = opencl.build, default_communicator()

def build(context, name, *rest):
    if comm.rank == 1:
        raise BuildError(f"kernel {name!r} does not compile")
    return compiled(context, name, *rest)

opencl.build = build
try:
    Computation(Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2), (9,), devices="cpu")
except BuildError as error:
    sys.stdout.write(f"{type(error).__name__} on rank {comm.rank}: {error}\\n")    # at once
"""


def test_only_what_is_launched_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    names = list[str]()

    def build(context: cl.Context, name: str, *rest: Any) -> cl.Program:
        names.append(name)
        return kernel_build.build(context, name, *rest)

    monkeypatch.setattr(opencl, "build", build)
    start = np.ones((7, 5), np.float32)     # too narrow for the kernel of large boxes
    with Computation(MEAN, start, devices="cpu", boundary="periodic", places_per_controller=2):
        assert names == ["kgt_mean"]


def test_a_move_is_foreseen_to_take_what_it_took_to_begin_without_builds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def build(context: cl.Context, name: str, *rest: Any) -> cl.Program:
        time.sleep(0.5)
        return kernel_build.build(context, name, *rest)

    monkeypatch.setattr(opencl, "build", build)
    with Computation(MEAN, np.ones((99, 99), np.float32), devices="cpu/1,1", weights="auto") as run:
        took, balancer = run._assembly.took, run._balancer
        assert balancer is not None
        assert balancer._costs == {False: took.again_s, True: took.here_s}
        assert took.here_s < took.again_s <= took.seconds - 0.5


@pytest.mark.whole
def test_a_kernel_that_one_rank_cannot_compile_is_an_error_on_both() -> None:
    job = run_ranks(2, PROGRAM, SOON_S)
    assert job.returncode == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == [
        "BuildError on rank 0: rank 1: kernel 'kgt_mean' does not compile",
        "BuildError on rank 1: rank 1: kernel 'kgt_mean' does not compile",
    ]
