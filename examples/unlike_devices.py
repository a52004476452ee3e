# SPDX-License-Identifier: MIT
"""One stencil on devices that are not alike, each with the share that it can carry.

    python examples/unlike_devices.py                  # a GPU and the CPU; else CPU and NumPy
    python examples/unlike_devices.py cpu/1,3          # parts of a CPU of four cores
    python examples/unlike_devices.py nvidia amd intel

Shares are found while steps run, by the times of the launches (docs/balance.md); with
balance="dynamic" they follow devices that become slower.
"""
import sys

import numpy as np

import controllers

EXTENT, STEPS = (1001, 997), 60
BLUR = controllers.Stencil.of(
    "blur", [(-1, 1), (-1, 1)], [[1, 2, 1], [2, 4, 2], [1, 2, 1]], 16
).program("float32")


def selectors() -> list[str]:
    """What there is: the most unlike devices first."""
    kinds = {device.kind for device in controllers.devices()}
    return [*sorted(kinds & {"gpu"}), *sorted(kinds & {"cpu"}), "reference"][:2]


def main(*wanted: str) -> None:
    devices = list(wanted) or selectors()
    start = np.random.default_rng(1).random(EXTENT, np.float32)
    with controllers.Computation(BLUR, start, devices=devices, weights="auto") as blur:
        blur.run(STEPS)
        result, report = blur.gather(), blur.report()
    print(report.table())       # at its end, the shares
    right = controllers.reference_run(BLUR, start, STEPS, (False, False))
    assert np.array_equal(result, right), "the bits of the NumPy reference, whatever the devices"


if __name__ == "__main__":
    main(*sys.argv[1:])
