# SPDX-License-Identifier: MIT
"""Which drivers can be used: each is tried in a child process, since it may abort or hang it.

The verdict on a driver is kept in the user's cache, one entry per driver and all that the outcome
depends on as far as it can be seen, limits of this process included.  One that is not good is kept
for some minutes, and is no reason to give up: `probe_for` tries the driver again then.

The environment variable CONTROLLERS_PROBE is how many seconds a trial may take; or "off", all
drivers are trusted.
"""
from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from controllers.device.child import try_driver
from controllers.device.driver import Driver, installed_drivers
from controllers.device.verdict import Verdict
from controllers.process.entry_cache import UNREADABLE, EntryCache, user_folder

_logger = logging.getLogger(__name__)
VARIABLE = "CONTROLLERS_PROBE"
LIMIT_S = 20.0          # a trial takes a second or two
BAD_FOR_S = 300.0       # then the driver gets another chance
_MAX_BYTES = 4 << 20
_VARIABLES = ("POCL_", "OCL_", "OPENCL_", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "HOME")
_BOOT = Path("/proc/sys/kernel/random/boot_id")     # a cache may be shared by several hosts


def probe(fresh: bool = False) -> list[Verdict]:
    """The verdict on each driver of this host, from the cache or, at once, by trials.

    With `fresh` all are tried again.
    """
    drivers = installed_drivers()
    kept = {} if fresh else {d: v for d in drivers if (v := _kept(d)) is not None}
    return _completed(drivers, kept)


def probe_for(enough: Callable[[Sequence[Verdict]], bool]) -> list[Verdict]:
    """As `probe`; where that is not `enough`, drivers that have failed before are tried again."""
    drivers = installed_drivers()
    kept = {d: v for d in drivers if (v := _kept(d)) is not None}
    good = {driver: verdict for driver, verdict in kept.items() if verdict.outcome == "good"}
    found = _completed(drivers, kept)
    if len(good) == len(kept) or enough(found):
        return found
    now = {v.driver: v for v in found if v.driver not in kept}     # those just tried
    return _completed(drivers, {**good, **now})


def _completed(drivers: Sequence[Driver], kept: Mapping[Driver, Verdict]) -> list[Verdict]:
    """The verdicts on `drivers`: those that are `kept`, the others by trials, at once."""
    limit_s = _limit_s()
    if limit_s is None:
        return [Verdict(driver, "untried", detail=f"{VARIABLE}=off") for driver in drivers]
    found = dict(kept)
    unknown = [driver for driver in drivers if driver not in found]
    if unknown:
        with ThreadPoolExecutor(len(unknown)) as pool:
            for verdict in pool.map(lambda driver: try_driver(driver, limit_s), unknown):
                found[verdict.driver] = verdict
                _logger.info("driver %s was tried: %s", verdict.driver.name, verdict.outcome)
                _keep(verdict)
    return [found[driver] for driver in drivers]


def _limit_s() -> float | None:
    """How long a trial may take; None for no trials."""
    wanted = os.environ.get(VARIABLE) or f"{LIMIT_S}"
    if wanted.lower() == "off":
        return None
    try:
        limit_s = float(wanted)
    except ValueError:
        limit_s = 0.0
    if not 0 < limit_s < float("inf"):
        raise ValueError(f'{VARIABLE} is a number of seconds or "off", got {wanted!r}')
    return limit_s


def _cache() -> EntryCache:
    return EntryCache(user_folder("drivers"), ".json", _MAX_BYTES)


def _keep(verdict: Verdict) -> None:
    if verdict.outcome != "untried":
        content = json.dumps([time.time(), verdict.to_json()])
        _cache().store(_depends_on(verdict.driver), content.encode())


def _kept(driver: Driver) -> Verdict | None:
    """The verdict in the cache; None if there is none that counts."""
    content = _cache().load(_depends_on(driver))
    if content is None:
        return None
    try:
        at, text = json.loads(content)
        verdict = Verdict.from_json(text)
        is_young = 0 <= time.time() - at < BAD_FOR_S
    except UNREADABLE:
        return None
    return verdict if verdict.outcome == "good" or is_young else None


def _depends_on(driver: Driver) -> list[str]:
    """What may change the outcome, as far as it can be seen without trying."""
    linker = shutil.which("ld") or ""
    # a name without a folder is looked up in ld.so.cache, which changes when a package comes
    library = driver.library if os.path.isabs(driver.library) else "/etc/ld.so.cache"
    variables = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith(_VARIABLES))
    boot = _BOOT.read_text("ascii") if _BOOT.exists() else ""
    return [
        "verdict 2", driver.icd, _stamp(driver.icd), driver.library, _stamp(library), linker,
        _stamp(linker), importlib.metadata.version("pyopencl"), sys.executable, boot, *_limits(),
        *variables,
    ]  # fmt: skip


def _limits() -> list[str]:
    """What a trial may take: time, and what the system grants this process."""
    names = sorted(n for n in dir(resource) if n.startswith("RLIMIT_") and n != "RLIMIT_CORE")
    granted = [f"{name} {resource.getrlimit(getattr(resource, name))}" for name in names]
    return [f"{_limit_s()} s", *granted]


def _stamp(path: str) -> str:
    """Changes when the file does."""
    try:
        status = os.stat(path)
    except OSError:
        return "none"
    return f"{status.st_mtime_ns} {status.st_size}"
