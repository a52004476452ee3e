# SPDX-License-Identifier: MIT
"""One stencil on devices that are not alike, each with the share that it can carry.

    python examples/unlike_devices.py                  # a GPU and the CPU; else CPU and NumPy
    python examples/unlike_devices.py cpu/1,3          # parts of a CPU of four cores
    python examples/unlike_devices.py nvidia amd intel

Each device first runs alone for a few steps; its cells per second are its weight.
"""
import sys

import numpy as np

import controllers
from controllers.device import choose

EXTENT, STEPS, TRIAL = (1001, 997), 60, 4
BLUR = controllers.Stencil.of(
    "blur", [(-1, 1), (-1, 1)], [[1, 2, 1], [2, 4, 2], [1, 2, 1]], 16
).program("float32")


def selectors() -> list[str]:
    """What there is: the most unlike devices first."""
    kinds = {device.kind for device in controllers.devices()}
    return [*sorted(kinds & {"gpu"}), *sorted(kinds & {"cpu"}), "reference"][:2]


def speed(devices: list[str], number: int) -> float:
    """Cells per second of the device `number`, when it has nearly all of the field."""
    weights = [1000.0 if place == number else 1.0 for place in range(n_places(devices))]
    with controllers.Computation(BLUR, EXTENT, devices=devices, weights=weights) as trial:
        trial.run(TRIAL)
        return trial.report().places[number].cells_per_s


def n_places(devices: list[str]) -> int:
    return len(choose(devices, controllers.devices()))


def main(*wanted: str) -> None:
    devices = list(wanted) or selectors()
    weights = [speed(devices, number) for number in range(n_places(devices))]
    start = np.random.default_rng(1).random(EXTENT, np.float32)
    with controllers.Computation(BLUR, EXTENT, devices=devices, weights=weights) as blur:
        blur.scatter(start)
        blur.run(STEPS)
        result = blur.gather()
        print(blur.report().table())
    right = controllers.reference_run(BLUR, start, STEPS, (False, False))
    assert np.array_equal(result, right), "the bits of the NumPy reference, whatever the devices"


if __name__ == "__main__":
    main(*sys.argv[1:])
