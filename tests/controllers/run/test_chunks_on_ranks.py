# SPDX-License-Identifier: MIT
"""Fields that pass through in chunks on several ranks have the bits of one."""
from __future__ import annotations

from pathlib import Path

import pytest
from divided import two_cores
from mpi_jobs import helpers_path, run_ranks
from sample import sample

LAZY = """
import random
import sys
from chunk_runs import check_passes, kinds_of
from fold_programs import late_reads, random_folds
from lazy_executor import LazyExecutor
from lazy_world import World
from random_programs import random_program
from repeat_programs import random_repeats
from controllers.engine import binding, installation, large_message, network
from controllers.plan import Location
from hitmap import Layout, Shape
from hitmap.comm import default_communicator

comm = default_communicator()
makers = {
    "steps": random_program, "folds": random_folds, "repeats": random_repeats, "late": late_reads
}
for word in sys.argv[2:]:
    number, made = int(word), makers[sys.argv[1]]
    nbytes = 8 << 4 * (number % 3)      # else nothing is large
    network.MessageEnd.__init__.__kwdefaults__["most_nbytes"] = nbytes
    binding.PIECE_NBYTES = installation.PIECE_NBYTES = nbytes
    # all large messages are read where they lie, or those that one rank sends, or none
    large_message.machine = lambda n=(0, comm.rank, 1, 1)[number % 4]: n
    case, rng = made(number), random.Random(number)
    n_chunks = rng.randint(3, 7)
    homes = sorted(rng.randint(0, comm.size - 1) for _ in range(n_chunks))
    layout = Layout.bands(Shape.of_extent(case.extent), n_chunks)
    where = [Location(home, shares_host=False) for home in homes]
    device = LazyExecutor(World(number + comm.rank), shares_host=False)
    places = {chunk: device for chunk, home in enumerate(homes) if home == comm.rank}
    kinds = kinds_of(case.program, layout)
    check_passes(
        kinds[0] if number % 4 == 1 else kinds[-1], case, layout, where, places, comm.Dup(),
        n_launches=rng.randint(1, 4), n_slots=rng.randint(1, 3),
    )
print("all right", flush=True)
"""


def check_lazy(kind: str, n_ranks: int, numbers: list[int], folder: Path) -> None:
    program = folder / "program.py"
    program.write_text(LAZY)
    job = run_ranks(n_ranks, [str(program), kind, *map(str, numbers)], env=helpers_path())
    assert job.returncode == 0, job.stdout + job.stderr
    assert job.stdout.count("all right") == n_ranks, job.stdout + job.stderr


@pytest.mark.parametrize(("n_ranks", "most"), sample([(2, 2), (1, 6), (2, 6), (3, 6)], 4))
def test_devices_that_run_at_any_time(n_ranks: int, most: int, tmp_path: Path) -> None:
    check_lazy("steps", n_ranks, [*range(most)], tmp_path)


@pytest.mark.whole
@pytest.mark.parametrize("n_ranks", [2, 3])
def test_many_programs(n_ranks: int, tmp_path: Path) -> None:
    check_lazy("steps", n_ranks, [*range(6, 90)], tmp_path)


@pytest.mark.parametrize(("kind", "n_ranks", "most"), sample([
    ("folds", 2, 2), ("folds", 2, 20), ("folds", 3, 20), ("repeats", 2, 20), ("repeats", 2, 2),
    ("repeats", 3, 20), ("late", 2, 20), ("late", 3, 20), ("late", 2, 3),
], 4))  # fmt: skip
def test_results_and_parts_of_steps(kind: str, n_ranks: int, most: int, tmp_path: Path) -> None:
    check_lazy(kind, n_ranks, [*range(most)], tmp_path)


FILES = """
import os
import sys
from types import SimpleNamespace
import numpy as np
import pytest
from controllers import Computation, MemoryCapError, Stencil, reference_run
from hitmap.comm import default_communicator

folder, rank = sys.argv[1], default_communicator().rank
cross = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
start = np.random.default_rng(0).random((60, 40), dtype=np.float32)
if not rank:
    np.save(folder + "/start.npy", start)
default_communicator().Barrier()
options = dict(devices="cpu", zero_copy=False, scratch=folder)
for boundary, caps in (
    ("fixed", dict(memory_cap=[9000, 12000][rank], host_memory_cap=[1, "2k"][rank])),
    ("periodic", dict(chunks=3, halo_width=5)),
):
    right = reference_run(cross, {"u": start}, 12, (boundary == "periodic",) * 2)["u"]
    with Computation(cross, (60, 40), u=folder + "/start.npy", boundary=boundary, dtype="float32",
                     **caps, **options) as run:
        run.run(7)
        row = np.array(run.u[30])
        run.u[30] = 0 * row
        run.u[30] = row
        run.use_halo_width(2)
        run.run(5)
        run.save(folder + "/end.npy")
        text, here = run.explain(), sum(one.in_file for one in run.plan.memories)
        assert "messages of field u per pass of " in text
        assert ("in files in " in text) == (boundary == "fixed") == bool(here)
    assert np.array_equal(np.load(folder + "/end.npy"), right), boundary
full = SimpleNamespace(f_bavail=3, f_frsize=4096)
os.statvfs = lambda folder: full        # one rank alone would have room
with pytest.raises(MemoryCapError, match="need 16 KiB in files .* where 12 KiB are free"):
    Computation(cross, start, chunks=1, host_memory_cap=1, **options)
print("all right", flush=True)
"""


@pytest.mark.whole
@two_cores
def test_two_ranks_from_file_to_file(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(FILES)
    job = run_ranks(2, [str(program), str(tmp_path)], env=helpers_path())
    assert job.returncode == 0, job.stdout + job.stderr
    assert job.stdout.count("all right") == 2


ANEW = """
import numpy as np
from controllers import Computation, Stencil, reference_run
from controllers.tuning.sizes import SizeChooser

SizeChooser._pays = lambda self, size: True
cross = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
start = np.random.default_rng(0).random((90, 40), dtype=np.float32)
with Computation(cross, start, devices="cpu", zero_copy=False, chunks="auto", memory_cap=9_000,
                 steps_per_launch=1) as run:
    chooser, n_steps, places = run._chooser, 0, set()
    while not chooser.over:
        count = 3 * chooser.size.span + 1
        run.run(count)
        n_steps += count
        places.add(run.layout.n_places)
    assert len(places) > 1 and run.report().pipeline.tried
    found = run.gather()
    if found is not None:
        right = reference_run(cross, {"u": start}, n_steps, (False, False))["u"]
        assert np.array_equal(found, right)
print("all right", flush=True)
"""


@pytest.mark.whole
@two_cores
def test_two_ranks_cut_their_chunks_otherwise_together(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(ANEW)
    env = {**helpers_path(), "CONTROLLERS_TUNING": str(tmp_path)}
    job = run_ranks(2, [str(program)], env=env)
    assert job.returncode == 0, job.stdout + job.stderr
    assert job.stdout.count("all right") == 2
