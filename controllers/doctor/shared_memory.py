# SPDX-License-Identifier: MIT
"""Shared memory of a host: whether MPI's messages between its ranks have room."""
from __future__ import annotations

from collections.abc import Iterator

from controllers.doctor.facts import HostFacts
from controllers.doctor.finding import Finding
from hitmap.segment import FOLDER, NEED_PER_RANK


def shared_memory(node: HostFacts) -> Iterator[Finding]:
    """How much is free; nothing where there is no such folder."""
    if node.shared_bytes is None:
        return
    what = f"{node.shared_bytes / 1e6:.0f} MB free in {FOLDER}"
    need = NEED_PER_RANK * max(1, len(node.ranks))
    if node.shared_bytes < need:
        yield Finding(
            "error", "shared memory",
            f"{what}, {need / 1e6:.0f} MB are needed for as many ranks",
            "MPI libraries take it without asking; a process that touches what is not there dies "
            "of SIGBUS, so that runs refuse to start.",
            f"rm {FOLDER}/mpich_shm_* {FOLDER}/sm_segment.* if no job runs; "
            "docker run --shm-size=1g",
        )  # fmt: skip
    else:
        yield Finding("ok", "shared memory", what)
