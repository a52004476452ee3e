# SPDX-License-Identifier: MIT
"""One problem on one device: contestants are prepared, checked, and take turns."""
from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.bench.comparator import Comparator
from controllers.bench.host import NumPyLoop, PlainC
from controllers.bench.loops import BufferCopy, Buffers, HandWritten, KernelCopy, OneCell
from controllers.bench.ours import Ours
from controllers.bench.problem import Problem
from controllers.bench.results import Case, Figure
from controllers.bench.rounds import Entrant, interleaved, ratio
from controllers.device import Device
from controllers.program.reference import reference_run
from hitmap.shape import Shape

# speeds are relative to the first of these that ran, and is no slower than NumPy
BASES = (PlainC.name, HandWritten.name)
N_CHECKED = 2       # steps, at least
SAMPLE = 12         # cells to a side of the boxes that the NumPy reference checks
AGAINST = ("cell", "hand-written", "numpy", "c")


@dataclass
class _Contestant:
    """A comparator that was prepared and whose result is right."""

    comparator: Comparator
    error: float
    step_s: float       # of the run that was checked

    @property
    def entrant(self) -> Entrant:
        return Entrant(self.comparator.run, self.comparator.n_at_once, self.step_s)


class Expected:
    """The field after some steps: by the one-cell kernel, which NumPy checks in some boxes."""

    def __init__(self, problem: Problem, cell: Comparator) -> None:
        self._problem, self._cell = problem, cell
        self._fields: dict[int, npt.NDArray[Any]] = {}

    def after(self, n_steps: int) -> npt.NDArray[Any]:
        """AssertionError where the two differ: then nothing can be compared with."""
        if n_steps not in self._fields:
            self._cell.prepare(self._problem)
            self._cell.run(n_steps)
            found = self._cell.result()
            for where, right in sampled(self._problem, n_steps):
                same = np.array_equal(found[where.slices((0,) * found.ndim)], right)
                assert same, f"{self._problem}: the one-cell kernel has the reference's bits"
            self._fields[n_steps] = found
        return self._fields[n_steps]


def sampled(problem: Problem, n_steps: int) -> list[tuple[Shape, npt.NDArray[Any]]]:
    """Boxes at corners, edges and in the middle, with their cells as the reference has them."""
    program, domain = problem.program, problem.domain
    low, high = zip(*((n_steps * below, n_steps * above) for below, above in program.reach))
    starts = [sorted({0, n // 2, max(0, n - SAMPLE)}) for n in problem.extent]
    found = []
    for lower in product(*starts):
        box = Shape(lower, tuple(n + SAMPLE for n in lower)) & domain
        around = box.grow(low, high) & domain
        start = np.array(problem.initial[around.slices((0,) * around.n_axes)])
        after = reference_run(program, start, n_steps, (False,) * around.n_axes)
        found.append((box, after[box.slices(around.lower)]))
    return found


def run_case(
    problem: Problem,
    selector: str,
    device: Device,
    seconds: float,
    against: Sequence[str] = AGAINST,
    others: Sequence[Comparator] = (),
) -> Case:
    """Measure for about `seconds`, without preparations; `selector` names `device`.

    against: of AGAINST.  others: further comparators.  ValueError or RuntimeError where the device
    cannot do the problem.
    """
    buffers = Buffers(device, problem)
    copies = [BufferCopy(buffers), KernelCopy(buffers)]
    cell = OneCell(buffers)
    known = {"cell": cell, "hand-written": HandWritten(buffers), "numpy": NumPyLoop(),
             "c": PlainC()}  # fmt: skip
    candidates = [*_ours(selector), *(known[name] for name in against), *others]
    admission = _Admission(problem, Expected(problem, cell))
    try:
        for comparator in candidates:
            admission.admit(comparator)
        for copy in copies:
            copy.prepare(problem)
        return _measured(problem, device, seconds, copies, admission)
    finally:
        for comparator in candidates:
            comparator.close()


def _ours(selector: str) -> list[Comparator]:
    return [
        Ours(selector, "controllers"),
        Ours(selector, "controllers, one step at once", steps_per_launch=1),
        Ours(selector, "controllers --math fast", math="fast"),
    ]


class _Admission:
    """Who takes part: prepared, and checked."""

    def __init__(self, problem: Problem, expected: Expected) -> None:
        self.problem = problem
        self.contestants: list[_Contestant] = []
        self.notes: list[str] = []
        self.wrong: list[str] = []
        self._expected = expected

    def admit(self, comparator: Comparator) -> None:
        """Prepare and check it; who cannot do the problem, or does it wrong, is left out."""
        try:
            comparator.prepare(self.problem)
            if self._is_known(comparator):
                return
            n_steps = max(N_CHECKED, comparator.n_at_once + 1)
            start = time.perf_counter()
            comparator.run(n_steps)
            step_s = (time.perf_counter() - start) / n_steps
            result = comparator.result()
        except Exception as error:      # theirs may raise anything; without ours there is no point
            if isinstance(comparator, Ours):
                raise
            reason = " ".join(str(error).split()) or type(error).__name__
            self.notes.append(f"{comparator.name} is left out: {reason}")
            comparator.close()
            return
        off = self._difference(result, n_steps)
        if off > (0 if comparator.exact else self.problem.tolerance(n_steps)):
            self.wrong.append(comparator.name)
            self.notes.append(f"{comparator.name} is left out: wrong by {off:.1e}")
            comparator.close()
            return
        self.contestants.append(_Contestant(comparator, off, step_s))

    def _is_known(self, comparator: Comparator) -> bool:
        """Whether it would do the same as the first: one step at once, where all do so."""
        first = self.contestants[0].comparator if self.contestants else comparator
        same = (
            comparator is not first
            and isinstance(first, Ours) and isinstance(comparator, Ours)
            and comparator.n_at_once == first.n_at_once and comparator.exact == first.exact
        )  # fmt: skip
        if same:
            comparator.close()
        return same

    def _difference(self, result: npt.NDArray[Any], n_steps: int) -> float:
        """The largest one between a value and the strict one."""
        right = self._expected.after(n_steps)
        if result.shape != right.shape or result.dtype != right.dtype:
            return float("inf")
        if np.array_equal(result, right):
            return 0.0
        largest = float(np.abs(result - right).max())
        return largest if largest == largest else float("inf")


def _measured(
    problem: Problem,
    device: Device,
    seconds: float,
    copies: Sequence[Comparator],
    admission: _Admission,
) -> Case:
    """All take turns; the faster way to copy is what the device can do."""
    entrants = [*(_warmed(copy) for copy in copies)]
    entrants += [one.entrant for one in admission.contestants]
    times = interleaved(entrants, seconds)
    of_copies, own = times[: len(copies)], times[len(copies) :]
    which = min(range(len(copies)), key=lambda n: statistics.median(of_copies[n]))
    names = [one.comparator.name for one in admission.contestants]
    slow = implausible(dict(zip(names, own)))
    plausible = [name for name in BASES if name in names and name not in slow]
    base = next(iter(plausible + names), "")
    program = problem.program
    return Case(
        device.name, problem.stencil, problem.dtype, problem.extent,
        program.flops_per_cell, program.bytes_per_cell, base, copies[which].name,
        2 * problem.nbytes / statistics.median(of_copies[which]),
        tuple(
            _figure(problem, one, seconds_, of_copies[which], own[names.index(base)])
            for one, seconds_ in zip(admission.contestants, own)
        ),
        (*admission.notes, *slow.values()), tuple(admission.wrong), tuple(slow),
    )  # fmt: skip


def implausible(times: Mapping[str, Sequence[float]]) -> dict[str, str]:
    """Which bases say nothing, and why, from seconds per step by rounds: NumPy is faster.

    >>> list(implausible({"C with OpenMP": [3.0, 5.0], "NumPy": [1.0]}).values())
    ['C with OpenMP is implausible, 0.33 of the speed of NumPy: speeds are not relative to it']
    """
    if NumPyLoop.name not in times:
        return {}
    speeds = {name: ratio(times[NumPyLoop.name], times[name]) for name in BASES if name in times}
    return {
        name: f"{name} is implausible, {speed:.2g} of the speed of {NumPyLoop.name}: "
        "speeds are not relative to it"
        for name, speed in speeds.items()
        if speed < 1
    }


def _warmed(copy: Comparator) -> Entrant:
    copy.run(1)
    start = time.perf_counter()
    copy.run(1)
    return Entrant(copy.run, 1, time.perf_counter() - start)


def _figure(
    problem: Problem,
    one: _Contestant,
    own: Sequence[float],
    copy: Sequence[float],
    base: Sequence[float],
) -> Figure:
    """From seconds per step, of its own, of the copy, and of the base, by rounds."""
    step_s = statistics.median(own)
    n_bytes = problem.box.n_cells * problem.program.bytes_per_cell
    return Figure(
        one.comparator.name,
        problem.box.n_cells / step_s,
        ratio(copy, own) * n_bytes / (2 * problem.nbytes),
        ratio(base, own),
        1 / step_s,
        one.comparator.n_at_once,
        1 / step_s / one.comparator.n_at_once,
        one.error,
        len(own),
        one.comparator.configuration,
    )
