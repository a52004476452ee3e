# SPDX-License-Identifier: MIT
"""Processes that ask an arbiter for cores and devices, and are killed; who has what is recorded.

    python tests/support/arbiter_jobs.py kills FOLDER 100 7

forks 8 processes that take and give back what they draw, kills one of them 100 times (draws by
seed 7) and starts another.  Each process claims what it was given by files of its own, which nobody
else may have: that of a dead process may be there, that of a living one is a unit given twice.
`queue FOLDER 40` has 8 processes take one core 40 times each, and records the order.
`crashes FOLDER` kills a process before each single call that it makes of the system.
"""
from __future__ import annotations

import fcntl
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType

from controllers.arbiter import Arbiter, Mark, Want

CORES = tuple(f"core {number}" for number in range(5))
DEVICES = ("device a", "device b")
N_PROCESSES = 8
SOON_S = 120


def identity(pid: int) -> str:
    """A process and when it began; empty if it is dead."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if words[0] in "ZX" else f"{pid} {words[19]}"


class Claims:
    """Files that say who has which unit, made and removed beside the arbiter."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = identity(os.getpid())
        self._file = folder / f"process {os.getpid()}"
        self._file.write_text(self._own)

    def make(self, unit: str) -> None:
        path = self._folder / unit
        end = time.monotonic() + SOON_S
        while True:
            with suppress(FileExistsError):
                os.link(self._file, path)   # with its content at once
                return
            try:
                other = path.read_text()
            except FileNotFoundError:
                other = "another"
            if other == "another" or time.monotonic() > end:
                raise SystemExit(f"{unit} was given to {self._own} and to {other}")
            if identity(int(other.split()[0])) != other:    # killed while it had it
                path.unlink()
            time.sleep(0.001)   # a killed process loses its locks before it is seen to be dead

    def remove(self, unit: str) -> None:
        path = self._folder / unit
        if path.read_text() != self._own:
            raise SystemExit(f"{unit} of {self._own} was given to {path.read_text()}")
        path.unlink()


def drawn(draws: random.Random) -> list[list[Want]]:
    """Cores, a named device, any device, or a hybrid of them."""
    cores = Want(CORES, least := draws.randint(1, 4), draws.randint(least, 6))
    device = Want((draws.choice(DEVICES),)) if draws.random() < 0.5 else Want(DEVICES, 1, 2)
    kind = draws.choice(("cores", "device", "both", "hybrid"))
    if kind == "hybrid":
        return [[cores, device], [device], [cores]]
    return [{"cores": [cores], "device": [device], "both": [cores, device]}[kind]]


def take_and_give(folder: Path, seed: int) -> None:
    """Until a file `stop` is there."""
    arbiter, draws = Arbiter(folder / "arbiter"), random.Random(seed)
    claims = Claims(folder)
    done = os.open(folder / "done", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    while not (folder / "stop").exists():
        ways = drawn(draws)
        with arbiter.acquire(ways, timeout_s=SOON_S) as lease:
            for want, units in zip(ways[lease.way], lease.units):
                assert want.least <= len(units) <= want.most and {*units} <= {*want.among}
            given = [unit for units in lease.units for unit in units]
            for unit in given:
                claims.make(unit)
            if draws.random() < 0.3:
                time.sleep(draws.uniform(0, 0.003))
            for unit in given:
                claims.remove(unit)
        os.write(done, b".")
        if draws.random() < 0.2:
            time.sleep(draws.uniform(0, 0.005))


def forked(work: Callable[[], None]) -> int:
    """The number of a child that does this; it ends with 0 if all went well."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid


def kills(folder: Path, n_kills: int, seed: int) -> None:
    draws, seeds = random.Random(seed), iter(range(seed, seed + N_PROCESSES + n_kills))

    def begun() -> int:
        number = next(seeds)
        return forked(lambda: take_and_give(folder, number))

    running = [begun() for _ in range(N_PROCESSES)]
    done = folder / "done"
    for _ in range(n_kills):
        before, end = _size(done), time.monotonic() + SOON_S
        while _size(done) < before + N_PROCESSES:   # it goes on, whoever was killed
            if time.monotonic() > end:
                raise SystemExit("nothing goes on any more")
            time.sleep(0.001)
        time.sleep(draws.uniform(0, 0.004))
        victim = running.pop(draws.randrange(N_PROCESSES))
        os.kill(victim, signal.SIGKILL)
        _, status = os.waitpid(victim, 0)
        if os.WIFEXITED(status):
            raise SystemExit("a process failed before it was killed")
        running.append(begun())
    (folder / "stop").touch()
    _end(running)
    with Arbiter(folder / "arbiter") as arbiter:
        with arbiter.acquire_node(timeout_s=SOON_S):
            pass
        assert arbiter.holders() == [], "nobody holds anything"
    left = [path.name for path in (folder / "arbiter").iterdir()]
    print(f"{n_kills} killed, {_size(done)} leases, left: {sorted(left)}", flush=True)


def queue(folder: Path, n_turns: int) -> None:
    """Each of 8 processes records when it waits, and when it gets the only core."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def turns() -> None:
        arbiter = Arbiter(folder / "arbiter")
        while not (folder / "go").exists():     # all at once
            time.sleep(0.001)
        for _ in range(n_turns):
            request = arbiter.request([[Want(("core 0",))]])
            while (waits := request.poll() is None) and not request.has_place:
                pass    # others hold the gate
            if waits:
                os.write(log, f"waits {os.getpid()}\n".encode())
            lease = request.wait(SOON_S)
            os.write(log, f"has {os.getpid()}\n".encode())
            time.sleep(0.0005)
            lease.release()

    running = [forked(turns) for _ in range(N_PROCESSES)]
    (folder / "go").touch()
    _end(running)


def crashes(folder: Path) -> None:
    """After each of these deaths the node is free at once, and nothing is left of the dead."""
    arbiter = Arbiter(folder / "arbiter")
    for count in range(1, 10_000):
        pid = forked(partial(_die_at, folder, count))
        _, status = os.waitpid(pid, 0)
        request = arbiter.request([[Want(CORES, 5, 5), Want(DEVICES, 2, 2)]])
        lease = request.poll()
        if lease is None:
            raise SystemExit(f"call {count}: what a dead process held is not free")
        lease.release()
        arbiter.acquire_node(0).release()
        if (held := arbiter.holders()) or (left := _left(folder)):
            raise SystemExit(f"call {count}: {held or left}")
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, "it ended well"
            print(f"killed at {count - 1} calls", flush=True)
            return


def _left(folder: Path) -> list[str]:
    own = f"holder-{os.getpid()}-"
    names = [path.name for path in (folder / "arbiter").iterdir()]
    return [name for name in names if name != "units" and not name.startswith(own)]


def _die_at(folder: Path, count: int) -> None:
    """Pass through all that an arbiter does, up to call `count`."""
    calls = iter(range(1, count))

    def counted(module: ModuleType, name: str) -> None:
        real = getattr(module, name)

        def call(*given: object, **more: object) -> object:
            if next(calls, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given, **more)

        setattr(module, name, call)

    for name in ("open", "close", "dup", "write", "pwrite", "ftruncate", "unlink", "mkdir"):
        counted(os, name)
    for name in ("fcntl", "flock"):
        counted(fcntl, name)
    with Arbiter(folder / "arbiter") as arbiter:
        lease = arbiter.acquire([[Want(CORES, 2, 3), Want(DEVICES)]])
        mark = Mark(lease.units[1], "", folder / "arbiter")
        waiting = arbiter.request([[Want(CORES, 5, 5)]])
        assert waiting.poll() is None
        lease.release()
        mark.close()
        waiting.wait(SOON_S).release()
        with arbiter.acquire_node(SOON_S) as node, Arbiter(node.inner) as inner:
            inner.acquire([[Want(CORES)]])


def _end(running: list[int]) -> None:
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in running]
    if any(codes):
        raise SystemExit(f"processes ended with {codes}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


if __name__ == "__main__":
    where, numbers = Path(sys.argv[2]), [int(word) for word in sys.argv[3:]]
    {"kills": kills, "queue": queue, "crashes": crashes}[sys.argv[1]](where, *numbers)
