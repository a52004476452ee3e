# SPDX-License-Identifier: MIT
"""How many cores nobody else computes on, as the kernel counts their idle time."""
from __future__ import annotations

import os
import time
from pathlib import Path

SAMPLE_S = 0.2      # twenty ticks of the kernel's clock
_STAT = Path("/proc/stat")


def free_cores() -> int:
    """At least 1, and all where the kernel does not tell; call it while nothing is computed."""
    own = os.sched_getaffinity(0)
    try:
        before, start = idle_s(_STAT.read_text("ascii"), own), time.monotonic()
        time.sleep(SAMPLE_S)
        idle = idle_s(_STAT.read_text("ascii"), own) - before
    except (OSError, ValueError):       # no /proc, or another one
        return len(own)
    if before == 0:     # some containers show no figures
        return len(own)
    return min(len(own), max(1, round(idle / (time.monotonic() - start))))


def idle_s(stat: str, cores: set[int]) -> float:
    """The seconds that some cores have been idle or waiting for a disk, from /proc/stat.

    >>> text = "cpu  3 0 0 900 100\\ncpu0 1 0 0 300 0\\ncpu1 2 0 0 600 100\\nintr 5"
    >>> idle_s(text, {1}) * os.sysconf("SC_CLK_TCK")
    700.0
    """
    ticks = 0
    for line in stat.splitlines():
        name, *figures = line.split()
        if name.startswith("cpu") and name != "cpu" and int(name[3:]) in cores:
            ticks += int(figures[3]) + int(figures[4])
    return ticks / os.sysconf("SC_CLK_TCK")
