# SPDX-License-Identifier: MIT
"""Timelines in Chrome's trace format, for Perfetto (ui.perfetto.dev) and chrome://tracing.

A rank is a "process", each of its rows a "thread"; an arrow leads from the start of a send to
the end of its receive.  The format: https://docs.google.com/document/d/
1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ("Trace Event Format").  Perfetto wants whole numbers
as ids of arrows, keeps process and thread 0 for itself, and finds threads by their number alone.
"""
from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from controllers.report.trace import KEPT_STEPS, Row, Span, Timeline
from hitmap.comm import Communicator
from hitmap.files import replacing

_Event = dict[str, object]


def save_timeline(
    timeline: Timeline | None, path: str | os.PathLike[str], comm: Communicator
) -> None:
    """Write the timeline that rank 0 holds; OSError on all ranks, and no file, if that fails."""
    problem = None
    try:
        if timeline is not None:
            with replacing(Path(path)) as temporary:
                temporary.write_text(json.dumps(as_dict(timeline)), encoding="utf-8")
    except OSError as error:
        problem = f"{path}: {error.strerror or error}"
    if (problem := comm.bcast(problem)) is not None:
        raise OSError(problem)


def as_dict(timeline: Timeline) -> dict[str, object]:
    """Plain data; times count from the first event, in microseconds."""
    zero = min((span.start for span in timeline.spans), default=0)
    threads = _threads(timeline.spans)
    events = [*_names(threads)]
    for lines in threads.values():
        for span, tid in lines:
            events.append(_slice(span, tid, zero))
    arrows = [*_arrows(threads, zero)]
    n_sent = sum(span.verb == "send" for span in timeline.spans)
    return {
        "traceEvents": events + arrows,     # a slice comes before what is bound to it
        "displayTimeUnit": "ns",
        "otherData": {
            "steps": timeline.n_steps,
            "kept_steps": f"the first {KEPT_STEPS} and the last {KEPT_STEPS}",
            "clock_error_us": [error / 1000 for error in timeline.error_ns],
            "messages_without_arrow": n_sent - len(arrows) // 2,
        },
    }


_Threads = dict[Row, list[tuple[Span, int]]]


def _threads(spans: tuple[Span, ...]) -> _Threads:
    """The spans of each row with the number of their thread, unique in the file and no process's.

    Messages that are under way at once, of successive steps, are drawn in threads of their own.
    """
    rows: dict[Row, list[Span]] = {}
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        rows.setdefault(span.row, []).append(span)
    found: _Threads = {}
    first = max((_pid(row) for row in rows), default=0) + 1
    for row in sorted(rows, key=lambda row: (row.rank, row.is_message, row.name)):
        ends: list[int] = []
        found[row] = []
        for span in rows[row]:
            line = next((n for n, end in enumerate(ends) if end <= span.start), len(ends))
            if not row.is_message:
                line = 0    # a queue is in order; if it were not, that should be seen
            ends[line : line + 1] = [_end(span)]
            found[row].append((span, first + line))
        first += len(ends)
    return found


def _pid(row: Row) -> int:
    return row.rank + 1


def _names(threads: _Threads) -> Iterator[_Event]:
    """The names of processes and threads, and their order."""
    for rank, pid in sorted({(row.rank, _pid(row)) for row in threads}):
        yield _metadata("process_name", pid, pid, {"name": f"rank {rank}"})
        yield _metadata("process_sort_index", pid, pid, {"sort_index": rank})
    for row, lines in threads.items():
        for tid in sorted({tid for _, tid in lines}):
            yield _metadata("thread_name", _pid(row), tid, {"name": row.name})
            yield _metadata("thread_sort_index", _pid(row), tid, {"sort_index": tid})


def _metadata(name: str, pid: int, tid: int, args: _Event) -> _Event:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def _slice(span: Span, tid: int, zero: int) -> _Event:
    return {
        "ph": "X",
        "name": span.verb,
        "cat": "message" if span.row.is_message else span.verb,
        "pid": _pid(span.row),
        "tid": tid,
        "ts": (span.start - zero) / 1000,
        "dur": (_end(span) - span.start) / 1000,
        "args": {
            "step": span.step,
            "rank": span.row.rank,
            "place": span.place,
            "operation": span.number,
            "what": span.what,
        },
    }


def _end(span: Span) -> int:
    """Of its slice: no arrow can be bound to one that takes no time."""
    return max(span.end, span.start + 1) if span.row.is_message else span.end


def _arrows(threads: _Threads, zero: int) -> Iterator[_Event]:
    """Both ends of each arrow; none where the clocks are too far apart to tell its direction."""
    ends: dict[str, dict[tuple[int | None, int], list[tuple[Span, int]]]] = {
        "send": defaultdict(list), "receive": defaultdict(list)
    }  # fmt: skip
    for row, lines in threads.items():
        for span, tid in lines if row.is_message else ():
            ends[span.verb][span.bundle, span.step].append((span, tid))
    number = 0
    for key, sends in ends["send"].items():
        # after a redistribution there may be another bundle of that number in the same step
        receives = _by_time(ends["receive"][key])
        for (send, source), (receive, target) in zip(_by_time(sends), receives):
            # inside the slice, though a viewer may round its start and its duration down
            arrival = max(receive.start, receive.end - 3)
            if arrival >= send.start:
                number += 1
                yield _arrow_end("s", number, send, source, send.start - zero)
                arrow = _arrow_end("f", number, receive, target, arrival - zero)
                yield {**arrow, "bp": "e"}


def _by_time(spans: list[tuple[Span, int]]) -> list[tuple[Span, int]]:
    return sorted(spans, key=lambda entry: entry[0].start)


def _arrow_end(phase: str, number: int, span: Span, tid: int, moment_ns: int) -> _Event:
    return {
        "ph": phase,
        "name": "message",
        "cat": "message",
        "id": number,
        "pid": _pid(span.row),
        "tid": tid,
        "ts": moment_ns / 1000,
    }
