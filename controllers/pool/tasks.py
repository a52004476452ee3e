# SPDX-License-Identifier: MIT
"""`ct.tasks`: the pool of all devices and cores of this rank, and what it is told."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.estimates.estimates import Estimates
from controllers.pool.pool import Pool
from controllers.settings.overrides import overrides
from hitmap.comm import Communicator, default_communicator


def tasks(
    devices: str | Sequence[str] | None = None,
    *,
    cores: int | None = None,
    zero_copy: bool = True,
    memory_cap: str | int | None = None,
    exclusive: bool = False,
    comm: Communicator | None = None,
) -> Pool:
    """A pool of host cores and devices that does tasks, for a `with` block (docs/tasks.md).

    devices: selectors such as "gpu", ["gpu", "cpu"], "cpu/1,1"; by default all GPUs of the node,
        else its CPU; () for none.  The ranks of a node share them in order.
    cores: of the host that this rank uses for functions, and for kernels on its CPU; by default
        its share of those that the process may use.
    memory_cap: the most that arrays may take of each device; others leave it then.
    zero_copy: kernels on a CPU compute in the arrays themselves; False: in copies.
    exclusive: wait until no other process holds anything of the nodes, and own them until the
        end; else tasks share cores and GPUs with those of other processes (docs/arbiter.md).
    Collective over `comm`, by default all ranks; as is the end of the block.  NoDeviceError where
    there is no such device, ValueError and TypeError for what is no selector or number.
    """
    comm, wanted = default_communicator() if comm is None else comm, overrides()
    with wanted.answering():
        pool = Pool(
            wanted.execution.get("devices", devices), cores, zero_copy, memory_cap, exclusive,
            Estimates.of_user(), comm,
        )  # fmt: skip
    wanted.opened(pool)
    return pool
