# SPDX-License-Identifier: MIT
"""What tasks of the host may do: they work in host memory, on fields that are read in place."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from controllers.plan.operation import HostTask, Location


def check_host_tasks(
    tasks: Sequence[HostTask],
    fields: Sequence[str],
    locations: Sequence[Location],
    is_plain: Callable[[str], bool],
) -> None:
    """ValueError where a task cannot be done; `is_plain`: a field has one buffer and no halo."""
    devices = [n for n, where in enumerate(locations) if not where.shares_host]
    for task in tasks:
        for field in (*task.reads, *task.writes):
            if field not in fields:
                raise ValueError(
                    f"host task {task.name!r} uses the field {field!r}, the program has "
                    f"{', '.join(fields)}"
                )
            if field in task.writes and not is_plain(field):
                raise ValueError(
                    f"host task {task.name!r} writes the field {field!r}, of which steps keep "
                    f"several buffers or halos; write a field that is read in place alone"
                )
        if devices:
            raise ValueError(
                f"host task {task.name!r} works on cells in host memory, place {devices[0]} "
                f"has its cells in a device's; use devices that share the host's"
            )
