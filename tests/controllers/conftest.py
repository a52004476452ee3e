# SPDX-License-Identifier: MIT
"""What tests of generated kernels share: a queue, and the numbers of their random cases."""
from __future__ import annotations

import pyopencl as cl
import pytest

from controllers.device import choose, find_devices


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`strategy_case`: as many cases as `--strategy-cases` says."""
    if "strategy_case" in metafunc.fixturenames:
        numbers = range(metafunc.config.getoption("strategy_cases"))
        metafunc.parametrize("strategy_case", numbers, ids=[f"case-{number}" for number in numbers])


@pytest.fixture(scope="module")
def queue(request: pytest.FixtureRequest) -> cl.CommandQueue:
    """Of the first device, or the one that `--strategy-device` names."""
    return _queue(request.config.getoption("strategy_device"))


@pytest.fixture(scope="module")
def cpu_queue() -> cl.CommandQueue:
    """Of a CPU, for strategies that are for CPUs alone."""
    return _queue("cpu")


def _queue(name: str) -> cl.CommandQueue:
    device = (choose([name], find_devices()) if name else find_devices())[0]
    assert device.handle is not None, "an OpenCL device"
    return cl.CommandQueue(cl.Context([device.handle]))
