# SPDX-License-Identifier: MIT
"""Kernels and host tasks that never end: Ctrl-C and errors end the program all the same."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from controllers import Controller, Kernel, reading, updating
from controllers.controller import controller as module
from controllers.controller.tied_tile import TiedTile
from controllers.device.event import COMPLETE, Event

UNTIL_S = 60    # what should come soon has not come: only reached on failure
ENDLESS = Kernel.of("endless", """
    __kernel void endless(__global volatile int *u, TILE(u), BOX)
    { CELL; while (HERE(u) == 0) { } }""")  # fmt: skip


@pytest.fixture
def ends() -> Iterator[Callable[[TiedTile], None]]:
    """Has the endless kernel of a tile end after the test."""
    tiles: list[npt.NDArray[Any]] = []

    def remember(tile: TiedTile) -> None:
        assert tile.host is not None
        tiles.append(tile.host)

    yield remember
    for host in tiles:
        host[...] = 1   # the kernel computes in the host's memory


@contextlib.contextmanager
def ctrl_c_again_and_again() -> Iterator[None]:
    """SIGINT for this process, again and again until the block ends."""
    over = threading.Event()

    def press() -> None:
        while not over.wait(0.2):
            os.kill(os.getpid(), signal.SIGINT)     # as the terminal does: to the process

    before = signal.signal(signal.SIGINT, _once)
    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGINT, before)


def _once(*_: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


WAITS: dict[str, Callable[[Controller, TiedTile, Any], object]] = {
    "wait of the controller": lambda c, u, event: c.wait(),
    "wait for a tile": lambda c, u, event: c.wait(u[:]),
    "wait of the event": lambda c, u, event: event.wait(),
    "read": lambda c, u, event: u.read(),
    "write": lambda c, u, event: u.write(1),
    "free": lambda c, u, event: c.free(u),
    "end of the block": lambda c, u, event: None,
}


@pytest.mark.parametrize("way", WAITS)
def test_ctrl_c_ends_each_wait_for_a_kernel_that_never_ends(
    way: str, ends: Callable[[TiedTile], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.1)
    start = time.monotonic()
    # left after the controller, which may wait at its end
    interrupted, keys = pytest.raises(KeyboardInterrupt), contextlib.ExitStack()
    with interrupted, keys, Controller("cpu") as controller:
        tile = controller.tile((1,), "int32")
        ends(tile)
        event = controller.launch(ENDLESS, tile, u=tile)
        keys.enter_context(ctrl_c_again_and_again())
        WAITS[way](controller, tile, event)
    assert time.monotonic() - start < UNTIL_S
    assert not tile.freed, "the kernel still uses it"


def test_an_error_is_seen_though_a_host_task_never_ends(
    ends: Callable[[TiedTile], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.1)
    go, done = threading.Event(), []
    with pytest.raises(KeyError, match="ours"), Controller("cpu") as controller:
        tile = controller.tile((1,), "int32")
        ends(tile)
        first = controller.host_task(lambda cells: go.wait(UNTIL_S), updating(tile))
        controller.host_task(done.append, reading(tile))
        controller.launch(ENDLESS, tile, u=tile)
        raise KeyError("ours")
    assert not tile.freed
    go.set()
    first.wait()
    assert done == [], "what had not begun is given up"


USES: dict[str, Callable[[Controller, TiedTile, Any], object]] = {
    "read": lambda c, u, event: u.read(),
    "write": lambda c, u, event: u.select(u.box).write(1),
    "launch": lambda c, u, event: c.launch(ENDLESS, u, u=u),
    "move_to": lambda c, u, event: c.move_to(u),
    "move_from": lambda c, u, event: c.move_from(u),
    "free": lambda c, u, event: c.free(u),
    "swap": lambda c, u, event: c.swap(u, u),
    "host_task": lambda c, u, event: c.host_task(print, reading(u)),
    "wait": lambda c, u, event: c.wait(),
    "wait for a tile": lambda c, u, event: c.wait(u),
    "NumPy": lambda c, u, event: np.asarray(u[1:]),
    "close": lambda c, u, event: c.close(),
    "a wait for itself": lambda c, u, event: event.wait(),
}


class Misused:
    """A host task that uses its own tile, its controller, or its event."""

    def __init__(
        self, use: Callable[[Controller, TiedTile, Any], object], owner: Controller, tile: TiedTile
    ) -> None:
        self.event: SimpleQueue[Event] = SimpleQueue()
        self._use, self._owner, self._tile = use, owner, tile

    def __call__(self, cells: object) -> None:
        event = self.event.get(timeout=UNTIL_S)
        self._use(self._owner, self._tile, event)


def test_a_host_task_that_uses_a_controller_is_refused() -> None:
    with Controller("cpu") as controller, Controller("cpu") as other:
        for what, use in USES.items():
            for owner in (controller, other):
                tile = owner.tile((4,), "int32")
                task = Misused(use, owner, tile)
                event = controller.host_task(task, updating(tile))
                task.event.put(event)
                with pytest.raises(RuntimeError, match=r"within a host task.*reading\(tile\)"):
                    controller.wait()
                assert event.command_execution_status < COMPLETE, what


PROGRAMS = {
    "a kernel of a controller": ("KeyboardInterrupt", """
        with Controller("cpu") as controller:
            tile = controller.tile((1,), "int32")
            controller.launch(Kernel.of("endless", ENDLESS), tile, u=tile)
            print("waits", flush=True)
            controller.wait()"""),
    "a kernel of a controller that nobody closes": ("KeyboardInterrupt", """
        controller = Controller("cpu")
        tile = controller.tile((1,), "int32")
        event = controller.launch(Kernel.of("endless", ENDLESS), tile, u=tile)
        print("waits", flush=True)
        event.wait()"""),
    "a kernel of a run": ("KeyboardInterrupt", """
        stencil = Stencil.of("same", [(0, 0)], [1], 1)
        body = "volatile int always = 1; while (HERE(u) == 7 && always) { } NEW(u) = HERE(u);"
        kernel = Kernel.of("endless", body)
        with Computation(stencil.program("float32"), 9, devices="cpu", kernel=kernel) as run:
            run.load(lambda tile: tile.array.fill(7))
            print("waits", flush=True)
            run.run(100)"""),
    "a host task": ("KeyError: 'ours'", """
        controller = Controller("cpu")
        tile = controller.tile((1,), "int32")
        controller.host_task(lambda cells: threading.Event().wait(), updating(tile))
        controller.launch(Kernel.of("endless", ENDLESS), tile, u=tile)
        raise KeyError("ours")"""),
    "a host task that ends, at the end of the program": ("", """
        controller = Controller("cpu")
        tile = controller.tile((1,), "int32")
        controller.host_task(lambda cells: (time.sleep(0.2), print("done")), updating(tile))"""),
}  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize("names", [
    ["a kernel of a run"],
    pytest.param(list(PROGRAMS), marks=pytest.mark.whole),  # these wait as long as patience lasts
], ids=["one", "all"])  # fmt: skip
def test_programs_end_though_something_in_them_does_not(
    names: Sequence[str], tmp_path: Path
) -> None:
    head = (
        "import threading, time\n"
        "from controllers import Computation, Controller, Kernel, Stencil, updating\n"
        f"ENDLESS = {ENDLESS.variants[0].source.text!r}\n"
    )
    jobs = {}
    for name in names:
        text = PROGRAMS[name][1]
        program = tmp_path / f"{name}.py"
        lines = (line[8:] for line in text.split("\n"))
        program.write_text(head + "\n".join(lines))
        command, pipe = [sys.executable, program], subprocess.PIPE
        jobs[name] = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    try:
        for name, job in jobs.items():
            error = PROGRAMS[name][0]
            assert job.stdout is not None
            if error == "KeyboardInterrupt":
                assert job.stdout.readline() == "waits\n", name
                _interrupt(job)
            output, said = job.communicate(timeout=UNTIL_S)
            assert error in said, name
            if error == "KeyboardInterrupt":    # as shells say it: 130
                assert job.returncode in (-signal.SIGINT, 130), name
            else:
                assert (job.returncode, output) == ((1, "") if error else (0, "done\n")), name
    finally:
        for job in jobs.values():
            job.kill()


def _interrupt(job: subprocess.Popen[str]) -> None:
    """Press Ctrl-C until it ends."""
    until = time.monotonic() + UNTIL_S
    while job.poll() is None and time.monotonic() < until:
        job.send_signal(signal.SIGINT)
        time.sleep(1)
