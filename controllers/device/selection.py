# SPDX-License-Identifier: MIT
"""Selectors: how a user names devices.

    gpu, cpu, accelerator    all devices of a kind
    nvidia                   all whose name, vendor or platform contains the word, in any case
    nvidia:1                 the second one of these
    cpu/1,1                  parts of 1 and 1 cores of a CPU
    cpu/1,1:1                the second one of these
    reference                the NumPy reference, which needs no OpenCL
    auto                     of all others that are named, or of all that there are, those that pay

Never a bare number: how drivers list devices differs between hosts.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from controllers.device.device import WITHOUT_OPENCL, Device, DeviceKind, NoDeviceError
from hitmap.argument import instance, wrong

AUTO = "auto"
_CHOOSE = 'choose devices by kind or name, such as "gpu", "cpu" or "nvidia:1"'
_FORM = re.compile(
    r"(?P<word>.*?)(?::(?P<position>\d+))?(?:/(?P<counts>\d+(?:,\d+)*)(?::(?P<part>\d+))?)?"
)


@dataclass(frozen=True)
class Selector:
    """A selector taken apart: `nvidia:1` is the word "nvidia" and position 1.

    part: which one of the parts of `counts` cores; None for all of them.
    """

    text: str
    word: str
    position: int | None
    counts: tuple[int, ...]
    part: int | None = None

    @classmethod
    def parse(cls, text: str) -> Selector:
        """ValueError where `text` is no selector.

        >>> Selector.parse("cpu:0/1,3")
        Selector(text='cpu:0/1,3', word='cpu', position=0, counts=(1, 3), part=None)
        """
        match = _FORM.fullmatch(text.strip())
        assert match is not None, "the word takes what is left"
        word = match["word"].strip().lower()
        counts = tuple(int(count) for count in (match["counts"] or "").split(",") if count)
        if not word or re.search(r"[:/]|^\d+$", word):
            raise ValueError(
                f"a device is chosen by kind or name, such as gpu, cpu, nvidia, nvidia:1, cpu/1,1 "
                f"or reference, got {text!r}; `controllers devices` lists the names"
            )
        if 0 in counts:
            raise ValueError(f"a part of a CPU has at least one core, got {text!r}")
        position, part = (
            None if match[name] is None else int(match[name]) for name in ("position", "part")
        )
        if part is not None and part >= len(counts):
            raise ValueError(
                f"{text!r}: parts count from 0 and there are {len(counts)}; name one of these"
            )
        return cls(text, word, position, counts, part)

    def matches(self, device: Device) -> bool:
        """Whether the word fits; a kind fits that kind only."""
        if self.word in _kinds():
            return device.kind == self.word
        names = (device.name, device.vendor, device.platform)
        return device.uses_opencl and any(self.word in name.lower() for name in names)


def choose(selectors: Sequence[str], devices: Sequence[Device]) -> list[Device]:
    """The devices that `selectors` name, each once, in this order; parts are not opened yet.

    Without selectors, all GPUs if there are any, else the CPU; with "auto" alone, all devices that
    run kernels.  ValueError where a selector is
    malformed, names no device, or divides what cannot be divided; NoDeviceError where there is
    no device of the kind it asks for, or no OpenCL device at all.  "reference" may be named
    more than once.
    """
    named = [text for text in selectors if text.strip().lower() != AUTO]
    if len(named) < len(selectors) and not named:
        return _all(devices)
    parsed = [Selector.parse(text) for text in named]
    if not parsed:
        return _default(devices)
    chosen: list[tuple[int, Device]] = []
    for selector in parsed:
        for number, device in _select(selector, devices):
            if (number, device) not in chosen or not device.uses_opencl:
                _refuse_overlap(number, device, chosen)
                chosen.append((number, device))
    return [device for _, device in chosen]


def _kinds() -> set[str]:
    """The words that select all devices of a kind."""
    return {*get_args(DeviceKind), *WITHOUT_OPENCL}


def _default(devices: Sequence[Device]) -> list[Device]:
    for kind in ("gpu", "cpu", "accelerator"):
        if found := [device for device in devices if device.kind == kind]:
            return found
    raise NoDeviceError(_NO_DEVICE)


def _all(devices: Sequence[Device]) -> list[Device]:
    found = [device for device in devices if device.uses_opencl]
    if not found:
        raise NoDeviceError(_NO_DEVICE)
    return found


_NO_DEVICE = (
    "no OpenCL device found on this host; install the driver of one, or PoCL for the CPU "
    '(pip install "opencl-controllers[local]"), or choose the device "reference", which needs none'
)


def _select(selector: Selector, devices: Sequence[Device]) -> list[tuple[int, Device]]:
    """The devices that fit, or the parts of one, each with the number of its device."""
    found = [entry for entry in enumerate(devices) if selector.matches(entry[1])]
    if not found:
        if not any(device.uses_opencl for device in devices):
            raise NoDeviceError(_NO_DEVICE)
        text = f"no device fits {selector.text!r}; choose one of {_listed(devices)}"
        raise NoDeviceError(text) if selector.word in _kinds() else ValueError(text)
    if selector.position is not None:
        if selector.position >= len(found):
            raise ValueError(
                f"{selector.text!r}: positions count from 0 and {len(found)} "
                f"{'device fits' if len(found) == 1 else 'devices fit'} {selector.word!r}; "
                f"there are {_listed(devices)}"
            )
        found = [found[selector.position]]
    if not selector.counts:
        return found
    if len(found) > 1:
        raise ValueError(
            f"{selector.text!r}: {len(found)} devices fit {selector.word!r}; "
            f"say which one to divide, as in {selector.word}:0/1,1"
        )
    number, device = found[0]
    return [(number, part) for part in _divided(device, selector)]


def _divided(device: Device, selector: Selector) -> list[Device]:
    counts = selector.counts
    if counts == (device.compute_units,) and device.kind == "cpu":
        return [device]
    if device.kind != "cpu":
        raise ValueError(f"{selector.text!r}: only a CPU can be divided, {device.name} is none")
    if sum(counts) > device.compute_units:
        raise ValueError(
            f"{selector.text!r}: {sum(counts)} cores in all, but {device.name} has "
            f"{device.compute_units}; ask for fewer"
        )
    if not device.divisible:
        raise ValueError(f"{selector.text!r}: the driver of {device.name} cannot divide it")
    wanted = range(len(counts)) if selector.part is None else [selector.part]
    return [device.divided(counts, index) for index in wanted]


def _refuse_overlap(number: int, device: Device, chosen: Sequence[tuple[int, Device]]) -> None:
    """ValueError if cores of this device have been chosen already, in another division."""
    counts = device.part and device.part.counts
    for other_number, other in chosen:
        if other_number == number and counts != (other.part and other.part.counts):
            raise ValueError(
                f"{device.name} and {other.name} share cores; name all parts in one selector, "
                f"such as cpu/1,1"
            )


def _listed(devices: Sequence[Device]) -> str:
    return ", ".join(f"{device.name} ({device.kind})" for device in devices)


def selectors_of(selectors: str | Sequence[str]) -> list[str]:
    """Each by itself, in small letters.

    >>> selectors_of("Auto")
    ['auto']
    """
    several = [selectors] if isinstance(selectors, str) else selectors
    return [text.strip().lower() for text in several]


def check_selectors(selectors: object, what: str) -> None:
    """TypeError unless these are None, a text, or several."""
    if selectors is None or isinstance(selectors, str):
        return
    if not isinstance(selectors, (list, tuple)):
        raise wrong(what, "a text or a list of texts", selectors, _CHOOSE)
    for selector in selectors:
        check_selector(selector, what)


def check_selector(selector: object, what: str) -> None:
    """TypeError unless this is a text."""
    instance(selector, str, what, _CHOOSE)
