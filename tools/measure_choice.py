# SPDX-License-Identifier: MIT
"""How well a run chooses its devices: each device alone, all together, and by devices="auto".

    python tools/measure_choice.py [--devices gpu cpu] [--sizes 64 512 4096] [--cubes 64 256]
        [--dtypes float32] [--seconds 150] [--out choice.json]

One row per case: steps per second of each device alone, of all of them, of a run that chooses, once
with nothing remembered and then with what that has left; what it has chosen; and its speed by the
best device alone (at least 0.98 is what it should be).  All bits are compared.  What would exceed
`--seconds` is left out; cases come in the order of their size, the small ones first.
"""
from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import controllers
from controllers import Computation, Program, Stencil
from hitmap.comm import default_communicator

RUN_S = 1.0         # of a timed run, about
MOST_STEPS = 5000
COMPARED = 10       # steps after which bits are compared
HEAD = f"{'case':18}{'devices':28}{'steps/s':>11}{'of the best alone':>19}  chosen"


@dataclass(frozen=True)
class Row:
    """One way to compute a case."""

    case: str
    devices: str
    steps_per_s: float
    ratio: float
    chosen: str
    set_up_s: float
    same_bits: bool

    def __str__(self) -> str:
        bits = "" if self.same_bits else "  OTHER BITS"
        return (
            f"{self.case:18}{self.devices:28}{self.steps_per_s:11.1f}{self.ratio:19.3f}  "
            f"{self.chosen}{bits}"
        )


def problem(extent: tuple[int, ...], dtype: str) -> tuple[Program, npt.NDArray[np.generic]]:
    """A star, and a field of random numbers."""
    n_axes = len(extent)
    pattern = np.zeros((3,) * n_axes, int)
    for axis in range(n_axes):
        for side in (0, 2):
            pattern[tuple(side if a == axis else 1 for a in range(n_axes))] = 1
    weights = pattern.ravel().tolist()
    star = Stencil.of("star", [(-1, 1)] * n_axes, weights, sum(weights))
    return star.program(dtype), np.random.default_rng(0).random(extent).astype(dtype)


class Case:
    """One field, computed in several ways for as many steps."""

    def __init__(self, extent: tuple[int, ...], dtype: str, run_s: float) -> None:
        self.name = f"{'x'.join(map(str, extent))} {dtype}"
        self._program, self._field = problem(extent, dtype)
        self._run_s = run_s
        self._right: npt.NDArray[np.generic] | None = None

    def measure(self, devices: Sequence[str], best: float) -> Row:
        """Steps per second, of the faster of two runs; `best`: those of the best alone.

        A run that chooses takes as many steps as the best device alone does.
        """
        start = time.perf_counter()
        with Computation(self._program, self._field, devices=[*devices]) as run:
            set_up_s = time.perf_counter() - start
            chooses = devices[0] == "auto"
            n_steps = self._limited(best * self._run_s) if chooses else self._steps(run)
            run.scatter(self._field)
            found = []
            for _ in range(2):
                before = run.report()
                run.run(n_steps)
                after = run.report()
                found.append(n_steps / (after.seconds - before.seconds))
            choice = run.report().choice
            run.scatter(self._field)
            run.run(COMPARED)
            same = self._is_same(run.gather())
        chosen = " + ".join(choice.chosen) if choice else ""
        speed = max(found)
        return Row(self.name, " ".join(devices), speed, speed / (best or speed), chosen, set_up_s,
                   same)  # fmt: skip

    def _steps(self, run: Computation) -> int:
        """As many as a run takes about `run_s` for."""
        run.run(10)
        before = run.report()
        run.run(20)
        each_s = (run.report().seconds - before.seconds) / 20
        return self._limited(self._run_s / each_s)

    @staticmethod
    def _limited(n_steps: float) -> int:
        return max(20, min(MOST_STEPS, int(n_steps)))

    def _is_same(self, result: npt.NDArray[np.generic] | None) -> bool:
        if result is None:      # rank 0 has it
            return True
        if self._right is None:
            self._right = result
        return np.array_equal(result, self._right)


def rows(case: Case, devices: Sequence[str]) -> Iterator[Row]:
    """Each device alone, all, and those that a run chooses, without and with a cache.

    Of a device in parts, such as cpu/1,1, one of each size is alone.
    """
    best, alone = 0.0, list[str]()
    for device in devices:
        whole, of_parts, counts = device.partition("/")
        parts = dict.fromkeys(counts.split(","))
        alone += [f"{whole}/{n}" for n in parts] if of_parts else [device]
    for device in alone:
        row = case.measure([device], 0.0)
        best = max(best, row.steps_per_s)
        yield row
    yield case.measure(devices, best)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CONTROLLERS_TUNING"] = os.environ["CONTROLLERS_ESTIMATES"] = folder
        for _ in range(2):
            yield case.measure(["auto", *devices], best)
    del os.environ["CONTROLLERS_TUNING"], os.environ["CONTROLLERS_ESTIMATES"]


def main() -> None:
    """Measure what is asked for, as far as the seconds reach."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--devices", nargs="+", default=["gpu", "cpu"])
    parser.add_argument("--sizes", type=int, nargs="*", default=[64, 256, 1024, 4096, 16384])
    parser.add_argument("--cubes", type=int, nargs="*", default=[64, 256, 512])
    parser.add_argument("--dtypes", nargs="+", default=["float32"])
    parser.add_argument("--seconds", type=float, default=150.0, help="in all")
    parser.add_argument("--run-seconds", type=float, default=RUN_S, help="of each timed run")
    parser.add_argument("--out", type=Path, help="where to write the rows as JSON")
    options = parser.parse_args()
    comm, start, found = default_communicator(), time.perf_counter(), []
    extents = [(n,) * 2 for n in options.sizes] + [(n,) * 3 for n in options.cubes]
    tell = comm.rank == 0
    if tell:
        print(f"controllers {controllers.__version__}\n{HEAD}", flush=True)
    longest_s = 0.0
    for extent in sorted(extents, key=np.prod):
        for dtype in options.dtypes:
            began = time.perf_counter()
            left_s = options.seconds - (began - start)
            if not comm.bcast(left_s > 1.5 * longest_s):
                if tell:
                    print(f"{'x'.join(map(str, extent))} {dtype}: no time left")
                continue
            for row in rows(Case(extent, dtype, options.run_seconds), options.devices):
                found.append(row)
                if tell:
                    print(row, flush=True)
            longest_s = max(longest_s, time.perf_counter() - began)
    chosen = [row for row in found if row.chosen]
    if tell and chosen:
        least = min(row.ratio for row in chosen)
        good = sum(row.ratio >= 0.98 for row in chosen)
        print(f"of the best device alone: at least {least:.3f} (asked: 0.98; {good} of "
              f"{len(chosen)} runs that chose); same bits: {all(row.same_bits for row in found)}")
    if tell and options.out is not None:
        options.out.write_text(json.dumps([asdict(row) for row in found]))


if __name__ == "__main__":
    main()
