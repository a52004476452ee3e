# SPDX-License-Identifier: MIT
"""A trial in a child process: started, given its time, ended, heard."""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controllers.device.driver import Driver
from controllers.device.verdict import MARK, Outcome, Tried, Verdict, plain_device

GRACE_S = 2.0       # for a killed process to end; its driver may keep it from ending at all
_LAST_LINES = 6     # of what it said before it died


def try_driver(driver: Driver, limit_s: float) -> Verdict:
    """Try a driver in a child process, for at most `limit_s` seconds."""
    start = time.monotonic()
    prefix = "controllers-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        said, told = Path(folder, "out"), Path(folder, "err")
        with empty_kernel_cache() as kernel_cache:
            try:
                code = _run(driver, kernel_cache, said, told, limit_s)
            except OSError as error:
                return Verdict(driver, "untried", detail=f"no process can be started: {error}")
        tried, empty = _heard(_text(said))
        last = " | ".join(filter(None, _text(told).splitlines()[-_LAST_LINES:]))
    outcome: Outcome = "good"
    detail = "; ".join(f"{t.device.name}: {t.problem}" for t in tried if t.problem)
    what = f"a small kernel on {tried[-1].device.name}" if tried else "loading it"
    if code is None:
        outcome, detail = "hung", f"{what} takes more than {limit_s:g} s"
    elif code != 0:
        outcome, detail = "aborted", f"{what} ends the process ({_ending(code)}) {last}".strip()
    elif not tried:
        outcome, detail = "empty", empty
    elif all(t.problem for t in tried):
        outcome = "failed"
    return Verdict(driver, outcome, tuple(tried), detail[:1000], time.monotonic() - start)


def kernel_cache_folder() -> Path:
    """Where PoCL keeps compiled kernels."""
    if wanted := os.environ.get("POCL_CACHE_DIR"):
        return Path(wanted)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "pocl", "kcache")


@contextmanager
def empty_kernel_cache() -> Iterator[str | None]:
    """A new folder within PoCL's cache: what is there already needs no linker any more.

    None where none can be made; PoCL then offers no device, as it will in a run.
    """
    try:
        kernel_cache_folder().mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="trial-", dir=kernel_cache_folder())
    except OSError:
        yield None
        return
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(
    driver: Driver, kernel_cache: str | None, said: Path, told: Path, limit_s: float
) -> int | None:
    """The exit code of a trial; None if it had to be ended."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONSAFEPATH": "1",
        "TMPDIR": str(said.parent),     # what it leaves there when it dies goes with the folder
    }
    if kernel_cache is not None:
        environment["POCL_CACHE_DIR"] = kernel_cache
    command = [sys.executable, "-m", "controllers.device.trial", driver.library]
    with open(said, "wb") as out, open(told, "wb") as err:
        child = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True,
        )  # fmt: skip
    try:
        return child.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child.poll() is None:
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a child and what it has started; do not wait for ever for one that cannot die."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        pass


def _heard(text: str) -> tuple[list[Tried], str]:
    """What a trial said: the devices, the last one perhaps unfinished, and why there is none."""
    tried: list[Tried] = []
    empty = ""
    for line in text.splitlines():
        if not line.startswith(MARK):
            continue
        fact = json.loads(line.removeprefix(MARK))
        if "device" in fact:
            tried.append(Tried(plain_device(fact["device"]), fact["address"], 0.0, "no answer"))
        elif "problem" in fact:
            last = tried.pop()
            tried.append(Tried(last.device, last.address, fact["seconds"], fact["problem"]))
        else:
            empty = fact["empty"]
    return tried, empty


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _ending(code: int) -> str:
    return f"code {code}" if code > 0 else signal.Signals(-code).name
