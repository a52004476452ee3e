# SPDX-License-Identifier: MIT
"""How a command ends: with one exit code on all ranks, and a message that comes once.

USAGE is for what was given: an option, a file, a kernel that cannot be used.  FAILED is for what
went wrong while it was done: a full disk, no memory left, a driver's error.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar, Union, cast

from controllers.device import NoDeviceError
from hitmap.abort import all_arrive, end_job
from hitmap.comm import Communicator

_T = TypeVar("_T")

FAILED, USAGE, NO_DEVICE = 1, 2, 3
PATIENCE_S = 2.0    # how long a rank that failed waits for the others to fail as well


class Failure(Exception):
    """What ends a command: an exit code and a message for the user."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text


def attempt(work: Callable[[], _T]) -> Union[_T, Failure]:
    """What `work` returns.  Errors that a user can meet become a `Failure`; others are ours."""
    try:
        return work()
    except Failure as failure:
        return failure
    except SystemExit as end:       # by a signal
        return Failure(end.code if isinstance(end.code, int) else FAILED, str(end))
    except NoDeviceError as error:
        return Failure(NO_DEVICE, str(error))
    except MemoryError as error:
        return Failure(FAILED, f"out of memory: {error}")
    except Exception as error:
        if isinstance(error, (OSError, RuntimeError, ValueError)) or _is_of_opencl(error):
            return Failure(FAILED, f"{type(error).__name__}: {error}")
        raise


def _is_of_opencl(error: Exception) -> bool:
    opencl = sys.modules.get("pyopencl")    # not every command loads it
    return opencl is not None and isinstance(error, opencl.Error)


def on_root(comm: Communicator, work: Callable[[], _T]) -> _T:
    """What `work` returns on rank 0, on all ranks; a `Failure` too.  Collective."""
    outcome = comm.bcast(attempt(work) if comm.rank == 0 else None)
    if isinstance(outcome, Failure):
        raise outcome
    return cast("_T", outcome)


def end_together(comm: Communicator, failure: Failure | None) -> int:
    """The exit code that all ranks agree on; prints what went wrong, once.

    Every rank calls this last, on a communicator that nothing else uses.  If some rank has failed
    and another one does not come, because it waits for the first elsewhere, the job is aborted
    with the failed rank named.  After a failure of the work itself it is aborted as well: messages
    may be under way that nobody will receive.
    """
    lowest_first = PATIENCE_S * (1 + comm.rank / comm.size)     # of several that fail, one speaks
    if not all_arrive(comm, None if failure is None else lowest_first):
        assert failure is not None, "only a failed rank stops waiting"
        _complain(f"rank {comm.rank}: {failure.text}")
        end_job(failure.code)
    told = None if failure is None else (failure.code, failure.text)
    outcomes = comm.allgather(told)
    failures = [outcome for outcome in outcomes if outcome is not None]
    if not failures:
        return 0
    if comm.rank == 0:
        if failures == outcomes and len(set(failures)) == 1:
            _complain(failures[0][1])
        else:
            for rank, outcome in enumerate(outcomes):
                if outcome is not None:
                    _complain(f"rank {rank}: {outcome[1]}" if comm.size > 1 else outcome[1])
    comm.Barrier()  # the message is out
    code = failures[0][0]
    if code == FAILED and comm.size > 1:
        end_job(code)
    return code


def _complain(text: str) -> None:
    print(f"controllers: error: {text}", file=sys.stderr, flush=True)
