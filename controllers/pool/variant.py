# SPDX-License-Identifier: MIT
"""A variant: one way to do a task, by a function on cores of the host, or by a kernel."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, Union

from controllers.device.device import Device
from controllers.device.selection import Selector
from controllers.kernel.variant import Kernel
from controllers.language.each import Each
from hitmap.argument import short, whole, wrong

HOST = "host"
Body: TypeAlias = Union[Callable[..., Any], Kernel, Each]
Devices: TypeAlias = Union[int, Sequence[int], None]


@dataclass(frozen=True, eq=False)
class Variant:
    """One way to do a task.

    on: "host", or which devices it is for, as a selector names them; "" for any.
    least, most: cores that a function can use; it is told how many it got where it has a
        keyword-only parameter `cores`, and which rows are its own, of arrays that are whole, where
        it has one `rows` (`ct.hybrid`).
    devices: at least and at most so many devices are a function's own; it is told their selectors
        where it has a keyword-only parameter `devices`.
    over: the parameter over whose cells a kernel is launched.  group: extents of its work-groups.
    """

    body: Body = field(repr=False)
    name: str
    on: str
    least: int = 1
    most: int = 1
    over: str = ""
    group: tuple[int, ...] | None = None
    tells: frozenset[str] = frozenset()
    devices: tuple[int, int] = (0, 0)

    @property
    def counts_rows(self) -> bool:
        """Whether it is told which rows of whole arrays are its own."""
        return "rows" in self.tells or not self.is_function

    @property
    def is_function(self) -> bool:
        """Whether it is a function of Python's, which cores of the host call."""
        return not isinstance(self.body, (Kernel, Each))

    @property
    def place(self) -> str:
        """Where it can be done, for people."""
        where = self.on or "any device"
        if not self.devices[1]:
            return f"on {where}"
        least, most = self.devices
        n = str(least) if least == most else f"{least} to {most}"
        return f"on {HOST} with {n} of {where}"

    def suits(self, device: Device | None) -> bool:
        """Whether it can be done on this device, or where that is None, on the host."""
        if device is None:
            return self.is_function or self.on == HOST
        if self.is_function or self.on == HOST:
            return False
        if self.on and not Selector.parse(self.on).matches(device):
            return False
        if isinstance(self.body, Kernel):
            return any(one.fit(device) != (0, 0) for one in self.body.variants)
        return True

    def may_have(self, device: Device) -> bool:
        """Whether this can be one of the devices of a function."""
        if not self.devices[1]:
            return False
        return not self.on or Selector.parse(self.on).matches(device)


def checked_devices(task: str, devices: Devices, at_least: int = 1) -> tuple[int, int]:
    """The least and the most; ValueError or TypeError for what is no such thing.

    >>> checked_devices("flow", 2), checked_devices("flow", (1, 4)), checked_devices("flow", None)
    ((2, 2), (1, 4), (0, 0))
    """
    if devices is None:
        return 0, 0
    what = f"task {task!r}: devices"
    remedy = "write devices=2, or devices=(1, 2) for at least 1 and at most 2"
    if isinstance(devices, (str, bytes)) or not isinstance(devices, (int, Sequence)):
        raise wrong(what, "a number, or the least and the most", devices, remedy)
    pair = (devices, devices) if isinstance(devices, int) else tuple(devices)
    if len(pair) != 2:
        raise ValueError(f"{what} are a least and a most number, got {short(devices)}; {remedy}")
    least = whole(pair[0], f"{what}, the least", at_least)
    return least, whole(pair[1], f"{what}, the most", max(1, least))


def told(body: Body, *, devices: bool) -> frozenset[str]:
    """What the pool gives to a function by name; `devices`: also those that are its own."""
    try:
        found = inspect.signature(body).parameters  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return frozenset()
    return frozenset(
        name for name in ("cores", "rows", *["devices"] * devices)
        if name in found and found[name].kind is inspect.Parameter.KEYWORD_ONLY
    )  # fmt: skip
