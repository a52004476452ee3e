# SPDX-License-Identifier: MIT
"""What all tests share: how many run, in how many processes, and what the header says of it."""
from __future__ import annotations

import gc
import os
import resource
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from sample import longest_first

from controllers.device import find_devices

HERE = Path(__file__).parent
MOST_WORKERS = 8
# options for numbers of random cases: by default, with --whole, and what is counted
CASES = {
    "stencil-cases": (1, 60, "how many random stencils to try"),
    "pattern-cases": (300, 4000, "how many random pattern files to read"),
    "kills": (1, 35, "how many jobs to end by a rank's death"),
    "kept-kills": (3, 200, "how many kept runs to kill again and again"),
    "bit-flips": (10, 200, "how many checkpoints to damage by a bit"),
    "truncations": (5, 100, "how many checkpoints to cut short"),
    "output-cases": (4, 60, "how many random outputs to write"),
    "output-kills": (3, 30, "how many runs with output to kill again and again"),
    "strategy-cases": (1, 40, "how many random stages per strategy"),
}
LEFT: pytest.StashKey[int] = pytest.StashKey()      # how many tests run only with --whole


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much is tried."""
    parser.addoption(
        "--whole", action="store_true",
        help="run everything: tests marked `whole`, more bad inputs in jobs of their own, more "
        "random cases",
    )  # fmt: skip
    for name, (default, whole, what) in CASES.items():
        text = f"{what}: {default}, or {whole} with --whole"
        parser.addoption(f"--{name}", type=int, metavar="N", help=text)
    parser.addoption(
        "--strategy-device", default="", help="where they are computed, as in `controllers run`"
    )


def pytest_configure(config: pytest.Config) -> None:
    """The default run is the same every time; with --whole, Hypothesis draws anew.

    Core files of processes with an OpenCL driver are huge; what users keep decides nothing.
    """
    config.addinivalue_line("markers", "whole: runs with `pytest --whole` only")
    is_whole = config.getoption("whole")
    settings.register_profile("ours", derandomize=not is_whole, deadline=None)
    settings.load_profile("ours")
    for name, numbers in CASES.items():
        option = name.replace("-", "_")
        if config.getoption(option) is None:
            setattr(config.option, option, numbers[is_whole])
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    config.option.loadscopereorder = False      # the order below is kept
    for name in ("ARBITER", "ESTIMATES", "LINKS", "TUNING"):
        os.environ[f"CONTROLLERS_{name}"] = "off"
    if sys.dont_write_bytecode and "PYTHONPYCACHEPREFIX" not in os.environ:
        _keep_bytecode(config)


def _keep_bytecode(config: pytest.Config) -> None:
    """What tests start would compile all modules each time: it keeps them until tests end."""
    folder = tempfile.mkdtemp()
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["PYTHONPYCACHEPREFIX"] = folder
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish() -> None:
    """What all tests share stays to the end: the collector need not look at it again and again."""
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --whole, tests with its mark are left out; files that take long come first."""
    chosen = [item for item in items if not item.get_closest_marker("whole")]
    if len(chosen) < len(items) and not config.getoption("whole"):
        left = [item for item in items if item.get_closest_marker("whole")]
        config.hook.pytest_deselected(items=left)
        config.stash[LEFT] = len(left)
        items[:] = chosen
    counts = Counter(item.path for item in items)
    names = {Path(os.path.relpath(path, HERE)).as_posix(): path for path in counts}
    first = longest_first({name: counts[path] for name, path in names.items()})
    ranks = {names[name]: rank for rank, name in enumerate(first)}
    items.sort(key=lambda item: ranks[item.path])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than cores, as some tests wait; none for one file or core, or a debugger."""
    files = {argument.partition("::")[0] for argument in config.args}
    n_cores = len(os.sched_getaffinity(0))
    alone = n_cores == 1 or (len(files) == 1 and Path(files.pop()).is_file())
    return 0 if alone else min(n_cores + 1, MOST_WORKERS)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells how many tests it has left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = session.config.stash.get(LEFT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """All workers leave out the same ones."""
    node.config.stash[LEFT] = getattr(node, "workeroutput", {}).get("left", 0)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """What `--whole` would add."""
    if left := config.stash.get(LEFT, 0):
        terminalreporter.line(f"{left} more tests run with --whole")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """The MPI library and the devices."""
    devices = ", ".join(f"{d.name} ({d.platform} {d.version})" for d in find_devices()[:-1])
    return [f"MPI: {_mpi_version()}", f"devices: {devices or 'none but the reference'}"]


def _mpi_version() -> str:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return "no library found"
    return MPI.Get_library_version().strip("\0").splitlines()[0].strip()
