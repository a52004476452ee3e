# SPDX-License-Identifier: MIT
"""Timelines in Chrome's trace format, for Perfetto (ui.perfetto.dev) and chrome://tracing.

A rank is a "process", each of its rows a "thread"; an arrow leads from the start of a send to
the end of its receive.  The format: https://docs.google.com/document/d/
1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ("Trace Event Format").
"""
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from controllers.trace import KEPT_STEPS, Row, Span, Timeline
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
            events += _arrow(span, tid, zero)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "steps": timeline.n_steps,
            "kept_steps": f"the first {KEPT_STEPS} and the last {KEPT_STEPS}",
            "clock_error_us": [error / 1000 for error in timeline.error_ns],
        },
    }


_Threads = dict[Row, list[tuple[Span, int]]]


def _threads(spans: tuple[Span, ...]) -> _Threads:
    """The spans of each row with the number of their thread, unique in its process.

    Messages that are under way at once, of successive steps, are drawn in threads of their own.
    """
    rows: dict[Row, list[Span]] = {}
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        rows.setdefault(span.row, []).append(span)
    found: _Threads = {}
    used: dict[int, int] = {}
    for row in sorted(rows, key=lambda row: (row.rank, row.is_message, row.name)):
        ends: list[int] = []
        first = used.get(row.rank, 0)
        found[row] = []
        for span in rows[row]:
            line = next((n for n, end in enumerate(ends) if end <= span.start), len(ends))
            if not row.is_message:
                line = 0    # a queue is in order; if it were not, that should be seen
            ends[line : line + 1] = [span.end]
            found[row].append((span, first + line))
        used[row.rank] = first + len(ends)
    return found


def _names(threads: _Threads) -> Iterator[_Event]:
    """The names of processes and threads, and their order."""
    for rank in sorted({row.rank for row in threads}):
        yield _metadata("process_name", rank, 0, {"name": f"rank {rank}"})
        yield _metadata("process_sort_index", rank, 0, {"sort_index": rank})
    for row, lines in threads.items():
        for tid in sorted({tid for _, tid in lines}):
            yield _metadata("thread_name", row.rank, tid, {"name": row.name})
            yield _metadata("thread_sort_index", row.rank, tid, {"sort_index": tid})


def _metadata(name: str, pid: int, tid: int, args: _Event) -> _Event:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def _slice(span: Span, tid: int, zero: int) -> _Event:
    return {
        "ph": "X",
        "name": span.verb,
        "cat": "message" if span.row.is_message else span.verb,
        "pid": span.row.rank,
        "tid": tid,
        "ts": (span.start - zero) / 1000,
        "dur": (span.end - span.start) / 1000,
        "args": {
            "step": span.step,
            "place": span.place,
            "operation": span.number,
            "what": span.what,
        },
    }


def _arrow(span: Span, tid: int, zero: int) -> Iterator[_Event]:
    """One end of the arrow of a message."""
    if not span.row.is_message:
        return
    sends = span.verb == "send"
    moment = span.start if sends else max(span.start, span.end - 1)     # inside its slice
    event: _Event = {
        "ph": "s" if sends else "f",
        "name": "message",
        "cat": "message",
        "id": f"{span.transfer}.{span.step}",
        "pid": span.row.rank,
        "tid": tid,
        "ts": (moment - zero) / 1000,
    }
    yield event if sends else {**event, "bp": "e"}
