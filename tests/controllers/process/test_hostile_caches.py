# SPDX-License-Identifier: MIT
"""Caches that are locked, damaged, planted or in the wrong hands neither stop nor change a run."""
from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from controllers.device import reference_device
from controllers.device.child import (
    empty_kernel_cache,
    kernel_cache_folder,
    run_child,
    try_driver,
)
from controllers.device.driver import Driver, installed_drivers
from controllers.device.probe import _kept, probe
from controllers.doctor import kernel_cache
from controllers.doctor.kernel_cache import damaged
from controllers.kernel.build_cache import BuildCache
from controllers.kernel.winners import Winners
from controllers.process.entry_cache import EntryCache
from controllers.process.private_folder import exposure

KERNEL = "__kernel void k(__global int *x) { x[get_global_id(0)] = 7; }"
# PyOpenCL's file is made by PyOpenCL, then treated in each way; its module is loaded anew each time
INVOKERS = """
import glob, os, pickle, sqlite3, sys
from pathlib import Path
import numpy as np, pyopencl as cl
from controllers.device import choose, find_devices
from controllers.kernel.build import build

home, source = Path(sys.argv[1]), sys.argv[2]
(device,) = choose(["cpu:0"], find_devices())
context = cl.Context([device.handle])
queue = cl.CommandQueue(context)

def at(case):
    (home / case).mkdir()
    os.environ["XDG_CACHE_HOME"] = str(home / case)
    sys.modules.pop("pyopencl.invoker", None)
    return home / case

def launch(program):
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
    kernel = cl.Kernel(program, "k")
    kernel.set_args(buffer)
    cl.enqueue_nd_range_kernel(queue, kernel, (1,), None)
    result = np.zeros(1, np.int32)
    cl.enqueue_copy(queue, result, buffer)
    assert result[0] == 7

def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

class Trap:
    def __reduce__(self):
        return os.system, (f"touch {home}/executed",)

made = at("made")
launch(cl.Program(context, source).build(cache_dir=False))
(pattern,) = [path.relative_to(made) for path in made.rglob("*.sqlite")]
assert "invoker" in pattern.name
content = (made / pattern).read_bytes()
for case in ("locked", "damaged", "in the way", "trapped", "empty"):
    folder = at(case)
    file = folder / pattern
    if case == "in the way":
        file.parent.parent.mkdir(parents=True, exist_ok=True)
        (folder / pattern.parts[0]).write_text("not a folder")
    elif case != "empty":
        file.parent.mkdir(parents=True)
        file.write_bytes(content[:500] if case == "damaged" else content)
    if case == "trapped":
        with sqlite3.connect(file) as base:
            base.execute("UPDATE dict SET key_value = ?", (pickle.dumps(Trap()),))
        base.close()
    if case == "locked":
        lock = sqlite3.connect(file, isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
    before = files(folder)
    launch(build(context, "k", source))
    assert files(folder) == before, case
    assert not (home / "executed").exists(), case
    print(case)
"""


def test_the_cache_of_invokers_is_not_used_whatever_is_in_it(tmp_path: Path) -> None:
    job = subprocess.run(
        [sys.executable, "-c", INVOKERS, str(tmp_path), KERNEL], capture_output=True, text=True,
        timeout=100, check=False,
    )  # fmt: skip
    assert job.returncode == 0, job.stderr
    assert job.stdout.split("\n")[-2] == "empty"


@pytest.mark.whole
def test_a_driver_is_not_blamed_for_a_cache_that_it_does_not_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POCL_CACHE_DIR", str(kernel_cache_folder()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PYOPENCL_BUILD_OPTIONS", "-no-such-option")
    (tmp_path / "pytools").write_text("not a folder")
    assert try_driver(_pocl(), 60).outcome == "good"


def _pocl() -> Driver:
    found = [driver for driver in installed_drivers() if "pocl" in driver.library]
    if not found:
        pytest.skip("no PoCL of PyOpenCL's")
    return found[0]


@pytest.fixture
def entries(tmp_path: Path) -> EntryCache:
    """One entry, "a"."""
    cache = EntryCache(tmp_path / "cache", ".json", 1000)
    cache.store(["a"], b"kept")
    assert cache.load(["a"]) == b"kept"
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    return cache


def test_a_folder_that_others_may_write_is_left_out(entries: EntryCache) -> None:
    for mode in (0o770, 0o702, 0o1777):
        entries.folder.chmod(mode)
        assert entries.load(["a"]) is None and "other users may write" in exposure(entries.folder)
        entries.store(["b"], b"new")
    entries.folder.chmod(0o755)
    assert entries.load(["a"]) == b"kept" and entries.load(["b"]) is None
    entries.folder.parent.chmod(0o1777)     # such as /tmp
    assert entries.load(["a"]) == b"kept" and exposure(entries.folder) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="files of other users are made by root")
def test_what_belongs_to_others_is_left_out(entries: EntryCache) -> None:
    path = entries.path(["a"])
    os.chown(path, 1234, 1234)
    assert entries.load(["a"]) is None
    os.chown(path, 0, 0)
    link = entries.folder.parent / "link"
    link.symlink_to(entries.folder)
    linked = EntryCache(link, ".json", 1000)
    assert linked.load(["a"]) == b"kept", "a link of this user's own"
    os.chown(link, 1234, 1234, follow_symlinks=False)
    assert linked.load(["a"]) is None
    os.chown(entries.folder, 1234, 1234)
    assert entries.load(["a"]) is None and "another user" in exposure(entries.folder)


def test_an_entry_that_is_no_file_or_too_large_is_a_miss_and_replaced(entries: EntryCache) -> None:
    path = entries.path(["a"])
    content = path.read_bytes()

    def fifo() -> None:
        os.mkfifo(path)

    def link() -> None:
        (path.parent / "elsewhere").write_bytes(content)
        path.symlink_to(path.parent / "elsewhere")

    def huge() -> None:
        path.write_bytes(content)
        os.truncate(path, 1 << 40)

    for make in (fifo, link, huge):
        path.unlink()
        make()
        assert entries.load(["a"]) is None, make.__name__
        entries.store(["a"], b"new")
        assert entries.load(["a"]) == b"new" and path.is_file() and not path.is_symlink()


def test_a_binary_in_a_shared_folder_is_not_loaded(tmp_path: Path) -> None:
    class Platform:
        name = version = "made up"

    class Device:
        name = version = driver_version = "made up"
        platform = Platform()

    cache = BuildCache(tmp_path / "shared")
    cache.store(Device(), KERNEL, [], b"binary")
    assert cache.load(Device(), KERNEL, []) == b"binary"
    cache.folder.chmod(0o777)
    assert cache.load(Device(), KERNEL, []) is None


HOSTILE = [
    b"", b"7", b"[]", b"[[]]", b'{"seconds": 1}', b"[" * 100_000, b"9" * 5000, b"\xff\xfe",
    b'{"configuration": 5, "seconds": 1}', b'{"configuration": {"strategy": []}, "seconds": 1}',
    b'{"configuration": {"strategy": "cell"}, "seconds": 1' + b"0" * 400 + b"}",
    b'[1, "[]"]', b'[1e999, "{}"]', b'[1, "{\\"driver\\": 3, \\"tried\\": [[]]}"]', b'["", {}]',
]  # fmt: skip


@pytest.mark.parametrize("content", HOSTILE, ids=lambda content: repr(content[:40]))
def test_an_entry_that_means_nothing_is_a_miss(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EntryCache, "load", lambda cache, parts: content)
    assert Winners(reference_device(), tmp_path).load(["a"]) is None
    assert _kept(Driver("libnone.so")) is None


CRASH = """
import faulthandler, sys
import controllers
assert not faulthandler.is_enabled(), "importing changes nothing"
stencil = controllers.Stencil.of("mine", [(-1, 1)], [1, 0, 1], 2)
options = {"devices": "cpu", "steps_per_launch": 1}
controllers.Computation(stencil.program("float32"), 9, **options).close()
"""


@pytest.mark.whole
def test_a_crash_says_what_was_done_and_with_which_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path))

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", CRASH]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert run().returncode == 0
    for library in tmp_path.rglob("*.so"):
        os.truncate(library, library.stat().st_size // 2)
    job = run()
    assert job.returncode < 0
    assert "launched for the first time on" in job.stderr and str(tmp_path) in job.stderr
    assert "python -m controllers doctor" in job.stderr


BUILDS = """
import pyopencl as cl
from controllers.device import choose, find_devices
from controllers.kernel.build import build, compiled

(device,) = choose(["cpu:0"], find_devices())
source = "__kernel void k(__global int *x) { x[get_global_id(0)] = 8; }"
print(compiled(build(cl.Context([device.handle]), "k", source), "k").num_args)
"""


@pytest.mark.whole
def test_an_entry_of_pocl_that_another_process_has_only_begun_is_not_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path))

    def run() -> None:
        command = [sys.executable, "-c", BUILDS]
        job = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert (job.returncode, job.stdout) == (0, "1\n"), job.stderr

    run()
    (bitcode,) = tmp_path.rglob("program.bc")
    os.truncate(bitcode, 0)     # PoCL takes it for a program without kernels
    run()
    assert len([*tmp_path.rglob("program.bc")]) == 2, "the entry is passed by"


@pytest.mark.whole
def test_the_doctor_finds_what_is_damaged_by_its_head(tmp_path: Path) -> None:
    bitcode, library = tmp_path / "AB" / "program.bc", tmp_path / "AB" / "k" / "0-0-0" / "k.so"
    library.parent.mkdir(parents=True)
    origin = importlib.util.find_spec("_ctypes").origin     # type: ignore[union-attr]
    contents = {bitcode: b"BC\xc0\xde and more", library: Path(origin or "").read_bytes()}

    def whole() -> None:
        for path, content in contents.items():
            if path.exists():
                path.unlink()
            path.write_bytes(content)

    whole()
    (tmp_path / "tempfile_a1.so").touch()   # being made: no run loads it under this name
    assert damaged(tmp_path, []) == [] and damaged(tmp_path / "none", []) == []
    faults = {b"": "it is empty", bytes(100): "it is no "}
    for path in contents:
        for content, words in {**faults, contents[library][:5000]: "it is "}.items():
            path.write_bytes(content)
            (told,) = damaged(tmp_path, [])
            assert told.startswith(f"{path}: {words}")
        path.unlink()
        os.mkfifo(path)
        assert damaged(tmp_path, []) == [f"{path}: it is no regular file"]
        whole()


@pytest.mark.whole
def test_the_doctor_finds_what_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = [verdict for verdict in probe() if verdict.driver == _pocl()]
    with empty_kernel_cache() as trial:     # an entry of its own, whatever there is
        assert trial is not None
        with tempfile.TemporaryDirectory() as folder:
            arguments = [_pocl().library]
            run_child("controllers.device.trial", arguments, trial, Path(folder), 60)
        shutil.copytree(trial, tmp_path / "kcache")
    (bitcode,) = tmp_path.rglob("program.bc")
    os.utime(bitcode, (0, 0))
    assert damaged(tmp_path, verdicts, 60) == []
    content = bitcode.read_bytes()
    half, quarter = len(content) // 2, len(content) // 4
    changed = bytes(byte ^ 0x5A for byte in content[quarter:half])
    bitcode.write_bytes(content[:quarter] + changed + content[half:])
    with monkeypatch.context() as patched:
        patched.setattr(kernel_cache, "SETTLED_S", 1e9)
        assert damaged(tmp_path, verdicts, 60) == [], "it may not be whole yet"
    os.utime(bitcode, (0, 0))
    (told,) = damaged(tmp_path, verdicts, 60)
    assert told.startswith(f"{bitcode}: ")
    bitcode.unlink()
    monkeypatch.setattr(kernel_cache, "_files", lambda _: [bitcode, tmp_path / "removed.so"])
    assert damaged(tmp_path, verdicts, 60) == []
