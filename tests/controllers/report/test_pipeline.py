# SPDX-License-Identifier: MIT
"""The pipeline of chunks as it is explained, drawn, and reported."""
from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from controllers import Computation, Stencil
from controllers.placement.chunk_model import DISK, disk_nbytes
from controllers.plan import ChunkPlan, Location, Plan, SkewedPlan
from controllers.plan.chunks.images import Images
from controllers.plan.chunks.pipeline import Pipeline
from controllers.report.pipeline import PASSES, PipelineLog, PipelineReport
from hitmap import Layout, Shape

CROSS = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
START = np.random.default_rng(0).random((60, 40), dtype=np.float32)
INTERNAL: dict[str, Any] = {"devices": "cpu", "zero_copy": False}
QUEUES = {"compute": {"launch", "copy"}, "copy-in": {"upload"}, "copy-out": {"download"}}


class Took(NamedTuple):
    """When a command was under way, in nanoseconds."""

    start: int
    end: int


class Gpu:
    """What is seen of the executor of a device."""

    device = SimpleNamespace(name="GPU")


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_the_timeline_has_a_row_for_copy_in_one_for_kernels_one_for_copy_out(
    boundary: str, tmp_path: Path
) -> None:
    with Computation(
        CROSS, START, chunks=4, halo_width=3, boundary=boundary, trace=True, **INTERNAL
    ) as run:
        run.run(15)
        run.save_trace(tmp_path / "trace.json")
        plan = run.plan
    data = json.loads((tmp_path / "trace.json").read_text())
    names = {e["tid"]: e["args"]["name"].split(": ")[-1] for e in data["traceEvents"]
             if e["name"] == "thread_name"}  # fmt: skip
    slices = [event for event in data["traceEvents"] if event["ph"] == "X"]
    rows = defaultdict(set)
    for event in slices:
        rows[names[event["tid"]]].add(event["name"])
    on_host = {"host": {"pack"}} if boundary == "periodic" else {}    # for both ends of the ring
    assert rows == {**{f"{lane} queue": verbs for lane, verbs in QUEUES.items()}, **on_host}
    found = {(e["args"]["step"], e["args"]["operation"]): e
             for e in slices if e["args"]["step"] >= 0}  # fmt: skip
    every = {o.number: o for o in plan.operations}
    assert [*sorted(found)] == [
        (step, number) for step in range(5) for number, o in every.items()
        if o.phase == step % plan.n_phases
    ]  # fmt: skip
    for (step, number), event in found.items():
        for edge in every[number].after:
            if "host" in (every[number].lane, every[edge.number].lane):
                continue    # by unlike clocks
            before = found.get((step - edge.steps_back, edge.number))
            assert before is None or before["ts"] + before["dur"] <= event["ts"] + 1e-3


def test_the_copy_in_of_the_next_chunk_waits_for_no_kernel_of_this_one() -> None:
    """Nor do kernels wait for the copy-out of the chunk before: rows of the timeline overlap."""
    layout = Layout.bands(Shape.of_extent((60, 40)), 5)
    plan = SkewedPlan(CROSS, layout, (False, False), [Location(shares_host=False)] * 5,
                      n_launches=3, n_slots=4)  # fmt: skip
    every = {o.number: o for o in plan.operations}
    moved = ("upload", "download")
    before: dict[int, set[int]] = {}        # of the same pass
    for number, o in every.items():
        before[number] = {number}.union(
            *(before[e.number] for e in o.after if not e.steps_back)
        )
    rows = {number: o for number, o in every.items() if o.verb in (*moved, "launch")}
    uploads = [number for number, o in rows.items() if o.verb == "upload"]
    launches = {place: [n for n, o in rows.items() if o.verb == "launch" and o.place == place]
                for place in range(5)}  # fmt: skip
    downloads = {o.place: n for n, o in rows.items() if o.verb == "download"}
    for chunk in (1, 2, 3):
        assert not before[uploads[chunk + 1]] & {*launches[chunk]}
        assert not before[launches[chunk + 1][-1]] & {downloads[chunk]}
        assert before[downloads[chunk]] >= {launches[chunk][-1]}


def test_what_is_reported_of_the_last_passes() -> None:
    with Computation(CROSS, START, chunks=4, halo_width=3, **INTERNAL) as run:
        assert run.report().pipeline is None
        run.run(50)
        run.run(2)      # less than a pass says nothing
        report = run.report()
        found = report.pipeline
    assert found is not None and found.passes == PASSES
    assert (found.steps, found.chunks, found.in_files) == (3, 4, False)
    busy = (found.up_s, found.kernels_s, found.down_s)
    assert min(busy) > 0 and found.seconds >= max(busy)
    ends_s = (found.up_s + found.down_s) / found.passes / 4
    assert found.ideal_s == pytest.approx(max(busy) + ends_s)
    assert report.as_dict()["pipeline"] == found.as_dict()
    assert "chunks: a pass of 3 steps takes" in report.table() and "achieved" in report.table()


def test_lanes_of_a_pass_by_hand() -> None:
    layout = Layout.bands(Shape.of_extent((60, 40)), 4)
    plan = ChunkPlan(CROSS, layout, (False, False), [Location(shares_host=False)] * 4, n_launches=2)
    log = PipelineLog()
    log.begin(SimpleNamespace(plan=plan, executors=dict.fromkeys(range(4), Gpu())))  # type: ignore
    assert log.report() is None
    assert [*log.steps(0, 9)] == [6, 7, 8, 9] and [*log.steps(3, 4)] == [3, 4]
    took = {"transfer": 10, "compute": 7, "retrieve": 5}
    now = dict.fromkeys(took, 0)
    for step in (3, 4):
        for operation in plan.operations:
            if operation.phase == step % plan.n_phases:
                start = now[operation.lane]
                now[operation.lane] = end = start + took[operation.lane]
                log.add(step, operation, Took(start, end))
    found = log.report()
    assert found is not None and (found.passes, found.chunks, found.device) == (2, 4, "GPU")
    assert [round(1e9 * one) for one in (found.up_s, found.kernels_s, found.down_s)] == [
        now[lane] for lane in took
    ]
    longest = max(now.values())
    assert found.seconds == pytest.approx(1e-9 * longest)
    ends = (now["transfer"] + now["retrieve"]) / 2 / 4
    assert found.ideal_s == pytest.approx(1e-9 * (longest + ends))
    assert found.bound == ("the link" if now["transfer"] > now["compute"] else "kernels")


def test_an_upload_of_several_runs_begins_when_its_lane_is_free() -> None:
    """Its event is that of the last run of memory alone."""
    layout = Layout.bands(Shape.of_extent((60, 40)), 3)
    plan = ChunkPlan(CROSS, layout, (False, False), [Location(shares_host=False)] * 3, n_launches=2)
    log = PipelineLog()
    log.begin(SimpleNamespace(plan=plan, executors=dict.fromkeys(range(3), Gpu())))  # type: ignore
    log.steps(0, 0)
    first, middle, _ = (o for o in plan.operations if o.verb == "upload" and not o.phase)
    assert sum(len(one.cells) for one in middle.reads) > 1
    log.add(0, first, Took(100, 200))
    log.add(0, middle, Took(290, 300))
    found = log.report()
    assert found is not None and found.up_s == pytest.approx(200e-9)


def test_the_slowest_device_of_all_ranks_is_told() -> None:
    slow, fast = (PipelineReport("gpu", 2, 8, 5, s, 1.0, 2.0, 1.0, 2.2) for s in (2.5, 2.4))
    assert PipelineReport.of_ranks([None, fast, slow]) is slow
    assert PipelineReport.of_ranks([None]) is None
    files = PipelineReport("gpu", 1, 8, 5, 2.5, 2.0, 1.0, 1.0, 2.2, in_files=True)
    assert files.bound == "the link, with files under it"


@pytest.mark.parametrize(("up", "down", "kernels", "disk", "bound", "kind"), [
    (2.0, 1.0, 1.0, 0.0, "the link", "copy"), (1.0, 2.0, 1.9, 0.0, "the link", "neither"),
    (1.0, 1.0, 2.0, 0.0, "kernels", "compute"), (1.0, 1.0, 2.0, 3.0, "the disk", "copy"),
])  # fmt: skip
def test_what_bounds_a_pipeline(
    up: float, down: float, kernels: float, disk: float, bound: str, kind: str
) -> None:
    found = Pipeline(up, down, kernels, disk)
    assert (found.bound, found.kind) == (bound, kind)
    assert found.ideal_s(4, 3) == 3 * max(up, down, kernels, disk) + (up + down) / 4


def test_bytes_of_the_disk_are_those_beyond_what_images_may_take() -> None:
    layout = Layout.bands(Shape.of_extent((60, 40)), 1)
    plan = Plan(CROSS, layout, (False, False), [Location(shares_host=False)])
    nbytes = 60 * 40 * 4
    assert disk_nbytes(plan, Images(), doubled=False) == 0
    assert disk_nbytes(plan, Images(nbytes // 4, "/tmp"), doubled=False) == 2 * nbytes * 3 / 4
    assert disk_nbytes(plan, Images(nbytes // 2, "/tmp"), doubled=True) == 2 * nbytes * 3 / 4
    assert disk_nbytes(plan, Images(nbytes, "/tmp"), doubled=False) == 0


def test_explained_is_what_bounds_a_pass_and_what_it_takes_at_best(tmp_path: Path) -> None:
    options: dict[str, Any] = {"chunks": 4, "halo_width": 3, **INTERNAL}
    with Computation(CROSS, START, **options) as run:
        text, plan = run.explain(), run.plan
        assert isinstance(plan, ChunkPlan) and plan.pipeline is not None
        assert "estimated per pass: 3.84 us up and 3.84 us down the link" in text
        assert f"so that {plan.pipeline.bound} should be the bound; ideal: " in text
        assert "1 image on the host; 9.4 KiB up and 9.4 KiB down" in text
        run.use_halo_width(1)
        after = run.plan
        assert isinstance(after, ChunkPlan) and after.pipeline is not None
        assert 3 * after.pipeline.kernels_s == pytest.approx(plan.pipeline.kernels_s)
    options |= {"host_memory_cap": START.nbytes // 2, "scratch": tmp_path}
    with Computation(CROSS, START, **options) as run:
        text, plan = run.explain(), run.plan
        assert isinstance(plan, ChunkPlan) and plan.pipeline is not None
        assert plan.pipeline.disk_s == START.nbytes / DISK
        assert "of the disk, so that the disk should be the bound" in text
