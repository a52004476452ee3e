# SPDX-License-Identifier: MIT
"""The cache of compiled kernels: safe for many processes, and never trusted blindly."""
from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pyopencl as cl
import pytest

from controllers.device import choose, find_devices
from controllers.kernel import build as kernel
from controllers.kernel.build import build
from controllers.kernel.build_cache import VARIABLE, BuildCache, cache_for
from controllers.process import entry_cache

SOURCE = "__kernel void k(__global int *x) { x[get_global_id(0)] = 7; }"
OWN_SOURCE = f"// of process {os.getpid()}\n{SOURCE}".replace("7", str(os.getpid()))


@dataclass(frozen=True)
class FakePlatform:
    name: str = "AMD Accelerated Parallel Processing"
    version: str = "OpenCL 2.1"


@dataclass(frozen=True)
class FakeDevice:
    name: str = "gfx90a"
    version: str = "OpenCL 2.0"
    driver_version: str = "3590.0"
    platform: FakePlatform = FakePlatform()


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache(tmp_path / "new" / "kernels")


@pytest.fixture
def context() -> cl.Context:
    """PoCL's, standing in for a driver without a cache: no other process builds `OWN_SOURCE`."""
    (device,) = choose(["cpu:0"], find_devices())
    return cl.Context([device.handle])


def test_what_was_stored_is_loaded_and_nothing_else(cache: BuildCache) -> None:
    device = FakeDevice()
    assert cache.load(device, SOURCE, ["-a"]) is None
    cache.store(device, SOURCE, ["-a"], b"binary")
    assert cache.load(device, SOURCE, ["-a"]) == b"binary"
    others = [
        (device, SOURCE + " ", ["-a"]), (device, SOURCE, []), (device, SOURCE, ["-a", ""]),
        (replace(device, name="gfx90b"), SOURCE, ["-a"]),
        (replace(device, driver_version="3591.0"), SOURCE, ["-a"]),
        (replace(device, platform=FakePlatform(version="x")), SOURCE, ["-a"]),
    ]  # fmt: skip
    assert all(cache.load(*other) is None for other in others)
    assert [path.suffix for path in cache.folder.iterdir()] == [".clbin"], "no file is left over"


def test_a_damaged_entry_is_a_miss(cache: BuildCache) -> None:
    cache.store(FakeDevice(), SOURCE, [], bytes(range(200)))
    (path,) = cache.folder.iterdir()
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        path.write_bytes(whole[:position])
        assert cache.load(FakeDevice(), SOURCE, []) is None, f"cut at {position}"
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert cache.load(FakeDevice(), SOURCE, []) is None, f"changed at {position}"
    path.write_bytes(whole)
    assert cache.load(FakeDevice(), SOURCE, []) is not None


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = BuildCache(tmp_path / "file" / "kernels")
    cache.store(FakeDevice(), SOURCE, [], b"binary")
    assert cache.load(FakeDevice(), SOURCE, []) is None


def test_the_oldest_entries_go_first(cache: BuildCache) -> None:
    small = BuildCache(cache.folder, max_bytes=1000)
    for number in range(6):
        small.store(FakeDevice(), f"{number}", [], bytes(300))
        if (path := small.path(FakeDevice(), f"{number}", [])).exists():
            os.utime(path, (number, number))
    kept = [n for n in range(6) if small.load(FakeDevice(), f"{n}", [])]
    assert kept == [4, 5] or kept == [3, 4, 5]


def test_drivers_with_a_cache_of_their_own_are_left_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(entry_cache.platformdirs, "user_cache_dir", lambda name: str(tmp_path))
    for name in ("Portable Computing Language", "NVIDIA CUDA"):
        assert cache_for(FakeDevice(platform=FakePlatform(name))) is None
    found = cache_for(FakeDevice())
    assert found is not None and found.folder == tmp_path / "kernels"
    monkeypatch.setenv(VARIABLE, "off")
    assert cache_for(FakeDevice()) is None
    monkeypatch.setenv(VARIABLE, str(tmp_path / "elsewhere"))
    found = cache_for(FakeDevice(platform=FakePlatform("NVIDIA CUDA")))
    assert found is not None and found.folder == tmp_path / "elsewhere"
    assert cache_for(FakeDevice(platform=FakePlatform("Portable Computing Language"))) is None


def test_the_second_build_comes_from_the_cache(
    context: cl.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "cache_for", lambda device: BuildCache(tmp_path / "cache"))
    build(context, "k", OWN_SOURCE)
    (entry,) = (tmp_path / "cache").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(kernel, "_compiled", None)    # compiling would fail
        assert cl.Kernel(build(context, "k", OWN_SOURCE), "k").num_args == 1
    entry.write_bytes(entry.read_bytes()[:-1])
    assert cl.Kernel(build(context, "k", OWN_SOURCE), "k").num_args == 1
    assert entry.read_bytes().startswith(b"controllers 1\n"), "mended"


BUILDS = """
import numpy as np, pyopencl as cl
from controllers.device import choose, find_devices
from controllers.kernel.build import build

def build_some(device):     # all objects of the driver are gone when it returns
    context = cl.Context([device.handle])
    queue = cl.CommandQueue(context)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
    for number in range(3):
        text = f"__kernel void k(__global int *x) {{ *x = {number} + %s; }}"
        program = build(context, "k", text)
        cl.Kernel(program, "k")(queue, (1,), None, buffer)
        result = np.zeros(1, np.int32)
        cl.enqueue_copy(queue, result, buffer)
        assert result[0] == number + %s

build_some(*choose(["cpu:0"], find_devices()))
print("done")
"""


@pytest.mark.whole
@pytest.mark.parametrize("count", [2, 8])
def test_processes_build_the_same_kernels_at_once(count: int, tmp_path: Path) -> None:
    number = os.getpid() * 10
    (tmp_path / "pocl").mkdir()
    environment = {
        **os.environ, "POCL_CACHE_DIR": str(tmp_path / "pocl"), VARIABLE: str(tmp_path / "own"),
    }  # fmt: skip
    assert_all_done([sys.executable, "-c", BUILDS % (number, number)], environment, count)
    assert not (tmp_path / "own").exists(), "PoCL crashes when asked for binaries here"


STORES = """
import sys
from pathlib import Path
from controllers.process.entry_cache import EntryCache
cache = EntryCache(Path(sys.argv[1]), ".clbin", 10 << 20)
for turn in range(100):
    for number in range(3):
        content = bytes([number]) * 100_000
        assert cache.load([str(number)]) in (None, content)
        cache.store([str(number)], content)
        assert cache.load([str(number)]) == content
print("done")
"""


@pytest.mark.whole
@pytest.mark.parametrize("count", [3, pytest.param(8, marks=pytest.mark.whole)])
def test_processes_store_the_same_entries_at_once(count: int, tmp_path: Path) -> None:
    assert_all_done([sys.executable, "-c", STORES, str(tmp_path / "own")], dict(os.environ), count)
    entries = list((tmp_path / "own").iterdir())
    assert len(entries) == 3 and {path.suffix for path in entries} == {".clbin"}


def assert_all_done(command: list[str], environment: dict[str, str], count: int) -> None:
    """`count` processes at once that each print "done"."""
    jobs = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(count)
    ]
    outcomes = [(*job.communicate(), job.returncode) for job in jobs]
    for number, (printed, errors, code) in enumerate(outcomes):
        said = f"process {number} printed {printed!r}\n{errors.decode()}"
        assert (printed, code) == (b"done\n", 0), said
