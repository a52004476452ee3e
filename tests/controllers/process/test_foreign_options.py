# SPDX-License-Identifier: MIT
"""Build options of the environment do not reach strict arithmetic."""
from __future__ import annotations

import os

import numpy as np
import pyopencl as cl
import pytest

from controllers import Computation, Stencil
from controllers.device import choose, find_devices
from controllers.kernel.build import build
from controllers.kernel.build_cache import BuildCache
from controllers.program.program import Math

SOURCE = """
__kernel void k(__global int *x) {
    x[0] = 0;
#ifdef ONE
    x[0] += 1;
#endif
#ifdef TWO
    x[0] += 2;
#endif
}
"""
PROGRAM = Stencil.of("s", [(-1, 1)], [1, 0, 1], 3).program("float32")


@pytest.fixture(autouse=True)
def options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYOPENCL_BUILD_OPTIONS", "-DONE")
    monkeypatch.setenv("POCL_EXTRA_BUILD_FLAGS", "-DTWO")


def computed(math: Math) -> int:
    (device,) = choose(["cpu:0"], find_devices())
    context = cl.Context([device.handle])
    queue = cl.CommandQueue(context)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
    kernel = cl.Kernel(build(context, "k", SOURCE, math=math), "k")
    kernel.set_args(buffer)
    cl.enqueue_nd_range_kernel(queue, kernel, (1,), None)
    result = np.zeros(1, np.int32)
    cl.enqueue_copy(queue, result, buffer)
    return int(result[0])


def test_strict_arithmetic_is_built_without_them_and_fast_with_them() -> None:
    before = dict(os.environ)
    assert computed("strict") == 0
    assert dict(os.environ) == before
    assert computed("fast") in (1, 3), "other drivers than PoCL do not know the second one"


def test_with_fast_arithmetic_they_are_part_of_a_binarys_key(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[list[str]] = []

    def load(self: BuildCache, device: object, source: str, options: list[str]) -> None:
        keys.append(list(options))

    monkeypatch.setattr("controllers.kernel.build.cache_for", lambda device: BuildCache)
    monkeypatch.setattr(BuildCache, "load", classmethod(load))
    monkeypatch.setattr(BuildCache, "store", classmethod(lambda *arguments: None))
    computed("strict"), computed("fast")
    assert keys[0] == [] and keys[1][0] == "PYOPENCL_BUILD_OPTIONS=-DONE"


@pytest.mark.whole
def test_that_they_are_left_out_is_said_once() -> None:
    with pytest.warns(RuntimeWarning, match="PYOPENCL_BUILD_OPTIONS and POCL_EXTRA_BUILD_FLAGS"):
        Computation(PROGRAM, 9, devices="reference").close()


def test_what_a_driver_reads_when_it_likes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCL_BITCODE_FINALIZER", "/bin/true")
    with pytest.raises(ValueError, match="POCL_BITCODE_FINALIZER may change .*; unset it"):
        computed("strict")
