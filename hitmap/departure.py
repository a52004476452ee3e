# SPDX-License-Identifier: MIT
"""Ranks that leave: a program that ends on one rank while others go on, or wait for it."""
from __future__ import annotations

import atexit
import dis
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, Union

from hitmap.abort import (
    FAILED,
    PATIENCE_S,
    completes,
    end_job,
    end_unconnected,
    say,
    started_alone,
)
from hitmap.agreement import agree
from hitmap.channel import channel, has_channel
from hitmap.comm import Communicator, running_world

if TYPE_CHECKING:
    from mpi4py import MPI

_TAG = 32766        # of messages on COMM_WORLD, where others may have messages, too
_NOTICE_S = 30.0
_TOOLS = (4, 3)     # of `sys.monitoring`, that no kind of tool has for its own
_NOTICE = "has ended, and waits for the other ranks to end (Ctrl-C ends them)"
_Status: TypeAlias = Union[str, int, None]


def watch_departure() -> None:
    """See to it that a rank that leaves ends the job if others do not follow; once."""
    if not isinstance(sys.exit, _ExitHook):
        leaving = _ExitHook(sys.exit, os.getpid())
        sys.exit = leaving
        _hear_of_codes(leaving)
        atexit.register(leaving.check)
    if not isinstance(os._exit, _ExitAtOnce):
        os._exit = _ExitAtOnce(os._exit, os.getpid())


class _ExitHook:
    """Stands for `sys.exit`, to know the exit code when the process ends."""

    def __init__(self, previous: Callable[[_Status], NoReturn], pid: int) -> None:
        self.previous = previous
        self.pid = pid
        self.code: int | None = None    # of the `sys.exit` that ends the process
        self._patience = _Patience()
        self.program = sys._current_frames()[threading.main_thread().ident or 0]
        while self.program.f_back is not None:
            self.program = self.program.f_back

    def __call__(self, status: _Status = None, /) -> NoReturn:
        try:
            self.previous(status)
        except SystemExit as error:
            if threading.current_thread() is not threading.main_thread():
                raise   # a way to end a thread, if it is of this very class
            arguments = error.args
        raise _Exit(self, *arguments)

    def ends_by(self, error: SystemExit) -> None:
        """The process ends with the code of `error`."""
        status = error.code
        self.code = status if isinstance(status, int) else int(status is not None)

    def check(self) -> None:
        """Abort the job if other ranks go on; runs at the end of the process."""
        if os.getpid() != self.pid:     # a forked child is no rank
            return
        world, starter = running_world(), started_alone()
        if starter is not None and self.code:
            say(f"ends with code {self.code} before MPI was started; the job ends")
            end_unconnected()
        if world is None:
            return
        may_fail = self.code is None and _was_left_by_exception(self.program)
        if has_channel(world) or may_fail:
            self._check_calls(world)
        elif self.code and not _all_leave(world):
            _complain(f"ends with code {self.code} while other ranks go on", self.code)

    def _check_calls(self, world: Communicator) -> None:
        """Tell ranks that make a collective call that this one will not come."""
        if channel(world).is_uneven:    # nobody tells this one
            return
        if self.code:
            text = f"ends with code {self.code} while other ranks go on"
            self._patience.begin(PATIENCE_S, lambda: _complain(text, self.code))
        else:   # they may have a lot to do
            self._patience.begin(_NOTICE_S, lambda: say(_NOTICE))
        try:
            agree(world, "the end of the program", None)
        except ValueError as error:
            if world.rank != 0:
                time.sleep(PATIENCE_S)      # rank 0 has the same error
            _complain(str(error), self.code)
        finally:
            self._patience.end()


class _Patience:
    """A thread that does something unless something else ends in time.

    It is started early: at the end of a process newer Pythons start no threads any more.
    """

    def __init__(self) -> None:
        self._begun, self._ended = threading.Event(), threading.Event()
        self._seconds = 0.0
        self._action: Callable[[], object] = bool
        threading.Thread(target=self._wait, name="patience", daemon=True).start()

    def begin(self, seconds: float, action: Callable[[], object]) -> None:
        """Do `action` after so many seconds, in the thread, unless `end` is called before."""
        self._seconds, self._action = seconds, action
        self._begun.set()

    def end(self) -> None:
        """What was waited for has come."""
        self._ended.set()

    def _wait(self) -> None:
        self._begun.wait()
        if not self._ended.wait(self._seconds):
            self._action()


class _Exit(SystemExit):
    """What `sys.exit` raises: it tells the hook its code if it is what ends the process.

    That is when it goes without any function under way; one that has been caught goes earlier,
    or is there for longer.
    """

    def __init__(self, hook: _ExitHook, *arguments: object) -> None:
        super().__init__(*arguments)
        self._hook = hook

    def __reduce__(self) -> tuple[type[SystemExit], tuple[object, ...]]:
        return SystemExit, self.args

    def __del__(self) -> None:
        if sys._getframe().f_back is None and threading.current_thread() is threading.main_thread():
            self._hook.ends_by(self)


class _ExitAtOnce:
    """Stands for `os._exit`, after which MPICH's launcher ends the other ranks with code 0."""

    def __init__(self, previous: Callable[[int], NoReturn], pid: int) -> None:
        self.previous = previous
        self.pid = pid

    def __call__(self, status: int) -> NoReturn:
        if os.getpid() == self.pid:
            world, starter = running_world(), started_alone()
            if starter is not None and status != 0:
                say(f"ends by os._exit({status}) before MPI was started; the job ends")
                end_unconnected()
            if world is not None and not _all_leave(world):
                _complain(f"ends by os._exit({status}) while other ranks go on", status)
        self.previous(status)


def _all_leave(world: MPI.Intracomm) -> bool:
    """Whether all ranks come here soon.

    By messages, which match no collective operation that other ranks may be in: no channel has
    been made yet, or not all are at the same call, and MPI libraries mix up unlike operations.
    """
    nothing = bytearray()
    others = [0] if world.rank > 0 else range(1, world.size)
    if world.rank > 0:
        world.Isend(nothing, 0, _TAG)
    if not completes([world.Irecv(nothing, other, _TAG) for other in others], PATIENCE_S):
        return False
    if world.rank == 0:
        for other in others:
            world.Send(nothing, other, _TAG)
    return True


def _hear_of_codes(hook: _ExitHook) -> None:
    """Learn the code of every SystemExit that ends the program, from Pythons that tell (3.12).

    They do so when a frame is left by an exception, and at no other time.
    """
    monitoring: Any = getattr(sys, "monitoring", None)
    free = [tool for tool in _TOOLS if monitoring and monitoring.get_tool(tool) is None]
    if not free:
        return

    def left(code: object, offset: int, error: BaseException) -> None:
        if isinstance(error, SystemExit) and sys._getframe(1) is hook.program:
            hook.ends_by(error)

    event = monitoring.events.PY_UNWIND
    monitoring.use_tool_id(free[0], "controllers: how a rank ends")
    monitoring.register_callback(free[0], event, left)
    monitoring.set_events(free[0], event)


def _was_left_by_exception(program: FrameType) -> bool:
    """Whether a program has ended by a SystemExit, of a code that nobody knows.

    What is raised otherwise than by `sys.exit` is gone before functions at the exit are called.
    """
    last = dis.opname[program.f_code.co_code[program.f_lasti]]
    return not last.startswith("RETURN")


def _complain(text: str, code: int | None) -> NoReturn:
    say(text)
    end_job(code or FAILED)
