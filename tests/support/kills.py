# SPDX-License-Identifier: MIT
"""Ways to end one rank in the middle of a job, and the job that this must end.

    mpiexec -n 3 python tests/support/kills.py output SIGTERM 1 40 run star.py --size 90 80 ...

ends rank 1 by SIGTERM when it has come 40 times to where it writes its part of the output; what
follows is a command line of `controllers`.  A file DEATH.time tells when that was.
"""
from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controllers import cli
from controllers.cli import hash_field
from controllers.engine.network import MessageEnd
from controllers.engine.place import PlaceRun
from controllers.executor.opencl import OpenCLExecutor
from hitmap.comm import default_communicator
from hitmap.npy import NpyWriter

# where a rank is stopped: a function that all work of the kind passes, and how often at most
MOMENTS: dict[str, tuple[Any, str, int]] = {
    "compile": (OpenCLExecutor, "build", 1),
    "init": (hash_field, "fill", 1),
    "step": (PlaceRun, "_is_held", 2000),
    "exchange": (MessageEnd, "__call__", 2000),
    "output": (NpyWriter, "_write_all", 1),
}
TOLD = Path("death.time")


@dataclass(frozen=True)
class Kill:
    """Rank `rank` of `ranks` ends by `way` when it comes to `moment` for the `count`-th time."""

    ranks: int
    rank: int
    moment: str
    way: str
    count: int

    def arguments(self) -> list[str]:
        return [self.moment, self.way, str(self.rank), str(self.count)]


def drawn(number: int) -> Kill:
    """Kill `number`: all 35 pairs of moment and way come in turn, the rest is random."""
    moments, ways = list(MOMENTS), list(WAYS)
    chosen = random.Random(number)
    moment = moments[number % len(moments)]
    way = ways[number % len(ways)]
    ranks = chosen.choice((2, 3))
    count = chosen.randint(1, MOMENTS[moment][2])
    return Kill(ranks, chosen.randrange(ranks), moment, way, count)


def _fail(kind: type[BaseException]) -> Callable[[], None]:
    def fail() -> None:
        raise kind("as the test wants it")

    return fail


def _fail_elsewhere() -> None:
    thread = threading.Thread(target=_fail(ArithmeticError))
    thread.start()
    thread.join()


def _signal(number: signal.Signals) -> Callable[[], None]:
    def send() -> None:
        os.kill(os.getpid(), number)
        if number != signal.SIGINT:     # that one raises
            time.sleep(3600)

    return send


WAYS: dict[str, Callable[[], None]] = {
    "OSError": _fail(OSError),
    "SIGKILL": _signal(signal.SIGKILL),
    "KeyError": _fail(KeyError),            # one that nobody expects
    "SIGTERM": _signal(signal.SIGTERM),
    "thread": _fail_elsewhere,
    "SIGINT": _signal(signal.SIGINT),
    "exit": lambda: sys.exit(7),
}


def plant(moment: str, way: str, count: int) -> None:
    """From now on this process ends by `way` when it comes to `moment` for the `count`-th time."""
    owner, name, _ = MOMENTS[moment]
    passed = getattr(owner, name)
    visits = iter(range(count, 0, -1))

    def passing(*arguments: Any, **options: Any) -> Any:
        if next(visits, 0) == 1:
            TOLD.write_text(str(time.time()), encoding="utf-8")
            WAYS[way]()
        return passed(*arguments, **options)

    setattr(owner, name, passing)


def main(moment: str, way: str, rank: str, count: str, *command: str) -> int:
    """Run the command on all ranks, with one of them prepared."""
    if default_communicator().rank == int(rank):
        plant(moment, way, int(count))
    return cli.main(command)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
