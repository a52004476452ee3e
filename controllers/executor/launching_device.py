# SPDX-License-Identifier: MIT
"""An opened device that launches kernels, with arguments set once or at each launch."""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pyopencl as cl

from controllers.device.event import Command, Event
from controllers.executor.opened_device import OpenedDevice
from controllers.executor.scalar_arguments import ScalarArguments
from controllers.kernel.build import Built, compiled, enqueue_kernel
from controllers.kernel.crash import named


class SharedKernel:
    """A kernel that is launched with other arguments each time, perhaps by several threads."""

    def __init__(self, built: Built) -> None:
        self.built, self.kernel = built, compiled(built.program, built.name)
        self.enqueue = built.enqueue
        self.lock = threading.Lock()    # from the arguments to the launch


class LaunchingDevice(OpenedDevice):
    """An opened device, and launches of its kernels in its queue."""

    def kernel_command(
        self,
        built: Built,
        arguments: Sequence[object],
        sizes: tuple[tuple[int, ...], tuple[int, ...]],
        numbers: ScalarArguments | None = None,
        show: Callable[[cl.Kernel], None] | None = None,
        keep: object = None,
    ) -> Command:
        """Launch `built` with these arguments, over global and local sizes in OpenCL's order.

        `numbers` are those of the arguments that may change from launch to launch.  `show` gets the
        kernel; `keep` is what holds further arguments.
        """
        kernel = compiled(built.program, built.name)
        kernel.set_args(*arguments)  # type: ignore[arg-type]
        if show is not None:
            show(kernel)
        lane, enqueue, (global_size, local_size) = self.compute_lane, enqueue_kernel, sizes

        def in_native_code(
            wait_for: Sequence[Event] | None = None, keep: object = (*arguments, keep)
        ) -> Event:
            # `keep`: a kernel does not hold the buffers that are its arguments
            return enqueue(lane.queue, kernel, global_size, local_size, None, wait_for)

        command: Command = named(built.label, in_native_code)
        if not numbers:
            return command

        def told(wait_for: Sequence[Event] | None = None) -> Event:
            numbers.set(kernel)     # what is enqueued already keeps its own
            return command(wait_for)

        return told

    def shared_command(
        self,
        kernel: SharedKernel,
        arguments: Sequence[object],
        sizes: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> Command:
        """The same, cheap to make: the first call sets the arguments of a shared kernel.

        From the second call on it has a kernel of its own, as setting them takes longer than to
        enqueue it.
        """
        lane, enqueue, (global_size, local_size) = self.compute_lane, kernel.enqueue, sizes
        called, own = False, None

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            nonlocal called, own
            if called and own is None:
                own = self.kernel_command(kernel.built, arguments, sizes)
            called = True
            if own is not None:
                return own(wait_for)
            with kernel.lock:
                kernel.kernel.set_args(*arguments)  # type: ignore[arg-type]
                return enqueue(
                    lane.queue, kernel.kernel, global_size, local_size, None, wait_for
                )

        return command
