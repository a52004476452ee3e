# SPDX-License-Identifier: MIT
"""Ranks that leave: a program that ends on one rank while others go on, or wait for it."""
from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn

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
_NOTICE = "has ended, and waits for the other ranks to end (Ctrl-C ends them)"


def watch_departure() -> None:
    """See to it that a rank that leaves ends the job if others do not follow; once."""
    replaced = vars(SystemExit)["code"], getattr(sys.exit, "__self__", None)
    if not any(isinstance(one, _Leaving) for one in replaced):
        leaving = _Leaving(vars(SystemExit)["code"], os.getpid())
        _replace_code(leaving)
        sys.exit = leaving.exit
        atexit.register(leaving.check)
    if not isinstance(os._exit, _ExitAtOnce):
        os._exit = _ExitAtOnce(os._exit, os.getpid())


def _replace_code(code: _Leaving) -> None:
    """Let it stand for the attribute `code` of SystemExit: nothing else tells how a process ends.

    A built-in type has its attributes in a dict of which CPython shows a read-only view.  Where
    that dict cannot be had, nothing is done: a rank that leaves is taken to end with code 0.
    """
    found = [held for held in gc.get_referents(vars(SystemExit)) if type(held) is dict]
    if sys.implementation.name == "cpython" and len(found) == 1:
        found[0]["code"] = code
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(SystemExit))


class _Leaving:
    """Stands for `SystemExit.code`, to know the exit code when the process ends.

    For that Python asks an exception that nobody has caught: the one who does so with no function
    under way.
    """

    def __init__(self, slot: MemberDescriptorType, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None    # of the exception that ends the process
        self._slot, self._exit = slot, sys.exit
        self._patience = _Patience()

    def __get__(self, error: SystemExit | None, kind: type[SystemExit]) -> Any:
        if error is None:
            return self
        status = self._slot.__get__(error, kind)
        if sys._getframe().f_back is None and threading.current_thread() is threading.main_thread():
            self.code = status if isinstance(status, int) else int(status is not None)
        return status

    def __set__(self, error: SystemExit, status: object) -> None:
        self._slot.__set__(error, status)

    def __delete__(self, error: SystemExit) -> None:
        self._slot.__delete__(error)

    def exit(self, status: str | int | None = None, /) -> NoReturn:
        """`sys.exit`; before Python 3.12 it leaves it to who catches it to make the exception."""
        try:
            self._exit(status)
        except SystemExit:
            raise

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
        if has_channel(world):
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


def _complain(text: str, code: int | None) -> NoReturn:
    say(text)
    end_job(code or FAILED)
