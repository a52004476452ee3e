# SPDX-License-Identifier: MIT
"""What a plan says that its places take is what their devices allocate; too much is refused."""
from __future__ import annotations

import gc
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from divided import two_cores
from layout_strategies import random_domain, random_layout
from mpi_jobs import SOON_S, run_ranks
from sample import sample

import controllers as ct
from controllers import Computation, Plan, Stencil, stencil_computation
from controllers.cli import main
from controllers.device import find_devices, reference_device, usable
from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.memory.ledger import ENVIRONMENT, Ledger, MemoryCapError
from controllers.placement.capacity import nbytes_needed
from controllers.plan import ChunkPlan, Location, PlaceMemory
from hitmap import SerialCommunicator

SERIAL = SerialCommunicator()
MEAN = Stencil.of("mean", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
CPU = next((d for d in find_devices() if d.shares_host and d.handle is not None), None)
IN_PLACE = 2 * 4096     # bytes beside the cells of a tile that a CPU uses in place: two pages


@pytest.fixture(autouse=True)
def no_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Memory goes with its last reference; the cap is each test's own; files are in a folder."""
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.chdir(tmp_path)
    gc.disable()
    yield
    gc.enable()


def in_use(ledger: Ledger) -> dict[str, int]:
    return {purpose: nbytes for purpose, nbytes in ledger.as_dict().items() if nbytes}


def ledgers(run: Computation) -> list[Ledger]:
    return [executor.ledger for executor in dict.fromkeys(run.placement.executors.values())]


def computation(sizes: Any, devices: Any = "cpu:0/1,1", **options: Any) -> Computation:
    dtype = options.pop("dtype", "float32")
    options = {"steps_per_launch": 1, **options}    # halos of one cell, to count by hand
    return Computation(MEAN.program(dtype), sizes, devices=devices, comm=SERIAL, **options)


# Of a field of 20 x 30 cells on two devices with memory of their own, by hand: rows and columns of
# a place's tile, and the cells that are packed on the device and that pass through the host.
BY_HAND = [     # rows, columns before the first one of its own, and the others
    ({}, [((11, 0, 30), 0, 28)] * 2),            # one row of halo; a row's inner cells leave
    ({"weights": [1, 3]}, [((6, 0, 30), 0, 28), ((16, 0, 30), 0, 28)]),
    ({"boundary": "periodic"}, [((12, 1, 31), 0, 2 * 30)] * 2),     # ... columns are copied
    (
        {"partition": "cyclic", "block": (20, 15)},     # columns leave
        [((20, 0, 16), 2 * 24, 18), ((20, 1, 15), 2 * 24, 18)],
    ),
]


def eights(n: int) -> int:
    """A multiple of 8 elements."""
    return -(-n // 8) * 8


@two_cores
@pytest.mark.parametrize(
    ("division", "cells", "dtype"),
    sample([(*row, dtype) for row in BY_HAND for dtype in ("float32", "float64", "uint8")], 7),
)
def test_a_device_holds_the_field_its_double_halos_and_staging_and_nothing_else(
    division: dict[str, Any], cells: list[tuple[tuple[int, int, int], int, int]], dtype: str
) -> None:
    itemsize = np.dtype(dtype).itemsize
    with computation((20, 30), zero_copy=False, dtype=dtype, **division) as run:
        run.run(3)
        for ledger, report, ((rows, low, columns), packed, staged) in zip(
            ledgers(run), run.report().places, cells, strict=True
        ):
            tile = rows * eights(eights(low) + columns)     # and so begin its own cells in rows
            expected = {
                "tiles": 2 * tile * itemsize,
                "device staging": packed * itemsize,
                "host staging": staged * itemsize,
            }
            assert in_use(ledger) == {purpose: n for purpose, n in expected.items() if n}
            assert ledger.peak_on_host == staged * itemsize     # never a host image
            assert ledger.peak_on_device == (2 * tile + packed) * itemsize
            assert report.memory == PlaceMemory(
                2 * tile * itemsize, 0, packed * itemsize, staged * itemsize
            )


@two_cores
@pytest.mark.parametrize(("division", "cells"), BY_HAND)
def test_a_device_that_shares_the_hosts_memory_holds_the_tiles_alone(
    division: dict[str, Any], cells: list[tuple[tuple[int, int, int], int, int]]
) -> None:
    with computation((20, 30), **division) as run:
        run.load(lambda tile: tile.array.fill(1))
        run.run(3)
        whole = run.gather()
        assert whole is not None and (division.get("boundary") is None or (whole == 1).all())
        for ledger, ((rows, low, columns), _, _) in zip(ledgers(run), cells, strict=True):
            tiles = 2 * 4 * rows * (low + columns)
            assert in_use(ledger) == {"tiles": tiles, "alignment": 2 * IN_PLACE}
            assert ledger.peak_on_host == 0


def test_a_host_image_is_counted_while_there_is_one() -> None:
    if CPU is None:
        pytest.skip("needs an OpenCL CPU")
    with computation((20, 30), "cpu:0", zero_copy=False) as run:
        (ledger,) = ledgers(run)
        assert ledger.peak_on_host == 0
        run.load(lambda tile: tile.array.fill(1))
        kept: list[np.ndarray] = []
        run.visit(lambda tile: kept.append(tile.array))
        assert in_use(ledger) == {"tiles": 2 * 4 * 640, "host images": 4 * 600}
        kept.clear()
        assert in_use(ledger) == {"tiles": 2 * 4 * 640}
        assert ledger.peak_on_host == 4 * 600


@two_cores
@pytest.mark.parametrize("zero_copy", [True, False])
def test_a_redistribution_counts_old_and_new_and_ends_with_the_new(zero_copy: bool) -> None:
    extra, row = (2 * IN_PLACE, 30) if zero_copy else (0, 32)
    with computation((20, 30), zero_copy=zero_copy) as run:
        before = [ledger.on_device for ledger in ledgers(run)]
        assert before == [2 * 4 * 11 * row + extra] * 2
        run.redistribute(weights=[1, 3])
        after = [ledger.on_device for ledger in ledgers(run)]
        assert after == [2 * 4 * 6 * row + extra, 2 * 4 * 16 * row + extra]
        peaks = [ledger.peak_on_device for ledger in ledgers(run)]
        assert peaks == [old + new for old, new in zip(before, after)]
        assert {ledger.as_dict()["host images"] for ledger in ledgers(run)} == {0}
        run.run(2)


@two_cores
def test_all_is_given_back_when_a_computation_goes() -> None:
    for kernel in ("specialised", "generic"):
        run = computation((20, 30), zero_copy=False, kernel=kernel)
        run.run(2)
        run.redistribute(partition="blocks")
        mine = ledgers(run)
        assert all(ledger.on_device for ledger in mine)
        run.close()
        del run
        assert [in_use(ledger) for ledger in mine] == [{}, {}]


class Requests:
    """Persistent messages that never start: what binding a plan of several ranks asks for."""

    rank, size = 0, 1

    def __getattr__(self, name: str) -> Any:
        assert name in ("Send_init", "Recv_init")
        return lambda *arguments: None


ALSO = {    # what there is on an executor of some kind, beside tiles and staging
    "in place": {"alignment"},
    "internal": {"device_staging"},
    "generic": {"device_staging", "constants"},
    "reference": {"alignment"},
}


def executor_of(kind: str) -> Executor:
    if kind == "reference":
        return ReferenceExecutor(reference_device())
    if CPU is None:
        pytest.skip("needs an OpenCL CPU")
    kernel = "generic" if kind == "generic" else "specialised"
    return OpenCLExecutor(CPU, zero_copy=kind == "in place", kernel=kernel)


def random_arguments(rng: random.Random, shares_host: bool) -> tuple[Any, ...]:
    """A field on two controllers of rank 0 and on others of rank 1, not all of it on one."""
    while (domain := random_domain(rng)).n_cells < 20:
        pass
    layout = random_layout(rng, domain, rng.randint(4, 8))
    shape = [(-rng.randint(1, 2), rng.randint(0, 2)) for _ in domain.extent]
    n_weights = int(np.prod([high - low + 1 for low, high in shape]))
    stencil = Stencil.of("s", shape, [1] * n_weights, rng.choice([1, 3]))
    locations = [
        Location(rng.choice([0, 0, 1]), rng.randrange(2), shares_host) for _ in layout.owned
    ]
    periodic = tuple(rng.random() < 0.5 for _ in domain.extent)
    dtype = rng.choice(["float32", "float64", "int16"])
    return stencil.program(dtype), layout, periodic, locations


@pytest.mark.parametrize("kind", sample(ALSO, 5))
def test_a_plan_says_what_its_engine_will_allocate(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controllers.engine.network.message_status", lambda: None)
    executors = [executor_of(kind), executor_of(kind)]
    ever = Counter[str]()
    for seed in range(8):
        rng = random.Random(seed)
        arguments = random_arguments(rng, executors[0].shares_host)
        overlap = rng.choice(["on", "off"])
        plan = Plan(*arguments, overlap=overlap, only_rank=0)
        homes = {n: executors[w.controller] for n, w in enumerate(plan.locations) if w.rank == 0}
        places = {e: [place for place in plan.places if homes[place] is e] for e in executors}
        needed = [nbytes_needed(plan, executor, places[executor]) for executor in executors]
        engine = Engine(plan, homes, Requests())  # type: ignore[arg-type]
        assert [executor.ledger.on_device for executor in executors] == needed, seed
        for executor in executors:
            memories = [asdict(plan.memory(place)) for place in places[executor]]
            expected = {p: sum(memory[p] for memory in memories) for p in asdict(PlaceMemory())}
            used = {p.replace(" ", "_"): n for p, n in executor.ledger.as_dict().items()}
            constants, snapshots = used.pop("constants"), used.pop("snapshots")
            assert snapshots == 0, seed
            assert used == expected, seed
            ever.update(used, constants=constants)
        of_all_ranks = Plan(*arguments, overlap=overlap)
        assert all(of_all_ranks.memory(place) == plan.memory(place) for place in plan.places)
        engine._binder.messages.clear()
        engine.close()
        del engine
    has = {purpose for purpose, nbytes in ever.items() if nbytes}
    assert has == {"tiles", "host_staging", *ALSO[kind]}


SIZE = (1024, 256)      # 1 MiB as float32; twice that with its double


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_a_field_over_the_cap_is_refused_with_figures(dtype: str) -> None:
    itemsize = np.dtype(dtype).itemsize
    need = 2 * itemsize * 1024 * 256 + 2 * IN_PLACE
    narrower = {"float64": ", float32,", "int64": ", int32,"}.get(dtype, "")
    with computation(SIZE, "reference", dtype=dtype, memory_cap=need) as run:
        assert [ledger.on_device for ledger in ledgers(run)] == [need]
    with pytest.raises(MemoryCapError) as refused:
        computation(SIZE, "reference", dtype=dtype, memory_cap=need - 1)
    assert str(refused.value) == (
        f'field "u" needs {need} B on "reference" (place 0), the cap is {need - 1} B; use more '
        f"devices{narrower} or a larger --memory-cap"
    )


def test_the_places_of_a_device_count_together_and_other_devices_by_themselves() -> None:
    options = {"devices": ["reference"] * 3, "places_per_controller": 2}
    with pytest.raises(MemoryCapError, match=(
        r'needs 722 KiB on "reference" \(places 0, 1\), the cap is 600 KiB, '
        r"and 2 more devices lack memory; use more"
    )):  # fmt: skip
        computation(SIZE, memory_cap="600k", **options)
    with pytest.raises(MemoryCapError, match=(
        r'needs 1 MiB on "reference" \(places 4, 5\), the cap is 800 KiB; use'
    )):  # fmt: skip
        computation(SIZE, memory_cap="800k", weights=[1, 1, 1, 1, 2, 2], **options)
    computation(SIZE, memory_cap="800k", **options).close()


def test_a_refused_redistribution_leaves_the_computation_as_it_is() -> None:
    of_512, of_513, of_511 = (2 * 4 * (rows + 1) * 256 + 2 * IN_PLACE for rows in (512, 513, 511))
    with computation(SIZE, ["reference"] * 2, memory_cap=of_513) as run:
        run.load(lambda tile: tile.array.fill(1))
        run.run(1)
        tiles = run._engine.tiles
        with pytest.raises(MemoryCapError, match=r"place 1\), where 1067008 B are in use, the cap"):
            run.redistribute(weights=[1, 3])
        assert run._engine.tiles is tiles
        run.redistribute(weights=[513, 511])    # one field after another
        run.run(1)
        assert [ledger.peak_on_device for ledger in ledgers(run)] == [of_513, of_512]
    with computation(SIZE, ["reference"] * 2, memory_cap=2 * of_513) as run:
        run.redistribute(weights=[513, 511])    # beside the old one
        both = [of_512 + of_513, of_512 + of_511]
        assert [ledger.peak_on_device for ledger in ledgers(run)] == both


@pytest.mark.skipif(CPU is None, reason="needs an OpenCL CPU")
@pytest.mark.parametrize("zero_copy", sample([True, False], 2))
def test_a_field_over_the_largest_allocation_is_split_and_capped_as_a_whole(
    zero_copy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CPU is not None
    small = replace(CPU, max_allocation_bytes=300_000)
    monkeypatch.setattr(usable, "find_devices", lambda: [small])
    with computation(SIZE, "cpu", zero_copy=zero_copy) as run:
        assert run.layout.n_places == 4
        (ledger,) = ledgers(run)
        rows = 1024 + 2 * 3     # with the halos
        extra = 4 * 2 * IN_PLACE if zero_copy else 0
        assert in_use(ledger)["tiles"] == 2 * 4 * rows * 256
        assert ledger.on_device == 2 * 4 * rows * 256 + extra
        need = ledger.on_device
    computation(SIZE, "cpu", zero_copy=zero_copy, memory_cap=need).close()
    if not zero_copy:       # it passes through in chunks
        with computation(SIZE, "cpu", zero_copy=False, memory_cap=need - 1) as run:
            assert isinstance(run.plan, ChunkPlan)
        return
    with pytest.raises(MemoryCapError, match=rf"{need} B .*\(places 0, 1, 2, 3\)"):
        computation(SIZE, "cpu", zero_copy=zero_copy, memory_cap=need - 1)


def test_the_skeleton_and_the_environment_set_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = ([(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4, 1)
    with pytest.raises(MemoryCapError, match="needs 2 MiB .*cap is 1 MiB"):
        stencil_computation(SIZE, *pattern, devices="reference", memory_cap="1m")
    report = stencil_computation((9, 8), *pattern, devices="reference", memory_cap="1m")
    assert report.devices[0].cap_bytes == 2**20
    monkeypatch.setenv(ENVIRONMENT, "1m")
    with pytest.raises(MemoryCapError, match="needs 2 MiB .*cap is 1 MiB"):
        computation(SIZE, "reference")
    computation(SIZE, "reference", memory_cap="3m").close()


@pytest.mark.parametrize("wanted", ["much", 0, "-1k"])
def test_a_cap_that_is_no_size_is_refused(wanted: str | int) -> None:
    with pytest.raises(ValueError, match=f"such as 512m or 4g, got {wanted!r}"):
        computation((9, 8), "reference", memory_cap=wanted)


def pattern_file() -> str:
    Path("mean.py").write_text(
        "shape = ((-1, 1), (-1, 1))\npattern = [0, 1, 0, 1, 0, 1, 0, 1, 0]\nfactor = 4\n"
    )
    return "mean.py --size 1024 256 --iterations 2 --output out.npy"


@pytest.mark.parametrize("cap", ["--memory-cap 1m", ""])
def test_the_command_line_refuses_and_writes_nothing(
    cap: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = f"run {pattern_file()} --device reference {cap}"
    monkeypatch.setenv(ENVIRONMENT, "8m" if cap else "1m")
    assert main(command.split()) == 2
    assert capsys.readouterr().err == (
        'controllers: error: field "u" needs 2 MiB on "reference" (place 0), the cap is 1 MiB; '
        "use more devices or a larger --memory-cap\n"
    )
    assert os.listdir() == ["mean.py"]
    assert main(f"run {pattern_file()} --device reference --memory-cap 1q".split()) == 2
    assert "--memory-cap: a memory cap is a number of bytes" in capsys.readouterr().err


def test_the_command_line_reports_memory(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"run {pattern_file()} --device reference --memory-cap 4m"
    assert main([*command.split(), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    tiles = 2 * 4 * 1024 * 256
    assert report["places"][0]["memory"] == {
        "tiles": tiles, "alignment": 2 * IN_PLACE, "device_staging": 0, "host_staging": 0,
        "host_images": 0, "image_files": 0,
    }  # fmt: skip
    (device,) = report["devices"]
    assert (device["cap_bytes"], device["peak_bytes"]) == (2**22, tiles + 2 * IN_PLACE)
    assert device["nbytes"]["tiles"] == tiles
    assert main(command.split()) == 0
    head, place, _, _, memory = capsys.readouterr().out.splitlines()
    assert place[head.index("memory") - 2 :].startswith("   2 MiB")
    assert memory == "at most 2 MiB of 4 MiB in use on a device"


@pytest.mark.whole
def test_two_ranks_refuse_together_even_if_only_one_lacks_memory() -> None:
    """... and end at once, with one message."""
    command = ["-m", "controllers", "run", *pattern_file().split(), "--device", "reference"]
    start = time.monotonic()
    job = run_ranks(2, [*command, "--memory-cap", "1m", "--weights", "1,5"])
    elapsed = time.monotonic() - start
    assert job.returncode == 2
    assert job.stderr.splitlines() == [
        'controllers: error: field "u" needs 1.7 MiB on "reference" (place 1), the cap is 1 MiB; '
        "use more devices or a larger --memory-cap"
    ]
    assert os.listdir() == ["mean.py"]
    assert elapsed < SOON_S


JOB = """
import os
from controllers import Computation, Stencil
from controllers.memory.ledger import MemoryCapError
from hitmap import default_communicator

comm = default_communicator()
mean = Stencil.of("mean", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
options = {"devices": "cpu", "comm": comm, "zero_copy": False}
with Computation(mean.program("float32"), (20, 30), **options) as run:
    run.run(2)
    (executor,) = set(run.placement.executors.values())
    used = executor.ledger.as_dict()
    # one row of halo; a row's inner cells leave, as many arrive
    assert used["tiles"] == 2 * 4 * 11 * 32 == executor.ledger.on_device, used
    assert used["host staging"] == 4 * 2 * 28 == executor.ledger.peak_on_host, used
    report = run.report()
    assert [device.rank for device in report.devices] == [0, 1]
    assert {device.nbytes["tiles"] for device in report.devices} == {used["tiles"]}
os.environ["CONTROLLERS_MEMORY_CAP"] = "1g" if comm.rank == 0 else "1k"     # unlike hosts
for wrong in (None, "x"):
    try:
        Computation(mean.program("float32"), (20, 30), memory_cap=wrong, **options)
    except (MemoryCapError, ValueError) as error:
        texts = comm.allgather(str(error))
        if comm.rank == 0:
            print(texts[0] == texts[1], texts[0])
"""


@pytest.mark.whole
@two_cores
def test_two_ranks_count_by_themselves_and_refuse_together() -> None:
    job = run_ranks(2, JOB)
    assert job.returncode == 0, job.stderr
    over, unknown = job.stdout.splitlines()
    assert over.startswith('True field "u" needs 2.8 KiB on "') and "(place 1)" in over
    assert "the cap is 1 KiB; use more devices" in over
    assert unknown.startswith("True a memory cap is")


@ct.step
def warmed(u: Any, *, x: Any, cfl: float = 0.4) -> Any:
    dt = cfl / ct.max(np.abs(u))
    new = (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]) / 4 + dt * x
    return dict(u=new, dt=dt, mean=ct.mean(u), hottest=ct.argmax(u[0, 1] * x))


@ct.step
def smoothed(u: Any, *, x: Any) -> Any:
    new = (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]) / 4 + x
    return dict(u=new, mean=ct.mean(u), change=ct.max(np.abs(new - u)))     # as a run ends


@pytest.mark.whole
@pytest.mark.skipif(CPU is None, reason="needs a CPU with OpenCL")
@pytest.mark.parametrize("step", [smoothed, warmed])
@pytest.mark.parametrize("rule", ["periodic", ct.fixed(lambda x, y: x + y)])
def test_what_folds_and_cells_outside_take_is_counted_before_it_is_allocated(
    step: Any, rule: Any
) -> None:
    grid = ct.Grid(y=23, x=31, boundary=rule)
    given = dict(devices="cpu", places_per_controller=3, comm=SERIAL, u=1)
    with Computation(step, grid, **given) as run:
        executor, used = run._engine.executors[0], ledgers(run)[0].on_device
        assert in_use(executor.ledger)["constants"] > 0
        assert used == nbytes_needed(run.plan, executor, run.plan.places)
    with Computation(step, grid, **given, memory_cap=used) as run:
        run.run(2)
    with pytest.raises(MemoryCapError, match='field "u" needs .* the cap is'):
        Computation(step, grid, **given, memory_cap=used - 1)
