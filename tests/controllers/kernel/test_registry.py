# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from mpi_jobs import run_ranks
from sample import sample

import controllers
from controllers import Kernel
from controllers.kernel import registry


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Names registered in a test are known in it only."""
    monkeypatch.setattr(registry, "_registered", {})
    return


def test_a_registered_kernel_is_found_by_name_and_gathers_variants() -> None:
    first = controllers.register_stencil("blur", "NEW(u) = 1;", scalars={"k": 1.0})
    assert registry.find_kernel("blur") == first
    both = controllers.register_stencil("blur", "NEW(u) = 2;", device="gpu", scalars={"n": 3})
    assert both.devices == ("", "gpu") and both.scalars == {"k": 1.0, "n": 3}
    assert registry.find_kernel("blur") == both


def test_names_that_mean_something_else_are_refused() -> None:
    for name in ("generic", "specialised", "", "heat.cl"):
        with pytest.raises(ValueError, match=r"choose a name other than"):
            controllers.register_stencil(name, "NEW(u) = 1;")


def test_an_unknown_name_lists_the_known_ones() -> None:
    controllers.register_stencil("blur", "NEW(u) = 1;")
    with pytest.raises(ValueError, match=r"no kernel 'blurr'.*generic, blur;.*register_stencil"):
        registry.find_kernel("blurr")


def test_a_kernel_object_needs_no_name() -> None:
    kernel = Kernel.of("k", "NEW(u) = 1;")
    assert registry.find_kernel(kernel) is kernel


def test_the_skeleton_runs_a_registered_kernel() -> None:
    controllers.register_stencil("count", "NEW(u) = NEAR(u, -1) + step;", scalars={"step": 2})
    results = []
    controllers.stencil_computation(
        7, [(-1, 0)], [1, 0], 1, 3, "count", None, lambda tile: results.append(tile.array),
        devices="cpu", dtype="int16",
    )  # fmt: skip
    assert np.array_equal(np.concatenate(results), [0, 2, 4, 6, 6, 6, 6])


PROGRAM = """
import controllers
from hitmap.comm import default_communicator

rank = default_communicator().rank
if {condition}:
    controllers.register_stencil("mine", "NEW(u) = " + str({value}) + ";")
try:
    controllers.stencil_computation(9, [(0, 0)], [1], 1, 1, "mine", devices="cpu")
except ValueError as error:
    print(error, flush=True)
"""


@pytest.mark.whole
@pytest.mark.parametrize(
    ("condition", "value", "message"),
    sample([
        ("True", "rank", "kernel must be the same on all ranks"),
        ("rank == 0", "1", "rank 1: there is no kernel 'mine'"),
    ], 2),
)
def test_ranks_that_differ_in_a_kernel_fail_together(
    condition: str, value: str, message: str
) -> None:
    job = run_ranks(2, PROGRAM.format(condition=condition, value=value))
    assert job.returncode == 0, job.stderr
    assert job.stdout.count(message) == 2
