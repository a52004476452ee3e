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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from controllers.device.driver import Driver
from controllers.device.verdict import MARK, TrialOutcome, TriedDevice, Verdict, plain_device
from controllers.process.private_folder import exposure

GRACE_S = 2.0       # for a killed process to end; its driver may keep it from ending at all
_TRIAL = "controllers.device.trial"
_LAST_LINES = 6     # of what it said before it died


def try_driver(driver: Driver, limit_s: float) -> Verdict:
    """Try a driver in a child process, for at most `limit_s` seconds."""
    start = time.monotonic()
    prefix = "controllers-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        with empty_kernel_cache() as kernel_cache:
            try:
                code = run_child(_TRIAL, [driver.library], kernel_cache, Path(folder), limit_s)
            except OSError as error:
                return Verdict(driver, "untried", detail=f"no process can be started: {error}")
        tried, empty = _heard(text_of(Path(folder, "out")))
        last = last_lines(Path(folder, "err"))
    outcome: TrialOutcome = "good"
    detail = "; ".join(f"{t.device.name}: {t.problem}" for t in tried if t.problem)
    what = f"a small kernel on {tried[-1].device.name}" if tried else "loading it"
    if code is None:
        outcome, detail = "hung", f"{what} takes more than {limit_s:g} s"
    elif code != 0:
        outcome, detail = "aborted", f"{what} ends the process ({ending(code)}) {last}".strip()
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

    Elsewhere, if other users may write there.  None where none can be made; PoCL then offers no
    device, as it will in a run.
    """
    usual = kernel_cache_folder()
    try:
        usual.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = tempfile.mkdtemp(prefix="trial-", dir=None if exposure(usual) else usual)
    except OSError:
        yield None
        return
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_child(
    module: str, arguments: Sequence[str], kernel_cache: str | None, folder: Path, limit_s: float
) -> int | None:
    """The exit code of a module of ours in a process of its own; None if it had to be ended.

    What it says is in the files `out` and `err` of `folder`.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONSAFEPATH": "1",
        "TMPDIR": str(folder),      # what it leaves there when it dies goes with the folder
    }
    if kernel_cache is not None:
        environment["POCL_CACHE_DIR"] = kernel_cache
    command = [sys.executable, "-m", module, *arguments]
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
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


def _heard(text: str) -> tuple[list[TriedDevice], str]:
    """What a trial said: the devices, the last one perhaps unfinished, and why there is none."""
    tried: list[TriedDevice] = []
    empty = ""
    for line in text.splitlines():
        if not line.startswith(MARK):
            continue
        fact = json.loads(line.removeprefix(MARK))
        if "device" in fact:
            device = plain_device(fact["device"])
            tried.append(TriedDevice(device, fact["address"], 0.0, "no answer"))
        elif "problem" in fact:
            last = tried.pop()
            tried.append(TriedDevice(last.device, last.address, fact["seconds"], fact["problem"]))
        else:
            empty = fact["empty"]
    return tried, empty


def text_of(file: Path) -> str:
    """What a child has said."""
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def last_lines(file: Path) -> str:
    """The last of what a child has said, in one line."""
    return " | ".join(filter(None, text_of(file).splitlines()[-_LAST_LINES:]))


def ending(code: int) -> str:
    """How a process ended that ended badly."""
    return f"code {code}" if code > 0 else signal.Signals(-code).name
