# SPDX-License-Identifier: MIT
"""A small run that is killed again and again, and goes on from its checkpoints until it is done.

    python tests/support/kept_kills.py FIRST END FOLDER

does so for the cases FIRST to END - 1, each in children that are ended by SIGKILL: at a random
moment, or just before or after one of the calls that change the disk.  It prints a line for each
case that does not end with the bits of the undisturbed run, and how many kills there were.

    mpiexec -n 3 python tests/support/kept_kills.py FOLDER RANK COUNT

is such a run on several ranks, of which one dies at its COUNT-th call; 0: none does.
"""
from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from kept_programs import alike, ran

import controllers as ct
from controllers.checkpoint.folder import newest_first
from hitmap import SerialCommunicator
from hitmap.comm import Communicator, default_communicator

STEPS, EVERY, MOST_S = 30, 3, 0.4
CALLS = ("mkdir", "fsync", "rename", "rmdir", "unlink", "open")
PROGRAM = "wave"


def _deadly(call: Callable[..., Any], count: list[int], before: bool) -> Callable[..., Any]:
    """`call`, at the last of `count` times of which the process dies."""

    def called(*args: Any, **options: Any) -> Any:
        count[0] -= 1
        if count[0] == 0 and before:
            os.kill(os.getpid(), signal.SIGKILL)
        found = call(*args, **options)
        if count[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    return called


def _child(chosen: random.Random, folder: Path, kills: bool) -> None:
    """Run to the end, if nothing ends it before, and write what the fields are then."""
    if kills:
        die_at(chosen.randint(1, 60), before=chosen.random() < 0.5)
    _run(folder, SerialCommunicator(), chosen.randint(1, 4), chosen.choice(("bands", "blocks")))


def die_at(count: int, *, before: bool) -> None:
    """From now on this process ends at the so-manieth call that changes the disk."""
    left = [count]
    for name in CALLS:
        setattr(os, name, _deadly(getattr(os, name), left, before))


def _run(folder: Path, comm: Communicator, places: int, partition: str) -> None:
    """To the end, from the newest checkpoint, which must be whole if there is one."""
    there = newest_first(folder / "kept/run-1")
    comm.Barrier()
    found = ran(
        PROGRAM, STEPS, kept=(folder / "kept", ct.every(steps=EVERY)), comm=comm,
        restart="require" if there else "auto", places_per_controller=places,
        partition=partition,
    )  # fmt: skip
    if comm.rank == 0:
        np.savez(folder / "end.npz", **found)


def case(number: int, folder: Path) -> tuple[dict[str, Any], int]:
    """What a run ends with that is killed some times, and how often it was."""
    chosen, n_kills = random.Random(number), 0
    folder.mkdir()
    while True:
        by_call, last = chosen.random() < 0.7, n_kills >= 12
        seed = chosen.random()
        child = os.fork()
        if child == 0:
            _child(random.Random(seed), folder, by_call and not last)
            os._exit(0)
        if not by_call and not last:
            time.sleep(chosen.random() * MOST_S)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if status == 0:
            break
        if not os.WIFSIGNALED(status):
            raise SystemExit(f"case {number}: a run has ended with the status {status}")
        n_kills += 1
    with np.load(folder / "end.npz") as found:
        end = {**found}
    shutil.rmtree(folder)
    return end, n_kills


def on_ranks(folder: Path, rank: int, count: int) -> None:
    """One run, which ends early unless `count` is 0."""
    comm = default_communicator()
    if count and comm.rank == rank:
        die_at(count, before=count % 2 == 0)
    _run(folder, comm, comm.size, "blocks")


def main(first: int, end: int, folder: Path) -> None:
    want = {name: np.asarray(cells) for name, cells in ran(
        PROGRAM, STEPS, comm=SerialCommunicator()
    ).items()}  # fmt: skip
    total = 0
    for number in range(first, end):
        found, n_kills = case(number, folder / str(number))
        total += n_kills
        if not alike(found, want):
            print(f"case {number}: other bits")
    print(f"kills: {total}")


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
    else:
        on_ranks(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
