# SPDX-License-Identifier: MIT
"""A lane: commands of a device in order, through a queue that times them or one that does not.

Some drivers take long to enqueue a command that they will time: NVIDIA's 6 us more, which is as
long as the rest.  So commands whose times nobody reads go through a queue without profiles.
"""
# docs/decisions/0046-commands-are-timed-where-somebody-looks.md
from __future__ import annotations

import pyopencl as cl


class Lane:
    """Two in-order queues that are one: `queue` is the one that commands go through now.

    It times commands until told otherwise; `timed` is the queue that always does.
    """

    def __init__(self, context: cl.Context, device: cl.Device | None) -> None:
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        # PoCL's context of a part of a device is one of the whole: a queue has to name its device
        self.timed = cl.CommandQueue(context, device, profiling)
        self._untimed = cl.CommandQueue(context, device)
        self.queue = self.timed

    def time(self, wanted: bool) -> None:
        """Whether commands are timed from now on; they come after those so far all the same."""
        queue = self.timed if wanted else self._untimed
        if queue is self.queue:
            return
        so_far = cl.enqueue_marker(self.queue)
        self.queue.flush()      # or the other queue might wait for ever
        cl.enqueue_barrier(queue, wait_for=[so_far])
        self.queue = queue

    def alternate(self) -> None:
        """Commands come beside those so far, from now on, not after them."""
        self.queue = self._untimed if self.queue is self.timed else self.timed

    def finish(self) -> None:
        """Block until nothing is left to do."""
        self._untimed.finish()      # where no commands alternated, either waits for the other's
        self.timed.finish()

    def restart(self) -> None:
        """Commands are timed again, as at first; nothing is left to do."""
        self.queue = self.timed
