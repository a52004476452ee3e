# SPDX-License-Identifier: MIT
"""Images of fields on the host: how much memory they may take, and whether the disk has the rest.

What does not fit is known, on all ranks, before anything is allocated.
"""
# docs/decisions/0066-images-in-files.md
from __future__ import annotations

import os
import platform
import tempfile
from collections import defaultdict
from dataclasses import replace

from controllers.device.device import host_memory_bytes
from controllers.memory.ledger import HOST_ENVIRONMENT, MemoryCapError, cap_for, sizes
from controllers.memory.scratch_file import whole_pages
from controllers.placement.placement import failing_together
from controllers.plan import ChunkPlan
from controllers.plan.chunks.images import Images
from controllers.settings.execution import Execution
from hitmap.comm import Communicator, node_ranks


def images_for(execution: Execution, comm: Communicator) -> Images:
    """What an execution says of images; ValueError where that is wrong on a rank.  Collective."""
    _, n_ranks = node_ranks(comm)
    usual = host_memory_bytes() // (2 * n_ranks)
    with failing_together(comm):
        cap_bytes = cap_for(usual, execution.host_memory_cap, HOST_ENVIRONMENT)
    folder = tempfile.gettempdir() if execution.scratch is None else os.fspath(execution.scratch)
    return Images(cap_bytes, folder)


def least_images(images: Images, comm: Communicator) -> Images:
    """As if all ranks had as little memory as the one with the least: what they choose by.

    Collective.
    """
    caps = [cap for cap in comm.allgather(images.cap_bytes) if cap is not None]
    return replace(images, cap_bytes=min(caps, default=None))


def check_disk(plan: ChunkPlan, comm: Communicator) -> None:
    """`MemoryCapError` on all ranks where files of images have no room on any of them.

    plan: of this rank.  Ranks of one host may share a disk.  Collective.
    """
    folder, needed = plan.images.folder, file_nbytes(plan)
    told = comm.allgather((platform.node(), needed, *_free(folder, needed)))
    disks: dict[tuple[str, int], list[int]] = defaultdict(list)
    for rank, (node, nbytes, disk, free, problem) in enumerate(told):
        if problem:
            raise MemoryCapError(f"rank {rank}: {problem}" if comm.size > 1 else problem)
        disks[node, disk] += [nbytes] if disks[node, disk] else [free, nbytes]
    for free, *each in disks.values():
        if sum(each) > free:
            need, left = sizes(sum(each), free)
            fields = " and ".join(f'"{field}"' for field in plan.kept_fields)
            raise MemoryCapError(
                f"images of {fields} need {need} in files in {folder!r}, where {left} are free; "
                f"use another folder by --scratch, or a larger --host-memory-cap"
            )


def file_nbytes(plan: ChunkPlan) -> int:
    """Bytes of the files of a plan of one rank."""
    return sum(whole_pages(max(1, one.nbytes)) for one in plan.memories if one.in_file)


def _free(folder: str, needed: int) -> tuple[int, int, str]:
    """The disk of a folder, its free bytes, and why no files can be made there."""
    if not needed:
        return 0, 0, ""
    try:
        found = os.statvfs(folder)
        if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return os.stat(folder).st_dev, found.f_bavail * found.f_frsize, ""
        reason = "is no folder in which files can be made"
    except OSError as error:
        reason = error.strerror or str(error)
    return 0, 0, f"--scratch {folder}: {reason}; give a folder for files of images"
