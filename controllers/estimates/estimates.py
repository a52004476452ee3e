# SPDX-License-Identifier: MIT
"""The estimator: how long tasks will take on devices, by all that was ever measured of them.

One entry of a cache folder for each task, variant, device and driver.  What a process has measured
it keeps where it says so (`keep`), added to what others have kept meanwhile.  An entry that cannot
be read is a miss.  Entries change where work is done and in which order, never a result.

The environment variable CONTROLLERS_ESTIMATES moves them: a folder, or "off".
"""
from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np

from controllers.estimates.device_rates import DeviceRates, learnt
from controllers.estimates.estimate import UNKNOWN, Estimate, spread
from controllers.estimates.growth import Growth, growth_of
from controllers.estimates.history import History, Times, history_from
from controllers.estimates.median_fit import trimmed_mean
from controllers.estimates.task_key import Case, TaskKey, Work
from controllers.process.entry_cache import UNREADABLE, EntryCache, user_folder
from controllers.process.file_lock import locked

VARIABLE = "CONTROLLERS_ESTIMATES"
ENOUGH = 3          # executions of a size, of which one may have been disturbed
_MAX_BYTES = 8 << 20
_LOCK, _MOST_WAIT_S = "writing", 1.0
_VERSION = "times 1"
_logger = logging.getLogger(__name__)


class Estimates:
    """What is known of tasks, in a folder, and what this process adds; without one, that alone.

    For one thread.  Ranks of a job may know different things: what all have to decide alike is
    decided by one of them, and told to the others.  now: seconds since the epoch.
    """

    def __init__(self, folder: Path | None, now: Callable[[], float] = time.time) -> None:
        self._entries = None if folder is None else EntryCache(folder, ".times", _MAX_BYTES)
        self._now = now
        self._known: dict[TaskKey, History] = {}
        self._growths: dict[TaskKey, Growth | None] = {}
        self._rates: dict[tuple[str, str], DeviceRates | None] = {}
        self._added: dict[TaskKey, list[tuple[Case, float, float, Work | None]]] = {}

    @classmethod
    def of_user(cls) -> Estimates:
        """Those of this user, or of the folder that the environment names."""
        return cls(estimates_folder())

    def add(self, key: TaskKey, case: Case, seconds: float, work: Work | None = None) -> None:
        """An execution has taken so long; ValueError for what no execution can be.

        That of a part of a device counts for all of its parts, too.
        """
        when = self._now()
        for one in dict.fromkeys((key, key.of_all)):
            self.history(one).add(case, seconds, when, work)
            self._growths.pop(one, None)
            self._added.setdefault(one, []).append((case, seconds, when, work))
        self._rates.pop((key.device, key.driver), None)

    def keep(self) -> None:
        """Write what was added since the last time, beside what other processes have written."""
        if self._entries is not None and self._added:
            try:
                self._entries.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                with locked(self._entries.folder, _LOCK, _MOST_WAIT_S):
                    for key, executions in self._added.items():
                        self._write(key, executions)
            except OSError as error:    # a full or read-only disk costs time, not the run
                _logger.warning("no times are kept in %s: %s", self._entries.folder, error)
        self._added.clear()

    def _write(
        self, key: TaskKey, executions: list[tuple[Case, float, float, Work | None]]
    ) -> None:
        assert self._entries is not None
        history = self._loaded(key)
        for case, seconds, when, work in executions:
            history.add(case, seconds, when, work)
        self._entries.store(_parts(key), history.as_json(key))
        self._known[key] = history
        self._growths.pop(key, None)

    def history(self, key: TaskKey) -> History:
        """The times of a task on a device, as loaded first or kept last, and as added since."""
        if key not in self._known:
            self._known[key] = self._loaded(key)
        return self._known[key]

    def knows(self, key: TaskKey) -> bool:
        """Whether the task was ever executed there, or on a device of this name."""
        return any(self.history(one).cases for one in (key, key.of_all))

    def n_kept(self, key: TaskKey) -> int:
        """How many executions of any size are known."""
        return sum(len(times.executions) for times in self.history(key).cases.values())

    def growth(self, key: TaskKey) -> Growth | None:
        """How its time grows; None where nothing is known."""
        if key not in self._growths:
            self._growths[key] = growth_of(self.history(key))
        return self._growths[key]

    def estimate(
        self, key: TaskKey, case: Case, work: Work | None = None, guess: DeviceRates | None = None
    ) -> Estimate | None:
        """Of an execution: by those of its size, else of others, else by what the program says.

        work: what it moves and computes.  guess: rates of a device that has executed nothing.  None
        where nothing is known.  Of a part of which little is known, as of all parts, by as much
        longer or shorter as this one has taken so far.
        """
        history = self.history(key)
        times = history.cases.get(case)
        if times is not None and len(times.executions) >= ENOUGH:
            return _of_times(times)
        if key.which and len(history.cases) < ENOUGH:
            of_all = self.estimate(key.of_all, case, work, guess)
            return None if of_all is None else of_all.times(self._slowness(key))
        growth = self.growth(key)
        if growth is not None and case.size > 0:
            return growth.estimate(case)
        if times is not None:
            return _of_times(times)
        rates = guess if work is None else self.rates(key.device, key.driver) or guess
        return None if work is None or rates is None else rates.estimate(work, case.units)

    def _slowness(self, key: TaskKey) -> float:
        """How many times as long as all parts do a part takes; 1 where it has done too little."""
        found = []
        for case, times in self.history(key).cases.items():
            usual = self.estimate(key.of_all, case)
            assert usual is not None, "what a part has done counts for all"
            found += [seconds / usual.seconds for seconds in times.seconds]
        return median(found) if len(found) >= ENOUGH else 1.0

    def rates(self, device: str, driver: str) -> DeviceRates | None:
        """Of all tasks that the device has executed; None where these say too little."""
        if (device, driver) not in self._rates:
            on_it = [
                history for key, history in self.all()
                if (key.device, key.driver, key.which) == (device, driver, "")
            ]  # fmt: skip
            self._rates[device, driver] = learnt(on_it)
        return self._rates[device, driver]

    def all(self) -> Iterator[tuple[TaskKey, History]]:
        """All histories that are kept or were added, by the words of their keys."""
        found = dict(self._kept())
        found.update(self._known)
        for key in sorted(found, key=lambda one: one.words):
            if found[key].cases:
                yield key, found[key]

    def forget(self, key: TaskKey) -> None:
        """Nothing is known of a task on a device; OSError where its file cannot be removed."""
        for known in (self._known, self._growths, self._added):
            known.pop(key, None)
        self._rates.pop((key.device, key.driver), None)
        if self._entries is not None:
            self._entries.remove(_parts(key))

    def _loaded(self, key: TaskKey) -> History:
        content = None if self._entries is None else self._entries.load(_parts(key))
        if content is not None:
            try:
                whose, history = history_from(content, self._now())
            except UNREADABLE:
                return History()
            if whose == key:
                return history
        return History()

    def _kept(self) -> Iterator[tuple[TaskKey, History]]:
        for content in () if self._entries is None else self._entries.all():
            try:
                yield history_from(content, self._now())
            except UNREADABLE:
                continue


def _of_times(times: Times) -> Estimate:
    """By the median of executions of one size."""
    seconds = np.array(times.seconds)
    usual = float(np.median(seconds))
    width = spread(trimmed_mean(np.abs(seconds / usual - 1)), len(seconds), 1)
    return Estimate.about(usual, max(width, UNKNOWN / len(seconds) ** 2), "history", len(seconds))


def _parts(key: TaskKey) -> tuple[str, ...]:
    return (_VERSION, *key.words)


def estimates_folder() -> Path | None:
    """Where times are kept; None where that is off."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted.lower() == "off":
        return None
    return Path(wanted).expanduser() if wanted else user_folder("estimates")
