# SPDX-License-Identifier: MIT
"""Time steps of examples/wave_mesh.py over how many of 25 sums cores do, and the device the others.

    python tools/measure_hybrid.py [--device gpu] [--cores 1 4] [--size 400] [--steps 10]
                                   [--every 1] [--again 1] [--pause 0 0] [--private]
                                   [--seconds 60] [--out table.csv] [--plot times.png]
                                   [--read table.csv]

For each number of cores, and for sums that are added where they change something ("changed") and
those of whole arrays at the end ("whole"): the time of a step that a quarter of `--rounds` are
below, since what disturbs them makes them longer alone, with k sums on cores, in turns to and fro,
and what the pool takes by itself after some steps to find its k.
At the end two tables like Table I of the article on SGPU 2 (Ospici et al.): bytes of a step to
and from the device, and the time, at the best k of each, with the pool's rate over the sum of both
sides' rates alone; and both ways beside each other at each k.  With --private a CPU is treated as a
device with memory of its own: `--device cpu/1 --cores 2 --private` are two sides of one CPU.  Cores
alone are those that the device leaves, in a pool of their own, where it is (part of) a CPU.
--again 3: cores do each sum three times over, as if they were as much slower.  --pause 6 3: each
sum takes so many ms more on cores, and on the device, in which nobody computes: sides that do not
hinder each other, whatever else a machine does.
--every 5: each fifth k alone.  --seconds: rounds of one number of cores and way to merge end after
so many.  --read: what --out has written elsewhere, in place of measuring.
"""
from __future__ import annotations

import argparse
import csv
import runpy
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import controllers as ct
from controllers.pool.hybrid.choosing import usual
from controllers.pool.pool import Pool

EXAMPLE = Path(__file__).parents[1] / "examples" / "wave_mesh.py"
MERGINGS = ("changed", "whole")
BESIDE = -1
WARM, AUTOMATIC = 1, 60     # steps before those that are timed; for the pool to find shares


class Row(NamedTuple):
    """One case; k is None where the pool has chosen, `taken` is what it took last.

    k is BESIDE where there is no device, and the pool has the cores alone that one would leave.
    """

    cores: int
    merging: str
    k: int | None
    taken: int
    seconds: float
    up_nbytes: float
    down_nbytes: float


class Steps:
    """Time steps with one share, of arrays of their own."""

    n_on_host = 0   # sums that cores have done, of all steps

    def __init__(
        self, names: dict[str, Any], pool: Pool, parts: Sequence[Any], merging: str, k: int | None,
        again: int, pause_ms: float,
    ) -> None:  # fmt: skip
        self._names, self._pool, self._k, self._merging = names, pool, k, merging
        self._again, self._pause_s = again, 1e-3 * pause_ms
        self._mass, at, self._corners, self._factors = parts
        shares = None if k is None else (k, len(at) - k)
        self._middle = ct.series(self._counted(names["forces"]), at, merging=merging, shares=shares)  # type: ignore[arg-type]
        self._u = np.random.default_rng(2).random(len(self._mass))
        self._v, self._a = np.zeros_like(self._u), np.zeros_like(self._u)

    def run(self, n: int) -> None:
        """So many steps, to the end of the last one."""
        names, pool = self._names, self._pool
        for _ in range(n):
            pool.submit(ct.replicated(names["foresee"]), self._u, self._a, self._v, 0.3)
            pool.submit(self._middle, self._a, self._u, self._corners, self._factors)
            last = pool.submit(ct.replicated(names["correct"]), self._v, self._a, self._mass, 0.3)
        last.result()

    def timed(self, cores: int, n: int) -> Row:
        """The mean of n steps."""
        self.run(WARM)
        before, on_host = self._pool.report().moved_nbytes, self.n_on_host
        begin_s = time.perf_counter()
        self.run(n)
        seconds = (time.perf_counter() - begin_s) / n
        up, down = (
            (after - at_first) / n
            for after, at_first in zip(self._pool.report().moved_nbytes, before)
        )
        taken = round((self.n_on_host - on_host) / n)
        return Row(cores, self._merging, self._k, taken, seconds, up, down)

    def _counted(self, task: ct.Task) -> ct.Task:
        """The same task, of which calls on cores are counted, and done again and again."""
        made = ct.Task(task.name, task.parameters, roles={"out": "writing"})
        for one in task.variants:
            body: Any = one.body

            def counted(*given: Any, body: Any = body) -> None:
                self.n_on_host += 1
                for _ in range(self._again):
                    body(*given)
                time.sleep(self._pause_s)

            made.variant(counted if one.on == "host" else body)
        return made


def pause_device(pool: Pool, seconds: float) -> None:
    """Have each sum of the pool's devices take so much longer."""
    for lane in pool._lanes[1:] if seconds else ():
        side: Any = lane.side
        launched = side._launched

        class Paused:
            def __init__(self, job: Any, *given: Any, launched: Any = launched) -> None:
                self._launched, self._job = launched(job, *given), job
                self.start = self._launched.start

            def wait(self, foreseen_s: float, **how: Any) -> float:
                taken: float = self._launched.wait(foreseen_s, **how)
                if self._job.task.name != "forces":
                    return taken
                time.sleep(seconds)
                return taken + seconds

        side._launched, side.begin = Paused, lambda job: False


def measured(given: argparse.Namespace, cores: int) -> list[Row]:
    """All rows for one number of cores."""
    names = runpy.run_path(str(EXAMPLE))
    parts = names["mesh"](given.size)
    n = len(parts[1])
    found = []
    with ct.tasks(given.device, cores=cores, zero_copy=not given.private) as pool:
        pause_device(pool, 1e-3 * given.pause[1])
        for merging in MERGINGS:
            forced = [Steps(names, pool, parts, merging, k, given.again, given.pause[0])
                      for k in sorted({*range(0, n, given.every), n})]
            free = Steps(names, pool, parts, merging, None, given.again, given.pause[0])
            for _ in range(AUTOMATIC):
                free.run(1)
            rounds: list[list[Row]] = []
            until_s = time.monotonic() + given.seconds
            while not rounds or (len(rounds) < given.rounds and time.monotonic() < until_s):
                turns = [*forced, free][:: -1 if len(rounds) % 2 else 1]
                taken = {one: one.timed(cores, given.steps) for one in turns}
                rounds.append([taken[one] for one in (*forced, free)])
            found += [middle_of(rows) for rows in zip(*rounds)]
        left = max(1, cores - sum(lane.cores for lane in pool._lanes))
    if left < cores:
        with ct.tasks((), cores=left) as beside:
            for merging in MERGINGS:
                one = Steps(names, beside, parts, merging, None, given.again, given.pause[0])
                rows = [one.timed(cores, given.steps) for _ in range(given.rounds)]
                found.append(middle_of(rows)._replace(k=BESIDE))
    return found


def rows_of(path: str) -> list[Row]:
    """What --out has written."""
    with open(path, encoding="utf-8", newline="") as file:
        return [
            Row(int(one["cores"]), one["merging"], int(one["k"]) if one["k"] else None,
                int(one["taken"]), *(float(one[name]) for name in Row._fields[4:]))
            for one in csv.DictReader(file)
        ]  # fmt: skip


def middle_of(rows: Sequence[Row]) -> Row:
    """The last one, with the time below which a quarter of theirs lies."""
    return rows[-1]._replace(seconds=usual([row.seconds for row in rows]))


def table(rows: Sequence[Row]) -> str:
    """Of each number of cores and merging the best k, what the pool has taken, bytes and times."""
    lines = ["cores  sums     best k  ms/step  pool's k  ms/step  behind  of sum  MB up  MB down"]
    for cores in sorted({row.cores for row in rows}):
        for merging in MERGINGS:
            here = [row for row in rows if (row.cores, row.merging) == (cores, merging)]
            (free,) = (row for row in here if row.k is None)
            forced = {row.k: row for row in here if row.k is not None}
            beside = forced.pop(BESIDE, None) or forced[max(forced)]
            best = min(forced.values(), key=lambda row: row.seconds)
            alone = 1 / forced[0].seconds + 1 / beside.seconds
            lines.append(
                f"{cores:5}  {merging:7}  {best.k:6}  {1e3 * best.seconds:7.3f}  {free.taken:8}  "
                f"{1e3 * free.seconds:7.3f}  {free.seconds / best.seconds - 1:6.1%}  "
                f"{1 / free.seconds / alone:6.2f}  "
                f"{best.up_nbytes / 1e6:5.2f}  {best.down_nbytes / 1e6:7.2f}"
            )
    return "\n".join(lines)


def both_ways(rows: Sequence[Row]) -> str:
    """Of each number of cores and k: times, and bytes both ways, of both ways to merge."""
    lines = ["cores   k" + "".join(f"  ms {one:7}  MB {one:7}" for one in MERGINGS)]
    for cores, k in sorted({(row.cores, row.k) for row in rows if row.k not in (None, BESIDE)}):
        here = {row.merging: row for row in rows if (row.cores, row.k) == (cores, k)}
        cells = [
            f"  {1e3 * row.seconds:10.3f}  {(row.up_nbytes + row.down_nbytes) / 1e6:10.2f}"
            for row in map(here.__getitem__, MERGINGS)
        ]
        lines.append(f"{cores:5}  {k:2}" + "".join(cells))
    return "\n".join(lines)


def draw(rows: Sequence[Row], path: str) -> None:
    """Time over k, a line for each number of cores and merging, a cross for what the pool took."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5))
    axes = figure.subplots()
    for cores in sorted({row.cores for row in rows}):
        for merging in MERGINGS:
            here = [row for row in rows if (row.cores, row.merging) == (cores, merging)]
            forced = [(row.k, 1e3 * row.seconds) for row in here if row.k not in (None, BESIDE)]
            (line,) = axes.plot(*zip(*forced), marker=".", label=f"{merging}, {cores} cores")
            for row in here:
                if row.k is None:
                    axes.plot(row.taken, 1e3 * row.seconds, "x", color=line.get_color())
    axes.set(xlabel="sums on cores, of 25", ylabel="ms of a step")
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--size", type=int, default=400, help="squares along an axis of the mesh")
    parser.add_argument("--again", type=int, default=1, help="times that cores do each sum over")
    parser.add_argument("--pause", type=float, nargs=2, default=[0.0, 0.0], metavar="MS",
                        help="that each sum takes longer on cores, and on the device, without them")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--private", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--out")
    parser.add_argument("--plot")
    parser.add_argument("--read")
    given = parser.parse_args()
    rows = rows_of(given.read) if given.read else []
    for cores in () if given.read else given.cores:
        rows += measured(given, cores)
        if given.out:       # at once, or all is lost where time is limited
            with open(given.out, "w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([Row._fields, *rows])
    print(table(rows), both_ways(rows), sep="\n\n")
    if given.plot:
        draw(rows, given.plot)


if __name__ == "__main__":
    main()
