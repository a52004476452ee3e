# SPDX-License-Identifier: MIT
"""A computation by devices of which one is slowed, and how fast it is (measure_balance.py)."""
from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

import controllers
from controllers.estimates.estimates import VARIABLE
from controllers.plan import exchange
from controllers.report.report import Report

TURNS = 25          # in which two runs are compared
MADE = 5            # how often each is made


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


@dataclass(frozen=True)
class Piece:
    """Cells per second, by the clock; and the summed speeds of the kernels while they run."""

    rate: float
    summed: float

    def between(self, other: Piece) -> Piece:
        """What there was between two of them, if it changed evenly."""
        return Piece((self.rate + other.rate) / 2, (self.summed + other.summed) / 2)


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
        count = max(1, self.options.steps // self.options.pieces)
        before = [place.compute_s for place in run.report().places]
        seconds = seconds_of(run, count)
        places = run.report().places
        busy = [now.compute_s - was for now, was in zip(places, before, strict=True)]
        at_best = sum(place.cells / s for place, s in zip(places, busy, strict=True))
        return Piece(self.field.size * count / seconds, at_best * count)

    def speed(
        self, run: controllers.Computation, apart: controllers.Computation
    ) -> list[tuple[Piece, Piece]]:
        """Pieces of a run, and with each its places without exchange, before it and after it."""
        self.piece(apart)
        before, pairs = self.piece(apart), []
        for _ in range(self.options.pieces):
            one, after = self.piece(run), self.piece(apart)
            pairs.append((one, before.between(after)))
            before = after
        return pairs
