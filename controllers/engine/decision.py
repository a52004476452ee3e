# SPDX-License-Identifier: MIT
"""What rank 0 says, on all ranks: whether something holds of what has been found."""
from __future__ import annotations

from collections.abc import Callable

from hitmap.agreement import on_all_ranks
from hitmap.comm import Communicator


def decided(comm: Communicator, holds: Callable[[], object], what: str) -> bool:
    """What `holds` says on rank 0; what it raises there is an error on all ranks.  Collective."""
    if comm.size == 1:
        return bool(holds())
    failed: Exception | None = None
    found = False
    if comm.rank == 0:
        try:
            found = bool(holds())
        except Exception as error:
            failed = error
    said = None if failed is None else f"{type(failed).__name__}: {failed}"
    found, said = comm.bcast((found, said))
    if said is None:
        return found
    if failed is not None:
        raise on_all_ranks(failed)
    raise on_all_ranks(RuntimeError(f"{what} has failed on rank 0: {said}"))
