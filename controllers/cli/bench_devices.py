# SPDX-License-Identifier: MIT
"""Which devices a benchmark measures, one after the other."""
from __future__ import annotations

import warnings

from controllers.cli.outcome import NO_DEVICE, USAGE, Failure
from controllers.device import (
    Device,
    NoDeviceError,
    choose,
    computing,
    explained,
    find_devices,
    loading_usable,
    probe_wanted,
    problems,
)
from controllers.device.naming import selectors


def names_alone(wanted: list[str]) -> list[str]:
    """A selector for each device that is wanted, which names it alone."""
    verdicts = probe_wanted([wanted])
    for text in problems(verdicts):
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    with loading_usable(verdicts):
        found = computing(find_devices(), verdicts)
    try:
        chosen = choose(wanted, found)
    except NoDeviceError as error:
        raise Failure(NO_DEVICE, str(explained(error, found, verdicts))) from None
    except ValueError as error:
        raise Failure(USAGE, str(explained(error, found, verdicts))) from None
    names = dict(zip(map(id, found), selectors(found)))
    return [_name(device, names) for device in chosen]


def _name(device: Device, names: dict[int, str]) -> str:
    part = device.part
    if not device.uses_opencl or (part is not None and len(part.counts) > 1):
        raise Failure(
            USAGE, f"bench measures an OpenCL device, or one part of a CPU, by itself, got "
            f"{device.name}; choose one, such as cpu/1",
        )
    if part is None:
        return names[id(device)]
    return f"{names[id(part.whole)]}/{part.counts[0]}"
