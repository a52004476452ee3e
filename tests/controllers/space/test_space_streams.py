# SPDX-License-Identifier: MIT
"""Arrays that do not fit pass through their devices: the same bits, by as many chunks as needed."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import sample
from stream_steps import backwards, nearest, same, steps

import controllers as ct
from controllers.array.stream_run import StreamRun
from controllers.space.workspace import Workspace
from hitmap import SerialCommunicator

OWN = {"devices": "cpu", "zero_copy": False, "dtype": "float32"}
FOLDS = 1 << 18     # bytes that folds of several arrays may take on a device
PART = 512          # bytes at multiples of which arrays lie in a slot


@pytest.mark.parametrize("seed", sample([*range(9, 30), *range(9)], 30))
def test_random_programs_have_the_bits_of_a_run_without_a_cap(seed: int) -> None:
    random = np.random.default_rng([seed, 1])
    rows, part = int(random.integers(500, 12000)), int(random.integers(2, 21))
    options = {**OWN, "comm": SerialCommunicator()}
    with Workspace(**options) as on:
        right = steps(on, seed, rows)
    places, slots = int(random.integers(1, 4)), int(random.integers(1, 5))
    cap = FOLDS * places + rows * 16 // part
    with Workspace(memory_cap=cap, chunks=int(random.integers(1, 30)), slots=slots,
                   places_per_controller=places, **options) as on:  # fmt: skip
        try:
            found = steps(on, seed, rows)
        except ct.MemoryCapError as error:      # what chunks fold takes all, however many they are
            assert "of tables and folds" in str(error) and places == 1 and slots > 2
            return
        assert same(found, right)
        (device,) = on.report().devices
        assert on.streams.is_on and device.peak_bytes <= cap


@pytest.mark.parametrize("part", sample([2, 3, 5, 8, 13, 20], 3))
def test_arrays_go_to_the_host_when_one_more_does_not_fit(part: int) -> None:
    """... with the values that they have, and those of what is held for expressions."""
    values = np.arange(16000, dtype="float32").reshape(2000, 8)
    with ct.workspace(memory_cap=4 * values.nbytes // part, **OWN) as on:
        x = on.array(values)
        is_first_on_device = not on.streams.is_on
        later = x + 1
        x += later
        rest = [on.array(values + n) for n in range(4)]
        assert np.array_equal(later, values + 1) and np.array_equal(x, 2 * values + 1)
        assert all(np.array_equal(one, values + n) for n, one in enumerate(rest))
        assert on.streams.is_on and is_first_on_device == (part < 4)
        assert on.report().devices[0].peak_bytes <= 4 * values.nbytes // part


@pytest.mark.parametrize(
    ("kib", "slots"), sample(product([40, 64, 100, 150, 300], [1, 2, 3, 4]), 7)
)
def test_the_least_number_of_chunks_is_that_of_equation_1(kib: int, slots: int) -> None:
    """Rows x bytes of a row x slots, and what items have for themselves, beside whole arrays."""
    rows = 20000
    with ct.workspace(memory_cap=f"{kib}k", slots=slots, **OWN) as on:
        x = on.array(np.ones((rows, 4), "float32"))
        nearest(x, np.ones((100, 4), "float32"))
        backwards(x)
        by_items, with_private = on.report().streams
    free = kib * 1024 - 1600                                # the centres are whole
    of_a_chunk = (free - slots * 2 * PART) // (slots * (16 + 4))
    assert by_items.least == -(-rows // of_a_chunk) and by_items.fused == 1600
    of_a_chunk = (free - slots * 2 * PART) // (slots * (16 + 16) + 16)
    assert with_private.least == -(-rows // of_a_chunk)
    assert by_items.chunks >= max(by_items.least, slots + 1 if slots > 1 else 1)
    assert (by_items.up_nbytes, by_items.down_nbytes) == (16 * rows, 4 * rows)
    assert (by_items.split, by_items.whole) == (("x", "result"), ("centres",))


def test_chunks_wait_for_their_slots_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = []
    begin = StreamRun.__init__

    def kept(self: StreamRun, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        plans.append(self.plan)

    monkeypatch.setattr(StreamRun, "__init__", kept)
    with ct.workspace(chunks=5, slots=2, **OWN) as on:
        backwards(on.array(np.ones((50, 4), "float32")))
    (plan,) = plans
    by_number = {one.number: one for one in plan.operations}
    for one in plan.operations:
        before = {(by_number[edge.number].verb, by_number[edge.number].place) for edge in one.after
                  if not edge.steps_back}  # fmt: skip
        if one.verb == "upload":        # the slot was read by the launch that was there before
            assert before == ({("launch", one.place - 2)} if one.place >= 2 else set())
        elif one.verb == "launch":
            later = {("download", one.place - 2)} if one.place >= 2 else set()
            assert before == {("upload", one.place)} | later
        else:
            assert one.verb == "download" and before == {("launch", one.place)}
    lanes = {one.verb: one.lane for one in plan.operations}
    assert lanes == {"upload": "transfer", "launch": "compute", "download": "retrieve"}


@pytest.mark.whole
def test_whole_arrays_are_brought_once_and_other_calls_use_the_same_slots() -> None:
    values = np.random.default_rng(3).normal(size=(3000, 4)).astype("float32")
    with ct.workspace(memory_cap="70k", **OWN) as on:
        x, few = on.array(values), on.array(values[:500])
        for _ in range(3):
            assert np.array_equal(nearest(x, few), nearest(values[:, :], values[:500]))
            assert np.array_equal(backwards(x), values[:, ::-1])
        few += 1
        assert np.array_equal(nearest(x, few), nearest(values, values[:500] + 1))
        calls = {one.name: one.calls for one in on.report().streams}
        assert calls["nearest"] == 4 and calls["backwards"] == 3
        assert "4 calls" in str(on.report()) and on.report().as_dict()["streams"]


def test_rows_of_three_axes_files_and_sums_by_labels(tmp_path: Any) -> None:
    values = np.random.default_rng(4).normal(size=(400, 3, 5)).astype("float32")
    labels = np.arange(400) % 7
    with ct.workspace(memory_cap=values.nbytes // 3, **OWN) as on:
        x = on.array(values)
        x.save(tmp_path / "x.npy")
        again = on.open(tmp_path / "x.npy")
        assert np.array_equal(again, values) and np.array_equal(x[3:9], values[3:9])
        assert np.array_equal(ct.sum_by(x, labels, 7), ct.sum_by(values, labels, 7))
        assert on.streams.is_on


@pytest.mark.parametrize("seed", sample([20, 5, 2], 3))
def test_ranks_stream_each_its_own_rows(seed: int) -> None:
    job = run_ranks(2, f"seed = {seed}" + """
import numpy as np
import controllers as ct
from hitmap import SerialCommunicator
from stream_steps import same, steps
own = dict(devices="cpu", zero_copy=False, dtype="float32")
with ct.workspace(memory_cap=330_000, chunks=3, **own) as on:
    found = [np.asarray(one) for one in steps(on, seed, 6000, shifts=False)]
    assert on.streams.is_on
    x = on.array(np.ones((90, 2)))
    try:
        x[2:] = x[:-2]
    except ValueError as error:
        assert "another rank has them" in str(error), error
    else:
        raise AssertionError("rows of another rank")
with ct.workspace(comm=SerialCommunicator(), **own) as alone:
    right = [*steps(alone, seed, 6000, shifts=False)]
assert same(found, right)
print("is right")
""", env=helpers_path("stream_steps"))
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("is right") == 2


def test_what_does_not_fit_is_said_with_figures() -> None:
    values = np.ones((1000, 4), "float32")
    with ct.workspace(memory_cap="2k", **OWN) as on:
        x = on.array(values)
        with pytest.raises(ct.MemoryCapError, match=r"whole|3.9 KiB.*cap is 2 KiB"):
            nearest(x, values[:250])
    with ct.workspace(memory_cap="1k", **OWN) as on:
        x = on.array(values)
        with pytest.raises(ct.MemoryCapError, match=r"backwards: one row of .* in 3 slots .*1 KiB"):
            backwards(x)
        assert np.array_equal(x, values)
    refused = pytest.raises(ct.MemoryCapError, match="shares the host's memory")
    with ct.workspace(devices="cpu", memory_cap="2k") as on, refused:
        on.array(values)
    with pytest.raises(ValueError, match="zero_copy=False"):
        ct.workspace(devices="cpu", chunks=3)
