# SPDX-License-Identifier: MIT
"""Which variant of a kernel a device gets; the devices are made up."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from controllers import Computation, Kernel, Stencil
from controllers.device.device import reference_device

H200 = replace(
    reference_device(), name="NVIDIA H200", vendor="NVIDIA Corporation", platform="NVIDIA CUDA",
    kind="gpu",
)  # fmt: skip
ARC = replace(
    reference_device(), name="Intel(R) Arc(TM) A770", vendor="Intel(R) Corporation",
    platform="Intel(R) OpenCL Graphics", kind="gpu",
)  # fmt: skip
EPYC = replace(
    reference_device(), name="pthread-AMD EPYC", vendor="AuthenticAMD",
    platform="Portable Computing Language", kind="cpu",
)  # fmt: skip


def kernel(*devices: str) -> Kernel:
    made = Kernel.of("k", f"// for {devices[0]}\nNEW(u) = 0;", device=devices[0])
    for device in devices[1:]:
        made = made.with_variant(f"// for {device}\nNEW(u) = 0;", device)
    return made


@pytest.mark.parametrize(
    ("devices", "h200", "arc", "epyc"),
    [
        ([""], "", "", ""),
        (["gpu", ""], "gpu", "gpu", ""),
        (["", "gpu", "cpu"], "gpu", "gpu", "cpu"),
        (["nvidia", "gpu", ""], "nvidia", "gpu", ""),
        (["*h200*", "nvidia", "gpu", "Intel", ""], "*h200*", "Intel", ""),
        (["*", "nvidia", "NVIDIA H?00", "gpu"], "NVIDIA H?00", "*", "*"),
        (["portable computing", "cpu", "gpu"], "gpu", "gpu", "portable computing"),
        (["amd", "gpu", ""], "gpu", "gpu", "amd"),
    ],
)
def test_the_most_specific_variant_is_taken(
    devices: list[str], h200: str, arc: str, epyc: str
) -> None:
    for order in (devices, devices[::-1]):
        chosen = [kernel(*order).variant(device).device for device in (H200, ARC, EPYC)]
        assert chosen == [h200, arc, epyc]


def test_a_device_without_a_variant_is_named() -> None:
    with pytest.raises(ValueError, match=r"'k' has variants for gpu, nvidia.*AMD EPYC.*any device"):
        kernel("gpu", "nvidia").variant(EPYC)


def test_a_variant_for_the_same_devices_replaces_the_earlier_one() -> None:
    made = kernel("", "gpu").with_variant("NEW(u) = 3;", "GPU")
    assert made.devices == ("", "GPU")
    assert made.variant(H200).source.text == "NEW(u) = 3;"


def test_a_run_takes_the_variant_of_its_device() -> None:
    here = Stencil.of("here", [(0, 0)], [1], 1).program("int32")
    both = Kernel.of("k", "NEW(u) = 1;", device="gpu").with_variant("NEW(u) = 2;", "cpu")
    with Computation(here, 9, devices="cpu", kernel=both) as run:
        run.run(1)
        result = run.gather()
    assert result is not None and np.array_equal(result, [2] * 9)
