# SPDX-License-Identifier: MIT
"""Parts of .npy files: any order and dtype is read, and a file is written wholly or not at all."""
from __future__ import annotations

import errno
import os
import random
import resource
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import random_domain, random_layout
from mpi_jobs import helpers_path, run_ranks

from hitmap import Layout, NpyWriter, SerialCommunicator, Shape, open_npy, read_part

SERIAL = SerialCommunicator()
DOMAIN = Shape((-2, 3, 0), (5, 7, 5))
WHOLE = np.random.default_rng(0).random(DOMAIN.extent)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_part_is_read_from_files_in_c_and_fortran_order(order: str) -> None:
    np.save("a.npy", np.asarray(WHOLE, order=order))  # type: ignore[call-overload]
    box = Shape((2, 0, 1), (6, 3, 2))
    part = read_part("a.npy", box)
    assert np.array_equal(part, WHOLE[2:6, 0:3, 1:2])
    assert part.flags.c_contiguous and part.flags.writeable and type(part) is np.ndarray
    assert read_part("a.npy", Shape((1, 1, 1), (1, 4, 4))).shape == (0, 3, 3)


def test_values_are_converted_where_all_of_them_fit() -> None:
    np.save("a.npy", np.array([1, 200, 3], ">i2"))
    assert read_part("a.npy", Shape.of_extent((3,)), "f4").tolist() == [1, 200, 3]
    assert read_part("a.npy", Shape.of_extent((3,)), "u1").dtype == np.uint8
    with pytest.raises(ValueError, match=r"cell \(1\) holds 200, but int8 takes .* to 127"):
        read_part("a.npy", Shape.of_extent((2,)), "i1")
    np.save("b.npy", np.array([1e300, np.inf, np.nan]))
    with pytest.raises(ValueError, match=r"cell \(0\) holds 1e\+300, but float32 takes"):
        read_part("b.npy", Shape.of_extent((1,)), "f4")
    assert np.isinf(read_part("b.npy", Shape((1,), (2,)), "f4")).all()
    with pytest.raises(ValueError, match="cell .2. holds nan, but int64 takes whole"):
        read_part("b.npy", Shape((2,), (3,)), "i8")
    np.save("c.npy", np.array([1j]))
    with pytest.raises(ValueError, match="[Cc]annot cast"):
        read_part("c.npy", Shape.of_extent((1,)), "f8")


def test_boxes_outside_and_files_without_an_array_are_refused() -> None:
    np.save("a.npy", np.zeros((3, 4)))
    for box in (Shape((0, 0), (4, 4)), Shape((-1, 0), (2, 2)), Shape((0,), (2,))):
        with pytest.raises(ValueError, match="is not in an array of"):
            read_part("a.npy", box)
    np.save("objects.npy", np.array([{}]))
    np.save("number.npy", np.array(3.0))
    np.savez("several.npz", a=np.zeros(3))
    Path("text.npy").write_text("no array", encoding="utf-8")
    Path("short.npy").write_bytes(Path("a.npy").read_bytes()[:-8])
    for name, message in (
        ("objects.npy", "pickled Python objects, .* save numbers"),
        ("number.npy", "a single number"),
        ("several.npz", "begins with b'PK.*several arrays"),
        ("text.npy", "begins with b'no arr'"),
        ("short.npy", r"cut off .*\(3, 4\) cells of float64, 96 bytes, and 88 follow"),
    ):
        with pytest.raises(ValueError, match=message):
            open_npy(name)
    with pytest.raises(FileNotFoundError):
        open_npy("gone.npy")


@pytest.mark.parametrize("version", [2, 3])
def test_a_header_that_claims_gigabytes_is_not_read(version: int) -> None:
    with open("large.npy", "wb") as file:
        file.write(b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<I", 2**31 - 1))
        file.truncate(2**31 + 100)      # no block of it is on the disk
    limit = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, limit[1]))
    try:
        with pytest.raises(ValueError, match="claims 2147483647 bytes, the limit|is not known"):
            open_npy("large.npy")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.sampled_from(["(2, 3)", "(0, 3)", "(-1,)", "9", "[" * 3000, "-" * 9000 + "1", "{}"]),
    st.sampled_from(["'<f4'", "'|O'", "[('a', '<i2')]", "'<q9'", "None", "__import__('os')"]),
    st.lists(st.tuples(st.integers(0, 199), st.integers(0, 255)), max_size=4),
)
def test_a_damaged_file_gives_an_array_or_one_kind_of_error(
    tmp_path_factory: pytest.TempPathFactory,
    extent: str,
    dtype: str,
    changes: list[tuple[int, int]],
) -> None:
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {extent}}}\n".encode()
    content = bytearray(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + bytes(24))
    for position, byte in changes:
        content[position % len(content)] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.npy"
    path.write_bytes(content)
    try:
        assert open_npy(path).nbytes <= len(content)
    except ValueError as error:
        assert 10 < len(str(error)) < 300 and "\n" not in str(error)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(["f4", ">i2", "u1", [("a", "f8"), ("b", "i2")]]))
def test_what_is_written_by_parts_is_what_numpy_would_write(seed: int, dtype: object) -> None:
    rng = random.Random(seed)
    domain = random_domain(rng)
    layout = random_layout(rng, domain, rng.randint(1, 7))
    whole = np.arange(domain.n_cells).astype("f8").astype(np.dtype(dtype)).reshape(domain.extent)
    with NpyWriter("a.npy", domain, dtype, SERIAL) as file:
        for box in layout.owned:
            file.write(box, whole[box.slices(domain.lower)])
    np.save("b.npy", whole)
    assert Path("a.npy").read_bytes() == Path("b.npy").read_bytes()
    assert sorted(os.listdir()) == ["a.npy", "b.npy"]


def test_a_file_without_all_cells_keeps_the_old_one() -> None:
    Path("a.npy").write_text("old", encoding="utf-8")
    missing = pytest.raises(OSError, match="a.npy was not written: 0 cells were given of 140")
    with missing, NpyWriter("a.npy", DOMAIN, "f8", SERIAL):
        pass
    with pytest.raises(ZeroDivisionError), NpyWriter("a.npy", DOMAIN, "f8", SERIAL):
        raise ZeroDivisionError
    assert os.listdir() == ["a.npy"]
    assert Path("a.npy").read_text(encoding="utf-8") == "old"


def test_a_full_disk_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    no_space = pytest.raises(OSError, match="was not written: No space left")
    with no_space, NpyWriter("a.npy", DOMAIN, "f8", SERIAL) as file:
        file.write(DOMAIN, WHOLE)
    assert os.listdir() == []


def test_calls_that_write_a_part_of_their_bytes_are_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: pwrite(file, data[:13], at))
    with NpyWriter("a.npy", DOMAIN, "f8", SERIAL) as file:
        file.write(DOMAIN, WHOLE)
    assert np.array_equal(np.load("a.npy"), WHOLE)


def test_what_does_not_fit_is_refused() -> None:
    for cells, match in (
        (WHOLE[1:], "must have the extent"),
        (WHOLE.astype("f4"), "must have dtype float64"),
    ):
        with pytest.raises(ValueError, match=match), NpyWriter("a.npy", DOMAIN, "f8", SERIAL) as f:
            f.write(DOMAIN, cells)
    outside = DOMAIN.shift((1, 0, 0))
    with pytest.raises(ValueError, match="not in"), NpyWriter("a.npy", DOMAIN, "f8", SERIAL) as f:
        f.write(outside, WHOLE)
    with pytest.raises(ValueError, match="plain numbers"):
        NpyWriter("a.npy", DOMAIN, object, SERIAL)
    no_folder = pytest.raises(OSError, match="no/a.npy was not written: there is no folder")
    with no_folder, NpyWriter("no/a.npy", DOMAIN, "f8", SERIAL):
        pass
    assert os.listdir() == []


JOB = """
import errno, os, random
import numpy as np
from hitmap import Layout, NpyWriter, Shape, default_communicator, read_part
from layout_strategies import random_domain, random_layout
comm = default_communicator()
for seed in range(40):
    rng = random.Random(seed)
    domain = random_domain(rng)
    layout = random_layout(rng, domain, rng.randint(1, 7))
    ranks = [rng.randrange(comm.size) for _ in layout.owned]
    whole = np.arange(domain.n_cells, dtype="f8").reshape(domain.extent)
    with NpyWriter("a.npy", domain, "f8", comm) as file:
        for place, box in enumerate(layout.owned):
            if ranks[place] == comm.rank:
                file.write(box, whole[box.slices(domain.lower)])
    assert np.array_equal(np.load("a.npy"), whole), seed
    comm.Barrier()

domain = Shape.of_extent((6, 4))
mine = Layout.bands(domain, comm.size).owned[comm.rank]
def write(path, box=mine, dtype="f8"):
    with NpyWriter(path, domain, dtype, comm) as file:
        file.write(box, np.zeros(mine.extent))
def full(*arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
pwrite, replace = os.pwrite, os.replace
def fail(*, pwrite_on=(), replace_on=()):
    os.pwrite = full if comm.rank in pwrite_on else pwrite
    os.replace = full if comm.rank in replace_on else replace
for call in (
    lambda: [fail(pwrite_on=[1]), write("b.npy")],
    lambda: [fail(pwrite_on=[0, 1]), write("b.npy")],
    lambda: [fail(replace_on=[0]), write("b.npy")],
    lambda: [fail(), write("b.npy", mine if comm.rank == 0 else mine.shift((1, 0)))],
    lambda: write("b.npy" if comm.rank == 0 else "c.npy"),
    lambda: write("no/b.npy"),
):
    try:
        call()
    except (OSError, ValueError) as error:
        texts = comm.allgather(f"{type(error).__name__}: {error}")
        if comm.rank == 0:
            assert os.listdir() == ["a.npy"]
            print(" | ".join(dict.fromkeys(texts)))
    comm.Barrier()
"""


def test_two_ranks_write_one_file_or_none() -> None:
    job = run_ranks(2, JOB, env=helpers_path())
    assert job.returncode == 0, job.stderr
    lines = job.stdout.splitlines()
    assert lines[0] == "OSError: b.npy was not written: rank 1: No space left on device"
    assert lines[1].count("No space left") == 2
    assert lines[2] == "OSError: b.npy was not written: rank 0: No space left on device"
    on_rank_0, on_rank_1 = lines[3].split(" | ")
    assert on_rank_0.startswith("OSError: b.npy was not written: rank 1: ValueError")
    assert on_rank_1.startswith("ValueError: b.npy: box [4:7, 0:4] is not in")
    assert "path, domain and dtype must be the same on all ranks" in lines[4]
    assert lines[5].startswith("OSError: no/b.npy was not written: rank 0: there is no folder")
    assert len(lines) == 6


def test_a_layout_of_columns_is_read_by_parts() -> None:
    np.save("a.npy", WHOLE)
    for box in Layout.blocks(Shape.of_extent(WHOLE.shape), 4, axes=(2,)).owned:
        assert np.array_equal(read_part("a.npy", box), WHOLE[box.slices((0, 0, 0))])
