# SPDX-License-Identifier: MIT
"""Timelines of real runs: complete, in the order of the plan, aligned between ranks."""
from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import run_ranks
from sample import sample

from controllers import Computation, Plan, Stencil
from controllers.plan import Location
from controllers.report import trace, trace_file
from controllers.report.trace import KEPT_STEPS, Row, Span, Timeline
from hitmap import Layout, SerialCommunicator, Shape

HEAT = Stencil.of("heat", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
BLUR = Stencil.of("blur", [(-2, 2), (-1, 1)], [1] * 15, 15)
EXTENT = (60, 40)
N_STEPS = 6

JOB = """
import sys
from controllers import Computation
from hitmap import default_communicator
from controllers.language.weights import Stencil
blur = Stencil.of("blur", [(-2, 2), (-1, 1)], [1] * 15, 15)
with Computation(
    blur.program("float32"), (60, 40), partition="blocks", boundary="periodic", overlap="on",
    devices=sys.argv[1].split(), zero_copy=False, places_per_controller=2, trace=True,
) as computation:
    computation.run(6)
    computation.save_trace(sys.argv[2])
    waits = [wait for place in computation.report().places for wait in place.waits]
    assert any(wait.seconds > 0 for wait in waits), waits     # a rank is never just in time
"""


def slices(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in data["traceEvents"] if event["ph"] == "X"]


def check_rows(data: dict[str, Any]) -> None:
    """Every row has a name, and nothing in it overlaps: there is nothing to nest."""
    named = {(e["pid"], e["tid"]) for e in data["traceEvents"] if e["name"] == "thread_name"}
    rows = defaultdict(list)
    for event in slices(data):
        assert event["ts"] >= 0 and event["dur"] >= 0
        rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert set(rows) == named
    for spans in rows.values():
        spans.sort()
        assert all(a[1] <= b[0] + 1e-3 for a, b in zip(spans, spans[1:])), spans


def check_against_plan(data: dict[str, Any], plan: Plan, rank: int) -> None:
    """All operations of a rank are there, after all that they wait for."""
    mine = {
        (event["args"]["step"], event["args"]["operation"]): event
        for event in slices(data)
        if event["args"]["rank"] == rank
    }
    expected = {
        (step, o.number)
        for step in range(-1, N_STEPS)
        for o in (plan.opening[0] if step == -1 else plan.operations)
        if o.phase == max(0, step) % plan.n_phases
    }
    assert set(mine) == expected
    tolerance = 2 * max(data["otherData"]["clock_error_us"]) + 1
    n_edges = 0
    for (step, number), event in mine.items():
        operation = (*plan.operations, *plan.opening[0])[number]
        assert (event["name"], event["args"]["place"]) == (operation.verb, operation.place)
        for edge in operation.after:
            awaited = mine.get((step - edge.steps_back, edge.number))
            if awaited is not None:
                n_edges += 1
                assert awaited["ts"] + awaited["dur"] <= event["ts"] + tolerance, (awaited, event)
    assert n_edges > len(mine)


def check_arrows(data: dict[str, Any]) -> int:
    """What Perfetto needs in order to draw an arrow, for each of them; returns how many there are.

    Its importer reads ids of text as hexadecimal numbers, follows an arrow forward in time only,
    binds an end to the slice of the thread that is open then, and knows a thread by its number.
    """
    events = data["traceEvents"]
    threads = {(e["pid"], e["tid"]) for e in events if e["name"] != "process_name"}
    threads -= {(e["pid"], e["tid"]) for e in events if e["name"] == "process_sort_index"}
    assert all(type(n) is int and n > 0 for pair in threads for n in pair)
    assert len({tid for _, tid in threads}) == len(threads)     # over all processes
    assert not {tid for _, tid in threads} & {pid for pid, _ in threads}
    open_slices = defaultdict(list)
    for event in slices(data):
        whole = [round(1000 * event[name]) for name in ("ts", "dur")]
        assert whole[0] / 1000 == event["ts"] and whole[1] / 1000 == event["dur"]
        open_slices[event["pid"], event["tid"]].append((whole[0], sum(whole), event["name"]))
    ends: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for event in events:
        if event["ph"] not in "sf":
            continue
        assert type(event["id"]) is int and event["id"] > 0
        assert event["ph"] not in ends[event["id"]], "ids are unique"
        ends[event["id"]][event["ph"]] = event
        moment = round(1000 * event["ts"])
        inside = [name for start, end, name in open_slices[event["pid"], event["tid"]]
                  if start <= moment < end]  # fmt: skip
        assert inside == ["send" if event["ph"] == "s" else "receive"], event
    for both in ends.values():
        assert [*both] == ["s", "f"], "in this order in the file, too"
        assert both["f"]["bp"] == "e"
        assert both["s"]["ts"] <= both["f"]["ts"]
        for name in ("name", "cat"):
            assert both["s"][name] == both["f"][name]
    return len(ends)


@pytest.mark.whole
@pytest.mark.parametrize("device", sample(["cpu", "reference"], 2))
def test_the_timeline_of_two_ranks_holds_the_whole_plan_in_order(
    device: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    (tmp_path / "job.py").write_text(JOB)
    job = run_ranks(2, [str(tmp_path / "job.py"), device, str(path)])
    assert job.returncode == 0, job.stderr
    data = json.loads(path.read_text())
    layout = Layout.blocks(Shape.of_extent(EXTENT), 4)
    where = [Location(place // 2, 0, shares_host=device == "reference") for place in range(4)]
    check_rows(data)
    program = BLUR.program("float32")
    for rank in range(2):
        plan = Plan(program, layout, (True, True), where, overlap="on", only_rank=rank)
        check_against_plan(data, plan, rank)
    n_messages = sum(where[t.message.source].rank != where[t.message.target].rank
                     for t in plan.transfers)  # fmt: skip
    unlike = data["otherData"]["messages_without_arrow"]    # clocks: none, on one host, as a rule
    assert check_arrows(data) == n_messages * (1 + N_STEPS) - unlike > 0
    assert [entry.name for entry in tmp_path.iterdir() if entry.suffix == ".tmp"] == []
    verbs = {event["name"] for event in slices(data)}
    on_device = {"pack", "download", "upload", "unpack"}
    assert {"launch", "send", "receive"} <= verbs
    assert on_device <= verbs if device == "cpu" else verbs & on_device <= {"pack", "unpack"}


def test_the_result_is_the_same_with_a_trace(tmp_path: Path) -> None:
    field = np.random.default_rng(1).random(EXTENT, "float32")
    results = []
    for traced in (True, False):
        with Computation(
            HEAT.program("float32"), EXTENT, devices="reference", trace=traced,
            comm=SerialCommunicator(),
        ) as computation:  # fmt: skip
            computation.scatter(field)
            computation.run(5)
            results.append(computation.gather())
    assert np.array_equal(*results)     # type: ignore[arg-type]


def traced_steps(n_steps: list[int], tmp_path: Path) -> tuple[dict[str, Any], list[int]]:
    path = tmp_path / "trace.json"
    with Computation(
        HEAT.program("float32"), (9, 9), devices=["reference"] * 2, trace=True,
        comm=SerialCommunicator(),
    ) as computation:  # fmt: skip
        for n in n_steps:
            computation.run(n)
        computation.save_trace(path)
        assert computation._trace is not None
        assert len(computation._trace._steps) <= 2 * KEPT_STEPS + 1
    data = json.loads(path.read_text())
    check_rows(data)
    return data, sorted({event["args"]["step"] for event in slices(data)})


def test_of_a_long_run_the_first_and_the_last_steps_are_kept(tmp_path: Path) -> None:
    data, steps = traced_steps([3 * KEPT_STEPS], tmp_path)
    assert steps == [*range(-1, KEPT_STEPS), *range(2 * KEPT_STEPS, 3 * KEPT_STEPS)]
    assert data["otherData"]["steps"] == 3 * KEPT_STEPS


def test_steps_count_over_all_runs(tmp_path: Path) -> None:
    _, steps = traced_steps([1, 1, 0, 2, 0, 3], tmp_path)
    assert steps == [*range(-1, 7)]
    _, steps = traced_steps([KEPT_STEPS] * 3 + [5], tmp_path)
    assert steps == [*range(-1, KEPT_STEPS), *range(2 * KEPT_STEPS + 5, 3 * KEPT_STEPS + 5)]


def test_a_trace_goes_on_when_the_field_is_divided_anew(tmp_path: Path) -> None:
    with Computation(
        HEAT.program("float32"), (9, 9), devices=["reference"] * 2, trace=True,
        comm=SerialCommunicator(),
    ) as computation:  # fmt: skip
        computation.run(3)
        computation.redistribute(weights=[2, 1])
        computation.run(2)
        computation.save_trace(tmp_path / "trace.json")
    data = json.loads((tmp_path / "trace.json").read_text())
    assert data["otherData"]["steps"] == 5
    launched = {e["args"]["what"] for e in slices(data) if e["name"] == "launch"}
    assert any("[1:5, 1:8]" in what for what in launched)
    assert any("[1:6, 1:8]" in what for what in launched)


def test_what_was_not_recorded_cannot_be_written(tmp_path: Path) -> None:
    with Computation(
        HEAT.program("float32"), (9, 9), devices="reference", comm=SerialCommunicator()
    ) as computation, pytest.raises(ValueError, match="trace=True"):
        computation.save_trace(tmp_path / "trace.json")
    assert list(tmp_path.iterdir()) == []


def test_a_timeline_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    with Computation(
        HEAT.program("float32"), (9, 9), devices="reference", trace=True,
        comm=SerialCommunicator(),
    ) as computation:  # fmt: skip
        computation.run(1)
        with pytest.raises(OSError, match="no_such_folder"):
            computation.save_trace(tmp_path / "no_such_folder" / "trace.json")
    assert list(tmp_path.iterdir()) == []


def test_messages_under_way_at_once_get_rows_of_their_own_but_commands_of_a_queue_do_not() -> None:
    sent, queue = Row(0, "send", is_message=True), Row(0, "queue")
    spans = tuple(
        Span(row, step, "send", "", start, end, 0, 0, 0)
        for row in (sent, queue)
        for step, start, end in ((0, 0, 10), (1, 5, 15), (2, 12, 20))
    )
    events = slices(trace_file.as_dict(Timeline(3, spans, (0,))))
    tids = [event["tid"] for event in events]
    assert tids == [2, 2, 2, 3, 4, 3]   # the queue first; its overlap is to be seen


def message(rank: int, verb: str, step: int, start: int, end: int) -> Span:
    return Span(Row(rank, verb, is_message=True), step, verb, "", start, end, rank, 0, 0)


def test_an_arrow_has_two_ends_inside_of_slices_and_points_forward_in_time() -> None:
    spans = (
        message(0, "send", -1, 5, 9), message(1, "receive", -1, 0, 20),
        message(0, "send", 0, 10, 10), message(1, "receive", 0, 22, 22),    # no time has passed
        message(0, "send", 1, 40, 50), message(1, "receive", 1, 30, 35),    # the clocks differ
        message(0, "send", 2, 60, 61),                                      # the end was not kept
        # divided anew: another message with the number 0, which belongs to the same step
        message(0, "send", 0, 12, 13), message(1, "receive", 0, 23, 30),
    )  # fmt: skip
    data = trace_file.as_dict(Timeline(3, spans, (0, 0)))
    assert check_arrows(data) == 3 == 5 - data["otherData"]["messages_without_arrow"]
    moments = [event["ts"] for event in data["traceEvents"] if event["ph"] in "sf"]
    assert moments == [0.005, 0.017, 0.01, 0.022, 0.012, 0.027]


def test_a_trace_without_steps_is_empty() -> None:
    recorded = trace.Trace(SerialCommunicator()).timeline()
    assert recorded is not None
    assert trace_file.as_dict(recorded)["traceEvents"] == []
