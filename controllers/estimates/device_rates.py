# SPDX-License-Identifier: MIT
"""How fast a device is with tasks that it has never executed, by what these move and compute.

Learnt of all tasks whose work is known; where none was executed, a rough guess by the class.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from controllers.device.device import Device
from controllers.estimates.estimate import Estimate, Source, spread
from controllers.estimates.history import History, Times
from controllers.estimates.median_fit import MOST_POINTS, median_fit
from controllers.estimates.task_key import Case, Work, units_of

# A core of a CPU is 1: rough, for devices of which nothing is known; what is measured corrects it.
_OF_KIND = {"gpu": 100.0, "accelerator": 50.0, "reference": 0.05}
CORE_BYTES_PER_S = 8e9      # that a core of a CPU moves, about
CORE_OPERATIONS_PER_S = 8e9
START_S = 20e-6             # of an execution, about
GUESS = 3.0                 # by how much more or less a guess is off
LEAST_POINTS = 3


@dataclass(frozen=True)
class DeviceRates:
    """Seconds of an execution, of each byte, and of each operation, for one unit of a device.

    error: the part by which executions lie off, of `n_points` of them.
    """

    start_s: float
    byte_s: float
    operation_s: float
    width: float
    source: Source
    n_points: int = 0

    def estimate(self, work: Work, units: int = 1) -> Estimate:
        """Of an execution of such work, divided among units."""
        each = (work.nbytes * self.byte_s + work.operations * self.operation_s) / units
        return Estimate.about(self.start_s + each, self.width, self.source, self.n_points)


def learnt(histories: Iterable[History]) -> DeviceRates | None:
    """Of what one device has executed; None where too little of it says what its work was."""
    points = [
        (times.newest, case, times)
        for history in histories
        for case, times in history.cases.items()
        if times.work != Work()
    ]
    points = sorted(points, key=lambda one: one[:2])[-MOST_POINTS:]
    if len(points) < LEAST_POINTS:
        return None
    terms = np.array([_row(case, times) for _, case, times in points])
    scale = np.maximum(terms.max(axis=0), 1e-30)
    seconds = np.array([float(np.median(times.seconds)) for _, _, times in points])
    fit = median_fit(terms / scale, seconds, np.ones(len(points)))
    byte_s, operation_s, start_s = (float(value) for value in fit.coefficients / scale)
    width = spread(fit.error, len(points), fit.n_terms)
    return DeviceRates(start_s, byte_s, operation_s, width, "rates", len(points))


def _row(case: Case, times: Times) -> tuple[float, float, float]:
    return times.work.nbytes / case.units, times.work.operations / case.units, 1.0


def class_rate(device: Device) -> float:
    """How fast such devices are about, in cores of a CPU.

    >>> from controllers.device.device import reference_device
    >>> class_rate(reference_device())
    0.05
    """
    return _OF_KIND.get(device.kind, float(max(1, device.compute_units)))


def guessed(device: Device) -> DeviceRates:
    """Of a device of which nothing is known.

    >>> from controllers.device.device import reference_device
    >>> guessed(reference_device()).estimate(Work(nbytes=4e8)).seconds
    1.00002
    """
    cores = class_rate(device) / units_of(device)
    return DeviceRates(
        START_S, 1 / (CORE_BYTES_PER_S * cores), 1 / (CORE_OPERATIONS_PER_S * cores), GUESS, "class"
    )
