# SPDX-License-Identifier: MIT
"""What was measured of one task on one device: the newest times of each size and number of units.

JSON, which is read with distrust: what says anything that no clock would is nothing at all.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from controllers.estimates.task_key import Case, TaskKey, Work

NEWEST = 20             # times of a case that are kept
MOST_CASES = 32         # of a history, those that were executed last
AGE_S = 90 * 86400.0    # after which a time says nothing any more
SKEW_S = 86400.0        # by which clocks of hosts differ, at most
SHORTEST_S, LONGEST_S = 1e-9, 1e8
_MOST = 1e30            # of sizes, bytes and operations


@dataclass
class Times:
    """Of one case: when it was executed, and how long it took, the newest last.

    count: how many executions there were, with those that are not kept.
    """

    work: Work = field(default_factory=Work)
    count: int = 0
    executions: list[tuple[float, float]] = field(default_factory=list)

    @property
    def seconds(self) -> list[float]:
        """How long each took."""
        return [seconds for _, seconds in self.executions]

    @property
    def newest(self) -> float:
        """When the last one was, in seconds since the epoch."""
        return self.executions[-1][0]


class History:
    """Times by case.

    >>> history = History()
    >>> history.add(Case(100), 0.5, when=10.0)
    >>> history.cases[Case(100)].seconds
    [0.5]
    """

    def __init__(self) -> None:
        self.cases: dict[Case, Times] = {}

    def add(self, case: Case, seconds: float, when: float, work: Work | None = None) -> None:
        """One execution more; ValueError for what no execution can be."""
        seconds = max(seconds, SHORTEST_S)
        _check(case, seconds, when)
        times = self.cases.setdefault(case, Times())
        times.work = times.work if work is None else work
        times.count += 1
        times.executions.append((when, seconds))
        times.executions.sort()
        del times.executions[:-NEWEST]
        while len(self.cases) > MOST_CASES:
            del self.cases[min(self.cases, key=lambda one: (self.cases[one].newest, one))]

    def as_json(self, key: TaskKey) -> bytes:
        """What `history_from` reads."""
        cases = [
            {
                "size": case.size, "units": case.units, "nbytes": times.work.nbytes,
                "operations": times.work.operations, "count": times.count,
                "executions": [[round(when), float(f"{s:.6g}")] for when, s in times.executions],
            }
            for case, times in self.cases.items()
        ]  # fmt: skip
        return json.dumps({"key": key.words, "cases": cases}, separators=(",", ":")).encode()


def history_from(content: bytes, now: float) -> tuple[TaskKey, History]:
    """Without what is too old; one of `entry_cache.UNREADABLE` where it cannot be read."""
    found = json.loads(content)
    words = found["key"]
    if len(words) not in (4, 5) or not all(isinstance(word, str) for word in words):
        raise ValueError("a history is of a task, a variant, a device, a driver, perhaps a part")
    history = History()
    for row in found["cases"]:
        _read(history, row, now)
    return TaskKey(*words), history


def _read(history: History, row: Mapping[str, object], now: float) -> None:
    units, count = row["units"], row["count"]
    if type(units) is not int or type(count) is not int or not isinstance(row["executions"], list):
        raise TypeError("units and executions are counted")
    case = Case(_number(row["size"]), units)
    work = Work(_number(row["nbytes"]), _number(row["operations"]))
    if not (0 <= work.nbytes < _MOST and 0 <= work.operations < _MOST):
        raise ValueError("work is a number of bytes and of operations")
    for when, seconds in row["executions"]:
        _check(case, _number(seconds), _number(when))
        if now - AGE_S <= when <= now + SKEW_S:
            history.add(case, seconds, when, work)
    if case in history.cases:
        history.cases[case].count = max(count, history.cases[case].count)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("neither sizes nor times are other than numbers")
    return float(value)


def _check(case: Case, seconds: float, when: float) -> None:
    usable = 0 <= case.size < _MOST and 1 <= case.units < _MOST and isfinite(when)
    if not usable or not SHORTEST_S <= seconds <= LONGEST_S:
        raise ValueError(
            f"an execution has a size from 0 on, at least 1 unit and takes {SHORTEST_S:.0e} to "
            f"{LONGEST_S:.0e} s, got size {case.size}, {case.units} units, {seconds} s; time "
            f"executions by clocks that only go forwards"
        )
