# SPDX-License-Identifier: MIT
"""From disk to disk: a field of several times the memory that its images may take on the host.

    python tools/measure_disk.py [--device cpu] [--folder DIR] [--budget 256m] [--times 3]
        [--cap 64m] [--span 1] [--passes 2] [--rounds 1] [--cold]

The field has `--times` the bytes of the budget.  It is loaded from a .npy file, runs `--passes`
passes of `--span` steps through a device of `--cap` bytes, and is saved to another file.  Beside
the time of each of the three stands what plain reads and writes with fsync of as many bytes take
on the same disk, measured before and after, the writes in the way that is fastest: asked for a
piece at a time, those of a new file with few pages in memory; images are written anew until the
first pass ends.
Files are dropped from the system's cache before they are read; what the system keeps of images
while passes run is its choice: with `--cold` they are dropped, too, before each pass and before the
field is saved, as if there were no memory for them.
"""
from __future__ import annotations

import argparse
import mmap
import os
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from controllers import Computation, Stencil
from controllers.memory.ledger import parse_cap, size
from controllers.plan import ChunkPlan
from hitmap.write_back import PIECE_NBYTES, WriteBack, begin_writing

ROW = 4096      # cells


def main() -> None:
    options = _parser().parse_args()
    n_rows = options.times * parse_cap(options.budget) // (4 * ROW)
    nbytes = n_rows * ROW * 4
    shares: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for _ in range(options.rounds):
            before = plain(Path(folder), nbytes)
            found = ours(options, Path(folder), (n_rows, ROW))
            after = plain(Path(folder), nbytes)
            for what, share in told(found, [(a + b) / 2 for a, b in zip(before, after)]).items():
                shares.setdefault(what, []).append(share)
    middle = ", ".join(f"{what} {median(every):.2f}" for what, every in shares.items())
    print(f"medians of {options.rounds} rounds: {middle}")


def ours(
    options: argparse.Namespace, folder: Path, extent: tuple[int, int]
) -> dict[str, tuple[float, int, int, bool]]:
    """Seconds, bytes read and written, and whether for the first time, of what is done."""
    start, end = folder / "start.npy", folder / "end.npy"
    made = np.lib.format.open_memmap(start, "w+", np.float32, extent)
    for row in range(0, extent[0], PIECE_NBYTES // (4 * ROW)):
        part = made[row : row + PIECE_NBYTES // (4 * ROW)]
        part[...] = np.random.default_rng(row).random(part.shape, np.float32)
    made.flush()
    del made
    drop(start)
    star = Stencil.of("star", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
    nbytes, found = extent[0] * extent[1] * 4, {}
    with Computation(
        star, extent, devices=options.device, zero_copy=False, memory_cap=options.cap,
        host_memory_cap=options.budget, scratch=folder, halo_width=options.span,
    ) as run:  # fmt: skip
        assert isinstance(run.plan, ChunkPlan)
        in_files = sum(one.nbytes for one in run.plan.memories if one.in_file)
        share = in_files / (run.plan.n_images("u") * nbytes)
        n_chunks = run.plan.layout.n_places
        print(f"{size(nbytes)} in {n_chunks} chunks, {share:.0%} of images in files")
        moved = round(nbytes * share)
        found["load"] = timed(lambda: run.load_file(start)), nbytes, moved, True
        for number in range(options.passes):
            forget(run, options.cold)
            seconds = timed(lambda: run.run(run.plan.span))
            found[f"pass {number + 1}"] = seconds, moved, moved, not number
        forget(run, options.cold)
        found["save"] = timed(lambda: run.save(end)), moved, nbytes, True
    drop(end)
    start.unlink()
    end.unlink()
    return found


def plain(folder: Path, nbytes: int) -> tuple[float, ...]:
    """Seconds that a byte takes by plain calls: read, written over another, written anew."""
    written_s = []
    path, piece = folder / "plain", np.random.default_rng(0).bytes(PIECE_NBYTES)
    for mode, ask in (("wb", WriteBack().wrote), ("rb+", begin_writing)):
        begin = time.perf_counter()
        with open(path, mode, buffering=0) as file:
            for first in range(0, nbytes, PIECE_NBYTES):
                file.write(piece)
                ask(file.fileno(), first, PIECE_NBYTES)
            os.fsync(file.fileno())
        written_s.append((time.perf_counter() - begin) / nbytes)
    drop(path)
    room = bytearray(PIECE_NBYTES)
    begin = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(room):
            pass
    read_s = time.perf_counter() - begin
    path.unlink()
    return read_s / nbytes, written_s[1], written_s[0]


def drop(path: Path) -> None:
    """Nothing of a file is in the system's cache."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def forget(run: Computation, cold: bool) -> None:
    """Nothing of images in files is in the system's cache, where all is to be `cold`."""
    parts = [tile.part for tile in run._engine.tiles.values() if tile.part is not None]
    if cold and parts:
        view = parts[0].file.array.base
        assert isinstance(view, memoryview) and isinstance(view.obj, mmap.mmap)
        mapping = view.obj
        mapping.flush()
        mapping.madvise(mmap.MADV_DONTNEED)
        for name in Path("/proc/self/fd").iterdir():    # the file has no other name
            if "controllers-" in os.path.realpath(name):
                os.posix_fadvise(int(name.name), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(work: object) -> float:
    """Seconds of a call."""
    assert callable(work)
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def told(
    found: dict[str, tuple[float, int, int, bool]], plain_s: list[float]
) -> dict[str, float]:
    """Plain calls' time over that of each part, and of all, printed."""
    read_s, over_s, anew_s = plain_s
    rates = (f"{1e-9 / each:.2f}" for each in plain_s)
    print("plain, GB/s: reads {}, writes over a file {}, of a new file {}".format(*rates))
    all_s, ideal_s, shares = 0.0, 0.0, {}
    for what, (seconds, read, written, is_new) in found.items():
        ideal = read * read_s + written * (anew_s if is_new else over_s)
        all_s, ideal_s, shares[what] = all_s + seconds, ideal_s + ideal, ideal / seconds
        print(
            f"{what}: {seconds:.2f} s for {size(read)} read and {size(written)} written, plain "
            f"{ideal:.2f} s, {shares[what]:.2f} of it"
        )
    shares["all"] = ideal_s / all_s
    print(f"all: {all_s:.2f} s, plain {ideal_s:.2f} s, {shares['all']:.2f} of it", flush=True)
    return shares


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--budget", default="256m")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--cap", default="64m")
    parser.add_argument("--span", type=int, default=1)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--cold", action="store_true")
    return parser


if __name__ == "__main__":
    main()
