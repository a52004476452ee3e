# SPDX-License-Identifier: MIT
"""How to mend a driver that cannot be used, in one command where there is one."""
from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Sequence
from typing import TypeVar

from controllers.device.child import kernel_cache_folder
from controllers.device.device import Device
from controllers.device.verdict import Verdict
from controllers.process.private_folder import exposure

_E = TypeVar("_E", bound=Exception)

# PoCL 3 calls `ld` with -lgcc -lgcc_s -lc; Debian's gcc only recommends the package of the last.
_LINKER = {
    "apt-get": "apt-get install -y gcc libc6-dev",
    "dnf": "dnf install -y gcc",
    "yum": "yum install -y gcc",
    "zypper": "zypper install -y gcc",
    "apk": "apk add gcc musl-dev",
}
_SYSTEM = "/usr/bin:/bin:/usr/sbin:/sbin"
DOCTOR = "python -m controllers doctor"
# the distribution's name, which is not that of the package: the index has another `controllers`
INSTALL_LOCAL = 'pip install "opencl-controllers[local]", or in a checkout pip install ".[local]"'
# what there is where the kernel drives a GPU of the vendor
_HARDWARE = {"nvidia": "/dev/nvidiactl", "amd": "/dev/kfd"}


def problems(verdicts: Collection[Verdict]) -> list[str]:
    """What is left out, why, and the remedy: a sentence per driver; and what is not safe."""
    told = [_sentence(v) for v in verdicts if not v.usable or _lacks_devices(v)]
    has_pocl = any(v.tried and "pocl" in v.driver.library.lower() for v in verdicts)
    if has_pocl and (exposed := exposure(kernel_cache_folder())):
        told.append(f"PoCL executes what is in {kernel_cache_folder()}, but {exposed}; {DOCTOR}")
    return told


def explained(error: _E, devices: Sequence[Device], verdicts: Collection[Verdict]) -> _E:
    """An error of choosing among `devices`, with what is known of the drivers that offer none."""
    told = "; ".join(
        _sentence(v) for v in verdicts if v.outcome not in ("good", "untried") and v.driver.library
    )
    if not told:
        return error
    if not any(device.uses_opencl for device in devices):
        return type(error)(
            f'no usable OpenCL device: {told}; or choose the device "reference", which needs none'
        )
    return type(error)(f"{error}; {told}")


def _lacks_devices(verdict: Verdict) -> bool:
    """Whether a driver that may be loaded offers less than there seems to be."""
    if verdict.outcome == "good":
        return bool(verdict.detail)
    there = (vendor for vendor, path in _HARDWARE.items() if os.path.exists(path))
    return verdict.outcome == "empty" and any(
        vendor in f"{verdict.driver.icd} {verdict.driver.library}".lower() for vendor in there
    )


def _sentence(verdict: Verdict) -> str:
    what = f"OpenCL driver {verdict.driver.name} is left out: {fault(verdict)}"
    return f"{what}; to mend it: {remedy(verdict)}; then try it again: {DOCTOR}"


def fault(verdict: Verdict) -> str:
    """What is wrong, in a few words."""
    if needs_linker(verdict):
        return "PoCL needs the linker ld with gcc's libraries, and aborts the process without"
    if verdict.outcome == "empty":
        return f"it {verdict.detail}"
    return verdict.detail


def remedy(verdict: Verdict) -> str:
    """What mends it."""
    if needs_linker(verdict):
        return install_linker()
    icd = verdict.driver.icd
    if verdict.outcome == "empty" and "pocl" in verdict.driver.library.lower():
        return f"let PoCL write to {kernel_cache_folder()}, or unset POCL_DEVICES if it is set"
    away = f"mv {icd} {icd}.off" if icd else f"unset what names {verdict.driver.name}"
    if "cannot be loaded" in verdict.detail:
        return f"install the driver again, or remove it: {away}"
    if verdict.outcome == "empty" and not verdict.driver.library:
        return INSTALL_LOCAL
    if verdict.outcome == "empty":
        return "see that this user may open the device (groups video and render)"
    return f"update or reinstall the driver, or take it out of use: {away}"


def needs_linker(verdict: Verdict) -> bool:
    """Whether PoCL's wheel died because it could not link a kernel."""
    told = re.search(r"linker command failed|Final linking|Executable \"ld\"", verdict.detail)
    return verdict.outcome == "aborted" and told is not None


def install_linker() -> str:
    """The command that brings the linker on this host."""
    found = (command for tool, command in _LINKER.items() if shutil.which(tool, path=_SYSTEM))
    return next(found, "install the package gcc, which brings the linker ld")
