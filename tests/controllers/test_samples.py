# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from controllers.engine.samples import MAX_PAIRS, Samples
from controllers.event import HostEvent

SECOND = 10**9


def sampled(steps: list[list[tuple[int, int]]], first: int = 0) -> Samples:
    """A run of `steps` steps, each with launches from .. to, in seconds."""
    samples = Samples()
    samples.begin(first, first + len(steps) - 1)
    for number, launches in enumerate(steps):
        samples.open(first + number)
        for start, end in launches:
            if samples.wanted:
                samples.add(HostEvent(start * SECOND, end * SECOND))
    samples.end()
    return samples


def test_the_kernels_of_a_step_count_together_and_steps_are_averaged() -> None:
    samples = sampled([[(0, 1), (2, 5)], [(6, 8)]])
    assert samples.compute_s == pytest.approx((4 + 2) / 2)


def test_the_gap_is_from_the_last_kernel_of_a_step_to_the_first_of_the_next() -> None:
    assert sampled([[(0, 1), (1, 5)], [(8, 9), (7, 8)]]).gap_s == pytest.approx(2)
    pairs = [[(0, 1)], [(2, 3)], [(100, 101)], [(104, 105)]]    # 3 -> 100 is between two pairs
    assert sampled(pairs).gap_s == pytest.approx((1 + 3) / 2)


def test_kernels_that_overlap_give_no_negative_gap() -> None:
    assert sampled([[(0, 5)], [(3, 6)]]).gap_s == 0


def test_without_kernels_or_steps_all_times_are_0() -> None:
    for samples in (Samples(), sampled([]), sampled([[], []]), sampled([[(1, 2)]])):
        assert samples.gap_s == 0
    assert Samples().compute_s == sampled([[], []]).compute_s == 0
    assert sampled([[(1, 2)]]).compute_s == pytest.approx(1)


@pytest.mark.parametrize("n_steps", [1, 2, 3, 511, 512, 513, 1000, 100_000])
@pytest.mark.parametrize("first", [0, 17])
def test_a_long_run_is_sampled_in_few_pairs_of_successive_steps(n_steps: int, first: int) -> None:
    samples = Samples()
    samples.begin(first, first + n_steps - 1)
    wanted = []
    for step in range(first, first + n_steps):
        samples.open(step)
        if samples.wanted:
            wanted.append(step)
    assert len(wanted) <= 2 * MAX_PAIRS + 1
    assert wanted[0] == first
    assert all(b == a + 1 for a, b in zip(wanted[0::2], wanted[1::2]))
    if n_steps > 2:
        assert wanted[-1] - first > 0.99 * (n_steps - 1) - 2    # all over the run


def test_a_new_run_forgets_the_old_one() -> None:
    samples = sampled([[(0, 1)], [(5, 6)]])
    samples.begin(2, 3)
    samples.open(2)
    samples.add(HostEvent(0, 7 * SECOND))
    samples.end()
    assert samples.compute_s == pytest.approx(7)
    assert samples.gap_s == 0
