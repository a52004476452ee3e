# SPDX-License-Identifier: MIT
"""Sizes are chosen by what bounds a pass, within a share of the run, by times made up."""
from __future__ import annotations

import random

import pytest

from controllers.plan.chunks.pipeline import Pipeline
from controllers.tuning.sizes import (
    LONG_S,
    SHARE,
    SHARE_OF_LONG,
    TIMED,
    Seen,
    Size,
    SizeChooser,
    Spans,
)
from hitmap import SerialCommunicator

SPANS = (16, 32, 64, 128, 256, 512)


class Device:
    """A link that each pass takes all of a field over, and kernels whose edges grow with a pass."""

    def __init__(self, link_s: float, kernel_s: float, edge: float) -> None:
        self.way_s = link_s
        self.kernels_s = {n: n * kernel_s * (1 + edge * n) for n in SPANS}
        self.step_s = {n: self._pass_s(n) / n for n in SPANS}
        self.best_s = min(self.step_s.values())
        self.seconds, self.n_steps = 0.0, 0
        self._last: Seen | None = None

    def _pass_s(self, span: int) -> float:
        longest = max(self.way_s, self.kernels_s[span])
        return longest + 0.05 * (self.way_s + self.kernels_s[span])

    def look(self, size: Size) -> Seen | None:
        return self._last

    def run(self, chooser: SizeChooser, left: int) -> int:
        """Some steps, by whole passes and a rest; how many they were."""
        span, count = chooser.width, chooser.until_decision(left)
        seconds, self._last = count * self.step_s[span] + 2 * self.way_s / 10, None
        if count // span >= TIMED:
            kind = Pipeline(self.way_s, self.way_s, self.kernels_s[span]).kind
            self._last = Seen(self.step_s[span], kind)
        self.seconds, self.n_steps = self.seconds + seconds, self.n_steps + count
        chooser.ran(count, seconds)
        return count


def chooser_of(device: Device, first: int, spans: tuple[int, ...] = SPANS) -> SizeChooser:
    return SizeChooser(Spans(spans, Size(first, 10, 3)), SerialCommunicator(), device.look)


def ran(device: Device, first: int, n_steps: int) -> SizeChooser:
    chooser, left = chooser_of(device, first), n_steps
    while left:
        left -= device.run(chooser, left)
    return chooser


@pytest.mark.parametrize("seed", range(20))
def test_it_comes_to_the_best_number_of_steps_within_its_share_of_the_run(seed: int) -> None:
    rng = random.Random(seed)
    kernel_s = 10 ** rng.uniform(-5, -3)
    device = Device(kernel_s * 10 ** rng.uniform(0, 3), kernel_s, 10 ** rng.uniform(-4, -2.5))
    first, n_steps = rng.choice(SPANS), 400_000
    chooser = ran(device, first, n_steps)
    assert chooser.over and device.step_s[chooser.width] <= device.best_s / 0.97
    worst_s = n_steps * device.step_s[chooser.width]
    share = SHARE if worst_s < LONG_S else SHARE_OF_LONG
    assert device.seconds <= 1.03 * worst_s     # with the passes that it began with
    assert device.seconds <= (1 + share) * n_steps * device.step_s[first]


def test_a_run_that_is_too_short_tries_nothing_but_what_it_began_with() -> None:
    device = Device(1e-2, 1e-3, 1e-3)
    chooser = ran(device, 64, 640)
    assert [size.span for size in chooser.seconds] == [64]
    assert chooser.width == 64 and not chooser.over


def test_what_many_short_runs_have_spent_pays_for_a_trial() -> None:
    device = Device(1.0, 1e-3, 1e-4)        # the link is the bound: longer passes
    chooser = chooser_of(device, 64)
    for _ in range(200):
        left = 640
        while left:
            left -= device.run(chooser, left)
    tried = {size.span for size in chooser.seconds}
    assert 128 in tried and 32 not in tried


@pytest.mark.parametrize(("link_s", "tried"), [(1.0, 128), (1e-3, 32)])
def test_copies_ask_for_longer_passes_and_kernels_for_shorter_ones(
    link_s: float, tried: int
) -> None:
    chooser = ran(Device(link_s, 1e-3, 1e-3), 64, 400_000)
    spans = [size.span for size in chooser.seconds]
    assert spans[:2] == [64, tried] and {32: 128, 128: 32}[tried] not in spans


def test_one_length_is_no_choice() -> None:
    chooser = chooser_of(Device(1.0, 1e-3, 1e-4), 64, (64,))
    assert chooser.over and chooser.until_decision(100) == 100
