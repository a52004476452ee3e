# SPDX-License-Identifier: MIT
"""The selectors that name given devices: the way back from a device to what chooses it."""
from __future__ import annotations

import warnings
from collections.abc import Sequence

from controllers.device.device import Device
from controllers.device.listing import devices


def selectors(found: Sequence[Device]) -> list[str]:
    """For each device its kind, with its position where there are several of the kind."""
    kinds = [device.kind for device in found]
    return [
        f"{kind}:{kinds[:number].count(kind)}" if kinds.count(kind) > 1 else kind
        for number, kind in enumerate(kinds)
    ]


def selector_of(device: Device) -> str:
    """What names this device of this host, or this part of one, and no other: "gpu:1".

    >>> from controllers.device.device import reference_device
    >>> selector_of(reference_device())
    'reference'
    """
    whole = device if device.part is None else device.part.whole
    with warnings.catch_warnings():     # of drivers, of which whoever chose it was told
        warnings.simplefilter("ignore")
        found = devices()
    names = (
        name for name, other in zip(selectors(found), found)
        if (other.handle == whole.handle if whole.uses_opencl else other.kind == whole.kind)
    )  # fmt: skip
    name = next(names)
    if device.part is None:
        return name
    return f"{name}/{','.join(map(str, device.part.counts))}:{device.part.index}"
