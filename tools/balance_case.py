# SPDX-License-Identifier: MIT
"""A computation by devices of which one is slowed, and how fast it is (measure_balance.py)."""
from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

import controllers
from controllers.device.event import Profile
from controllers.engine import Engine, Progress, RunLog, Runner, Several, samples
from controllers.estimates.estimates import VARIABLE
from controllers.plan import Operation, exchange
from controllers.report.report import Report
from controllers.report.timings import Timings
from controllers.report.trace import Trace
from hitmap.comm import Communicator

TURNS = 25          # in which two runs are compared
MADE = 5            # how often each is made
LAUNCHES = 16       # from one pair that is looked at to the next one, of a run that is measured


@contextmanager
def nothing_known() -> Iterator[None]:
    """In here no times of devices are kept but those of what runs in here."""
    with TemporaryDirectory() as folder, patch.dict(os.environ, {VARIABLE: folder}):
        yield


@contextmanager
def nothing_exchanged() -> Iterator[None]:
    """In here computations are planned whose places hand nothing over: their cells are wrong."""
    with (
        patch.object(exchange, "record", lambda deliveries: None),
        patch.object(exchange.Delivery, "pack", lambda delivery: None),
    ):
        yield


def problem(options: argparse.Namespace, n_axes: int, dtype: str) -> tuple[Any, Any]:
    """A star and a field of random numbers."""
    extent = (options.size,) * 2 if n_axes == 2 else (options.cube,) * 3
    pattern = np.zeros((3,) * n_axes, int)
    for axis in range(n_axes):
        for side in (0, 2):
            pattern[tuple(side if a == axis else 1 for a in range(n_axes))] = 1
    weights = pattern.ravel().tolist()
    star = controllers.Stencil.of("star", [(-1, 1)] * n_axes, weights, sum(weights))
    field = np.random.default_rng(0).random(extent).astype(dtype)
    return star.program(dtype), field


def seconds_of(run: controllers.Computation, n_steps: int) -> float:
    """By the clock."""
    start = time.perf_counter()
    run.run(n_steps)
    return time.perf_counter() - start


def moves(run: controllers.Computation) -> int:
    """How often the field was divided anew."""
    balance = run.report().balance
    return 0 if balance is None else balance.moves


class Spans:
    """A log of runs: how long each place needs, from its first launch to the end of its last."""

    def __init__(self) -> None:
        self.seconds: dict[int, float] = {}
        self._engine: Engine | None = None
        self._launches: dict[int, list[Profile]] = {}

    @contextmanager
    def of_runs(self) -> Iterator[None]:
        """In here all runs of this process are logged."""
        usual = Timings.run

        def logged(
            timings: Timings, engine: Engine, n_steps: int, comm: Communicator,
            progress: Progress | None = None, trace: Trace | None = None,
            log: RunLog | None = None, **rest: Any,
        ) -> None:  # fmt: skip
            self._engine = engine
            logs = Several([one for one in (log, self) if one is not None])
            usual(timings, engine, n_steps, comm, progress, trace, logs, **rest)
            for place, launches in self._launches.items():
                span_ns = max(one.end for one in launches) - min(one.start for one in launches)
                self.seconds[place] = self.seconds.get(place, 0.0) + span_ns * 1e-9
            self._launches = {}

        with patch.object(Timings, "run", logged):
            yield

    def steps(self, first: int, last: int) -> tuple[int, int]:
        """Those in which places begin and end."""
        return first, last

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        assert self._engine is not None, "a run"
        if operation.number in self._engine.ends.launches:
            self._launches.setdefault(operation.place, []).append(profile)

    def within(self, engine: Runner, step: int) -> Spans:
        """Parts of steps have none."""
        raise AssertionError("a star has no parts that are repeated")


@dataclass(frozen=True)
class Piece:
    """Cells per second, by the clock; of each place by itself; and of all while kernels run."""

    rate: float
    speeds: tuple[float, ...]
    kernels: float

    @property
    def own(self) -> float:
        """The summed speeds of the places."""
        return sum(self.speeds)


def best_of_fixed(pieces: Sequence[Piece]) -> float:
    """What two places would have of their summed speeds with the best shares for all pieces.

    In the mean of these, without exchange.
    """
    first, second = np.array([piece.speeds for piece in pieces]).T
    share = np.linspace(0.001, 0.999, 999)[:, None]
    rates = np.minimum(first / share, second / (1 - share))
    return float((rates / (first + second)).mean(axis=1).max())


@dataclass
class Case:
    """What is computed, and by what."""

    options: argparse.Namespace
    program: Any
    field: Any

    def opened(self, **how: Any) -> tuple[controllers.Computation, float]:
        """A computation, and how long it took to make it."""
        start = time.perf_counter()
        run = controllers.Computation(
            self.program, self.field, devices=self.options.device,
            steps_per_launch=self.options.steps_per_launch, halo_width=self.options.halo_width,
            **how,
        )  # fmt: skip
        if run.layout.n_places < 2:
            named = " ".join(self.options.device)
            sys.exit(f"{named} is one device; name one in parts, as cpu/1,1, or two")
        return run, time.perf_counter() - start

    def more_to_make(self, found: dict[str, Any], given: dict[str, Any]) -> float:
        """How many seconds longer it takes to make a run that finds shares: the least of turns."""
        seconds: list[list[float]] = [[], []]
        for turn in range(MADE):
            for which in ((0, 1), (1, 0))[turn % 2]:
                run, took_s = self.opened(**(found, given)[which])
                run.close()
                seconds[which].append(took_s)
        return min(seconds[0]) - min(seconds[1])

    def found(self) -> tuple[Report, float, Any]:
        """Of a run that finds shares: how long it took, too, and the field then."""
        run, seconds = self.opened(weights="auto", balance="start")
        with run:
            seconds += seconds_of(run, self.options.settle)
            return run.report(), seconds, run.gather()

    def beside(self, found: controllers.Computation, given: controllers.Computation,
               late_s: float) -> tuple[float, float]:  # fmt: skip
        """What a run takes beyond one that is given the shares, and how long that one takes."""
        count, usual, unusual, given_s = self.options.settle // TURNS, list[float](), late_s, 0.0
        for turn in range(TURNS):
            before, one = moves(found), seconds_of(given, count)
            more = seconds_of(found, count) - one
            given_s += one
            if turn and moves(found) == before:
                usual.append(more)
            else:
                unusual += more
        return unusual + median(usual) * len(usual), given_s

    def has_right_bits(self, results: dict[int, Any]) -> bool:
        """Whether the fields after so many steps are those of one device alone, the last one."""
        whole, of_parts, _ = self.options.device[-1].partition("/")
        device = whole if of_parts or ":" in whole else f"{whole}:0"
        with controllers.Computation(self.program, self.field, devices=device) as alone:
            same = True
            for step, result in sorted(results.items()):
                alone.run(step - alone.step)
                right = alone.gather()
                assert result is not None and right is not None, "one rank"
                same = same and np.array_equal(result, right)
            return same

    def piece(self, run: controllers.Computation) -> Piece:
        """Of a part of the steps."""
        count, spans = max(1, self.options.steps // self.options.pieces), Spans()
        before = [place.compute_s for place in run.report().places]
        with spans.of_runs(), patch.object(samples, "DISTANCE", LAUNCHES):
            seconds = seconds_of(run, count)
        places = run.report().places
        of_kernels = [now.compute_s - was for now, was in zip(places, before, strict=True)]
        speeds = tuple(place.cells * count / spans.seconds[place.place] for place in places)
        kernels = sum(place.cells * count / s for place, s in zip(places, of_kernels, strict=True))
        return Piece(self.field.size * count / seconds, speeds, kernels)

    def speed(
        self, run: controllers.Computation, apart: controllers.Computation
    ) -> tuple[list[Piece], list[Piece]]:
        """Pieces of a run, and before and after each one of its places without exchange."""
        self.piece(apart)
        pieces, others = list[Piece](), [self.piece(apart)]
        for _ in range(self.options.pieces):
            pieces.append(self.piece(run))
            others.append(self.piece(apart))
        return pieces, others
