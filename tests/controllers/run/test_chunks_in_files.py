# SPDX-License-Identifier: MIT
"""Fields that do not fit the host: images in files give the bits of those in memory."""
from __future__ import annotations

import os
import random
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from divided import two_cores
from random_boundaries import same
from random_programs import random_program
from sample import sample

from controllers import Computation, MemoryCapError, Stencil, reference_run
from controllers.plan import ChunkPlan

CROSS = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
START = np.random.default_rng(0).random((60, 40), dtype=np.float32)
IMAGE = START.nbytes        # rows of 40 cells are whole vectors; a quarter is 2400 bytes
INTERNAL: dict[str, Any] = {"devices": "cpu", "zero_copy": False}
PROGRAMS = range(60)


def expected(n_steps: int, is_ring: bool = False) -> Any:
    return reference_run(CROSS, {"u": START}, n_steps, (is_ring,) * 2)["u"]


@pytest.mark.parametrize("number", sample(PROGRAMS, 20))
def test_random_programs_from_files(number: int, tmp_path: Path) -> None:
    case, rng = random_program(number), random.Random(number)
    nbytes = sum(array.nbytes for array in case.arrays.values())
    boundary = tuple("periodic" if ring else "fixed" for ring in case.periodic)
    with Computation(
        case.program, case.extent, init=case.arrays, boundary=boundary,
        chunks=rng.randint(2, 6), slots=rng.randint(1, 3), halo_width=rng.randint(1, 4),
        host_memory_cap=rng.randint(1, 2 * nbytes), scratch=tmp_path, **INTERNAL,
    ) as run:  # fmt: skip
        run.run(case.n_steps)
        for field, right in case.expected.items():
            assert same(np.asarray(run[field].gather()), right)


def test_initial_values_are_on_their_way_to_the_disk_before_the_first_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        "controllers.memory.scratch_file.begin_writing", lambda *run: asked.append(run[2])
    )
    with Computation(
        CROSS, START.shape, chunks=4, host_memory_cap=1, scratch=tmp_path, **INTERNAL
    ) as run:  # fmt: skip
        run.scatter(START)
        end = time.monotonic() + 60     # a limit that only a failure reaches
        while sum(asked) < IMAGE and time.monotonic() < end:
            time.sleep(0.001)
        assert sum(asked) == IMAGE and len(asked) == 4


def test_what_is_saved_is_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def preadv(_: int, rooms: list[memoryview], __: int) -> int:
        read.append(len(rooms[0]))
        return read[-1]

    with Computation(
        CROSS, START, chunks=6, host_memory_cap=1, scratch=tmp_path, **INTERNAL
    ) as run:  # fmt: skip
        monkeypatch.setattr("controllers.memory.scratch_file.os.preadv", preadv)
        run.save(tmp_path / "end.npy")
        end = time.monotonic() + 60     # a limit that only a failure reaches
        while sum(read) < IMAGE and time.monotonic() < end:
            time.sleep(0.001)
        assert sum(read) == IMAGE and len(read) == 6
    assert np.array_equal(np.load(tmp_path / "end.npy"), START)


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
@pytest.mark.parametrize("cap", sample([1, IMAGE // 2, IMAGE, 2 * IMAGE], 2))
def test_what_is_beyond_the_budget_lies_in_files(
    cap: int, boundary: Any, tmp_path: Path
) -> None:
    with Computation(
        CROSS, START, chunks=4, halo_width=3, host_memory_cap=cap, scratch=tmp_path,
        boundary=boundary, **INTERNAL,
    ) as run:  # fmt: skip
        for n_steps in (7, 1, 4):
            run.run(n_steps)
        assert np.array_equal(run.gather(), expected(12, boundary == "periodic"))
        n_images = run.plan.n_images("u")
        in_files = n_images * IMAGE - min(cap // 2400 * 2400, n_images * IMAGE)
        report, text = run.report(), run.explain()
        (device,) = report.devices
        assert device.nbytes["image_files"] == in_files
        assert device.nbytes["host_images"] == n_images * IMAGE - in_files
        assert sum(place.memory.image_files for place in report.places) == in_files
        assert ("file  " in text) == bool(in_files)
        if cap == IMAGE and n_images == 2:
            assert "field u: image 0 in memory, image 1 in files" in text
    assert not [*tmp_path.iterdir()]


def test_a_part_of_an_image_is_told(tmp_path: Path) -> None:
    with Computation(
        CROSS, START, chunks=4, host_memory_cap=3 * IMAGE // 4, scratch=tmp_path, **INTERNAL
    ) as run:  # fmt: skip
        assert f"in files in {tmp_path}" in run.explain()
        assert "image 0 in files but for 75%" in run.explain()


@pytest.mark.whole
def test_from_a_mapped_array_to_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "start.npy", START)
    mapped = np.load(tmp_path / "start.npy", mmap_mode="r")
    for given in (mapped, mapped[:], tmp_path / "start.npy"):
        with Computation(
            CROSS, START.shape, dtype="float32", init={"u": given}, chunks=4, host_memory_cap=1,
            **INTERNAL,
        ) as run:  # fmt: skip
            run.run(5)
            run.u[3] = 2
            run.u[3] = expected(5)[3]
            run.run(2)
            run.save(tmp_path / "end.npy")
        assert np.array_equal(np.load(tmp_path / "end.npy"), expected(7))


@pytest.mark.whole
@two_cores
@pytest.mark.parametrize("number", range(6))
def test_a_field_of_three_times_the_budget_goes_from_file_to_file(
    number: int, tmp_path: Path
) -> None:
    """... through caps, devices and sizes at random; no array of it is made in between.

    Of .npy, or of stores.
    """
    rng = random.Random(number)
    extent = rng.randint(120, 200), rng.randint(30, 70)
    start = np.random.default_rng(number).random(extent, dtype=np.float32)
    kind = ["npy", "zarr"][number % 2]
    begin, end = (tmp_path / f"{name}.{kind}" for name in ("begin", "end"))
    if kind == "npy":
        np.save(begin, start)
    zarr = pytest.importorskip("zarr") if kind == "zarr" else None
    if zarr is not None:
        names = {"chunks": (50, 30), "dimension_names": ("y", "x")}
        zarr.open_group(begin, mode="w", zarr_format=3).create_array("u", data=start, **names)
    with Computation(
        CROSS, extent, dtype="float32", init={"u": begin},
        devices=rng.choice(["cpu", "cpu/1,1"]), zero_copy=False, scratch=tmp_path,
        memory_cap=start.nbytes // 2, host_memory_cap=start.nbytes // 3,
        chunks=rng.choice([None, "auto"]), halo_width=rng.choice([None, 5, "auto"]),
    ) as run:  # fmt: skip
        assert isinstance(run.plan, ChunkPlan)
        assert sum(one.in_file for one in run.plan.memories if one.kind == "image")
        kept = sum(one.nbytes for one in run.plan.memories
                   if one.kind == "image" and not one.in_file)
        assert kept <= start.nbytes // 3
        run.run(11)
        run.save(end)
    right = reference_run(CROSS, {"u": start}, 11, (False, False))["u"]
    found: Any = [np.load(end)] if zarr is None else zarr.open_group(end, mode="r")["u"]
    assert np.array_equal(found[-1], right)


@pytest.mark.whole
def test_folders_that_hold_no_files(tmp_path: Path) -> None:
    options: dict[str, Any] = {"memory_cap": 9000, "host_memory_cap": 1, **INTERNAL}
    with pytest.raises(MemoryCapError, match="--scratch .*none: No such file or directory"):
        Computation(CROSS, START, scratch=tmp_path / "none", **options)
    (tmp_path / "file").touch()
    with pytest.raises(MemoryCapError, match="is no folder in which files can be made"):
        Computation(CROSS, START, scratch=tmp_path / "file", **options)
    with pytest.raises(TypeError, match="scratch"):
        Computation(CROSS, START, scratch=3, **options)


@pytest.mark.whole
def test_a_disk_that_is_too_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full = SimpleNamespace(f_bavail=2, f_frsize=4096)
    options = {"memory_cap": 9000, "host_memory_cap": 1, "scratch": tmp_path, **INTERNAL}
    with monkeypatch.context() as patched:
        patched.setattr(os, "statvfs", lambda folder: full)
        with pytest.raises(MemoryCapError, match='images of "u" need .* where 8 KiB are free'):
            Computation(CROSS, START, **options)
    with Computation(CROSS, START, **options) as run:
        assert isinstance(run.plan, ChunkPlan)


def test_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="a memory cap is a number of bytes"):
        Computation(CROSS, START, chunks=3, host_memory_cap="many", **INTERNAL)
    monkeypatch.setenv("CONTROLLERS_HOST_MEMORY_CAP", "nothing")
    with pytest.raises(ValueError, match="CONTROLLERS_HOST_MEMORY_CAP.*got 'nothing'"):
        Computation(CROSS, START, chunks=3, **INTERNAL)
    monkeypatch.setenv("CONTROLLERS_HOST_MEMORY_CAP", "1k")
    with Computation(CROSS, START, chunks=3, **INTERNAL) as run:
        assert all(one.in_file for one in run.plan.memories if one.kind == "image")
