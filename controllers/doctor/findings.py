# SPDX-License-Identifier: MIT
"""What the facts mean: pure functions, so that any host can be examined in a test."""
from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from controllers.device.device import Device
from controllers.device.discovery import is_simulator, unique
from controllers.device.remedy import fault, needs_linker, remedy
from controllers.device.usable import offered
from controllers.device.verdict import Verdict
from controllers.doctor.facts import POCL_CACHE, Cache, Facts, HostFacts
from controllers.doctor.finding import Finding
from controllers.doctor.processes import binding, mpi
from controllers.doctor.shared_memory import shared_memory

_VARIABLES = {
    POCL_CACHE: "POCL_CACHE_DIR",
    "kernels": "CONTROLLERS_BUILD_CACHE",
    "tuning": "CONTROLLERS_TUNING",
    "links": "CONTROLLERS_LINKS",
    "estimates": "CONTROLLERS_ESTIMATES",
}
_LITTLE_DISK = 100 << 20
_LITTLE_MEMORY = 1 << 30


def find_all(facts: Facts) -> list[Finding]:
    """All findings of a job, those that several nodes share once."""
    nodes: dict[Finding, list[str]] = {}
    for node in facts.nodes:
        others = (*shared_memory(node), *binding(facts, node))
        for finding in (*drivers(node), *caches(node), *memory(node), *others):
            nodes.setdefault(finding, []).append(node.host)
    several = len(facts.nodes) > 1
    found = [replace(f, hosts=tuple(hosts) if several else ()) for f, hosts in nodes.items()]
    return [*versions(facts), *mpi(facts), *found]


def usable(node: HostFacts) -> list[Device]:
    """The devices that a run on this node can use."""
    return unique(listing for listing, _ in offered(node.verdicts))


def lacks_devices(facts: Facts) -> list[str]:
    """The hosts without a usable device; the reference does not count."""
    return [node.host for node in facts.nodes if not usable(node)]


def versions(facts: Facts) -> Iterator[Finding]:
    """Versions, and whether all nodes have the same."""
    first = facts.nodes[0].versions
    yield Finding("ok", "versions", ", ".join(f"{name} {text}" for name, text in first.items()))
    for node in facts.nodes[1:]:
        names = sorted({*first, *node.versions})
        other = [name for name in names if first.get(name) != node.versions.get(name)]
        if other:
            yield Finding(
                "warning", "versions",
                f"{node.host} has "
                + ", ".join(f"{name} {node.versions.get(name, 'missing')}" for name in other)
                + f"; {facts.nodes[0].host} has "
                + ", ".join(f"{name} {first.get(name, 'missing')}" for name in other),
                "Ranks of different versions may not understand each other.",
                "use the same virtual environment on all hosts",
            )  # fmt: skip


def drivers(node: HostFacts) -> Iterator[Finding]:
    """Whether a kernel ran on each driver's devices, and which are listed several times."""
    alone = not usable(node)
    for verdict in node.verdicts:
        if verdict.usable and verdict.tried:
            yield from _devices(verdict)
        elif verdict.outcome == "untried":
            yield Finding(
                "warning", "driver", f"{verdict.driver.name} was not tried: {verdict.detail}",
                "A driver that aborts or hangs would do so in a run.", "unset CONTROLLERS_PROBE",
            )  # fmt: skip
        else:
            yield Finding(
                "error" if alone else "warning", "driver",
                f"{verdict.driver.name}: {fault(verdict)}", _harm(verdict), remedy(verdict),
            )  # fmt: skip
    kept = usable(node)
    for listing, verdict in offered(node.verdicts):
        if not any(device is listing.device for device in kept):
            device = listing.device
            yield Finding(
                "ok", "driver",
                f"{device.name} of {verdict.driver.name} ({device.platform} {device.version}) is "
                f"the same device as another driver's, which is used instead",
            )  # fmt: skip


def _devices(verdict: Verdict) -> Iterator[Finding]:
    for tried in verdict.tried:
        device = tried.device
        kind = "simulator" if is_simulator(device) else device.kind
        name = f"{kind} {device.name}: {device.platform} {device.version}"
        if tried.problem:
            yield Finding(
                "warning", "driver", f"{name}: {tried.problem}",
                "The device is left out.", remedy(verdict),
            )  # fmt: skip
        else:
            yield Finding(
                "ok", "driver",
                f"{name}, a kernel built and run in {tried.seconds:.1f} s; "
                f"{_gib(device.memory_bytes)}, at most {_gib(device.max_allocation_bytes)} in one "
                f"piece; {verdict.driver.name}",
            )  # fmt: skip


def _harm(verdict: Verdict) -> str:
    if verdict.outcome == "empty":
        return "Nothing can run on it."
    if needs_linker(verdict):
        return "The driver is left out. Without it this process would have ended too."
    return "The driver is left out. Other programs that use OpenCL may fail in the same way."


def caches(node: HostFacts) -> Iterator[Finding]:
    """Whether what is compiled can be kept, and what is kept can be used and trusted."""
    has_pocl = any("pocl" in verdict.driver.library.lower() for verdict in node.verdicts)
    good = []
    for cache in node.caches:
        is_pocl = cache.name == POCL_CACHE
        if is_pocl and not has_pocl:
            continue
        found = [*_refused(node, cache, is_pocl), *_damage(cache)]
        if not found:
            good.append(f"{cache.name} in {cache.folder}")
        yield from found
    if good:
        yield Finding("ok", "caches", ", ".join(good))


def _refused(node: HostFacts, cache: Cache, is_pocl: bool) -> Iterator[Finding]:
    """Whether a folder can be written, by this user alone, and has room."""
    # a name that nobody can guess: in the shared temporary folder it might be there already
    elsewhere = f"export {_VARIABLES.get(cache.name, 'XDG_CACHE_HOME')}=$(mktemp -d)"
    if cache.problem:
        yield Finding(
            "error" if is_pocl and not usable(node) else "warning", "caches",
            f"{cache.name}: {cache.folder} cannot be written: {cache.problem}",
            "PoCL offers no device without it." if is_pocl else "It is made anew every time.",
            elsewhere,
        )  # fmt: skip
    elif cache.untrusted:
        why = "PoCL executes what is in there." if is_pocl else "It is left out."
        yield Finding(
            "warning", "caches", f"{cache.name}: {cache.folder} is not safe: {cache.untrusted}",
            f"Who can write it can change what a run does. {why}", elsewhere,
        )  # fmt: skip
    elif cache.free_bytes < _LITTLE_DISK:
        yield Finding(
            "warning", "caches",
            f"{cache.name}: {cache.folder} has {cache.free_bytes >> 20} MiB left",
            "Kernels are compiled anew when the disk is full; PoCL may fail.", elsewhere,
        )  # fmt: skip


def _damage(cache: Cache) -> Iterator[Finding]:
    """Files that end a run which needs them."""
    if cache.damaged:
        others = f", and {len(cache.damaged) - 1} more" if cache.damaged[1:] else ""
        yield Finding(
            "error", "caches", f"{cache.name}: damaged: {cache.damaged[0]}{others}",
            "A run that needs it fails or is ended by the driver. What is removed is made anew.",
            f"rm -r {shlex.quote(cache.folder)}",
        )  # fmt: skip


def memory(node: HostFacts) -> Iterator[Finding]:
    """How much there is."""
    what = f"{_gib(node.memory_bytes)} on the host, {_gib(node.free_bytes)} of it free"
    if node.free_bytes < _LITTLE_MEMORY:
        why = "A field that does not fit is refused, or the process is killed."
        yield Finding("warning", "memory", what, why, "end other programs, or use more hosts")
    else:
        yield Finding("ok", "memory", what)


def _gib(nbytes: int) -> str:
    return f"{nbytes / 2**30:.1f} GiB"
