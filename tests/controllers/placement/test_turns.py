# SPDX-License-Identifier: MIT
"""Fields that are divided anew where old and new tiles do not fit in memory together."""
from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from divided import HAS_CPU, LOPSIDED, two_cores
from mpi_jobs import run_ranks
from random_programs import random_program
from sample import sample

import controllers as ct
from controllers import Computation, reference_run
from controllers.engine import Engine
from controllers.executor.reference import ReferenceExecutor
from controllers.memory.ledger import MemoryCapError
from controllers.placement.turns import waiting
from controllers.run import assembly
from hitmap import SerialCommunicator

SERIAL = SerialCommunicator()
FIELD = np.random.default_rng(0).random((133, 41), np.float32)
KINDS = [
    pytest.param(["reference"] * 2, True, id="reference"),
    pytest.param("cpu:0/1,1", True, id="host memory", marks=two_cores),
    pytest.param("cpu:0/1,1", False, id="device memory", marks=two_cores),
]
DIVISIONS: list[dict[str, Any]] = [
    {"weights": [1, 2]}, {"partition": "blocks"}, {"weights": [3, 1]}, {"weights": [0, 1]},
    {"weights": [2, 3]},
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Memory goes with its last reference; the cap is each test's own."""
    monkeypatch.delenv("CONTROLLERS_MEMORY_CAP", raising=False)
    gc.disable()
    yield
    gc.enable()


def used(run: Computation) -> list[int]:
    return [executor.ledger.on_device for executor in run.placement.executors.values()]


def peaks(run: Computation) -> list[int]:
    return [device.peak_bytes for device in run.report().devices]


@pytest.mark.parametrize("seed", sample(range(200), 10))
def test_no_turn_takes_more_than_there_is_and_nothing_waits_needlessly(seed: int) -> None:
    rng = random.Random(seed)
    before = [rng.randint(0, 9) for _ in range(rng.randint(1, 5))]
    after = [rng.randint(0, 9) for _ in before]
    room = rng.randint(max(sum(before), sum(after)), sum(before) + sum(after))
    in_use, on_host = sum(before), set[int]()
    for turn, fields in enumerate(waiting(room, before, after)):
        for field in fields:
            assert in_use + after[turn] > room, "it could have stayed"
            assert field >= turn and field not in on_host
            on_host.add(field)
            in_use -= before[field]
        in_use += after[turn]
        assert in_use <= room
        in_use -= 0 if turn in on_host else before[turn]
    assert in_use == sum(after)


@pytest.mark.whole
@pytest.mark.parametrize(("devices", "zero_copy"), [
    KINDS[2], *(pytest.param(*one.values, id=one.id, marks=[*one.marks, pytest.mark.whole])
                for one in KINDS[:2]),
])  # fmt: skip
@pytest.mark.parametrize("n_steps", sample([2, 0, 1], 3))
def test_the_memory_of_one_division_is_enough_for_all(
    devices: Any, zero_copy: bool, n_steps: int
) -> None:
    def computation(**options: Any) -> Computation:
        return Computation(
            LOPSIDED.program("float32"), FIELD.shape, boundary=("fixed", "periodic"), comm=SERIAL,
            devices=devices, zero_copy=zero_copy, steps_per_launch=1, **options,
        )  # fmt: skip

    cap = 0
    for division in DIVISIONS:
        with computation(**division) as run:
            cap = max(cap, *used(run))
        del run
    with computation(memory_cap=cap) as run:
        run.scatter(FIELD)
        for division in DIVISIONS:
            run.run(n_steps)
            run.redistribute(**division)
            assert used(run) == [n for n in used(run) if n <= cap]
        done = n_steps * len(DIVISIONS)
        assert np.array_equal(run.gather(), right(done))
        run.run(3)
        assert np.array_equal(run.gather(), right(done + 3))
        assert max(peaks(run)) <= cap


def right(n_steps: int) -> np.ndarray:
    return reference_run(LOPSIDED.program("float32"), FIELD, n_steps, (False, True))


@pytest.mark.parametrize("number", sample(range(60), 8))
def test_random_programs_go_on_with_the_same_bits(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = random_program(number)
    monkeypatch.setattr(assembly, "check_capacity", lambda *_: False)    # always in turns
    monkeypatch.setattr(assembly, "_on_tiles", lambda *_: None)
    released = counted_releases(monkeypatch)
    boundary = ["periodic" if wraps else "fixed" for wraps in case.periodic]
    with Computation(
        case.program, case.extent, comm=SERIAL, boundary=boundary, places_per_controller=2,
        devices=["reference"] * (1 + number % 2), init=case.arrays,
    ) as run:  # fmt: skip
        for n_steps, division in ((1, {"partition": "blocks"}), (2, {"places_per_controller": 1})):
            run.run(n_steps)
            run.redistribute(**division)  # type: ignore[arg-type]
        run.run(1)
        expected = reference_run(case.program, case.arrays, 4, case.periodic)
        for name, values in expected.items():
            assert np.array_equal(run[name].gather(), values, equal_nan=True), name
    assert len(released) == 2


def counted_releases(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    found: list[Engine] = []
    release = Engine.release
    monkeypatch.setattr(Engine, "release", lambda engine: (found.append(engine), release(engine)))
    return found


@ct.step
def flow(u: Any, k: Any) -> Any:
    return dict(u=u + 0.125 * k * (u[0, 1] - 2 * u + u[0, -1]))


@ct.step
def relax(u: Any) -> Any:
    return dict(u=u + 0.25 * (np.maximum(u, 0.5) - u))


COEFFICIENT = np.random.default_rng(1).random((90, 64), np.float32)
START = np.random.default_rng(2).random((90, 64), np.float32)


@two_cores
def test_what_does_not_fit_beside_waits_on_the_host_of_a_device_with_memory_of_its_own() -> None:
    options: dict[str, Any] = {
        "devices": "cpu:0/1,1", "zero_copy": False, "comm": SERIAL,
        "steps_per_launch": 1, "u": START,
    }  # fmt: skip
    with Computation(relax, START.shape, weights=[2, 1], **options) as run:
        cap = max(used(run))
        assert len(run._engine.tiles) == 2, "one buffer: old and new are as large as all there is"
    del run
    with Computation(relax, START.shape, weights=[2, 1], memory_cap=cap, **options) as run:
        run.run(2)
        run.redistribute(weights=[1, 2])
        run.redistribute(weights=[2, 1])
        run.run(1)
        assert np.array_equal(run.u.gather(), reference_run(run.program, {"u": START}, 3)["u"])
        assert max(peaks(run)) <= cap
        assert all(e.ledger.peak_on_host for e in run.placement.executors.values())
        assert {e.ledger.on_host for e in run.placement.executors.values()} == {0}


def test_fields_that_no_step_writes_go_along() -> None:
    options: dict[str, Any] = {
        "devices": ["reference"] * 2, "comm": SERIAL, "boundary": {"u": ct.keep()},
        "u": START, "k": COEFFICIENT,
    }  # fmt: skip
    with Computation(flow, START.shape, weights=[2, 1], **options) as run:
        cap = max(used(run))
    del run
    with Computation(flow, START.shape, weights=[2, 1], memory_cap=cap, **options) as run:
        run.run(3)
        run.redistribute(weights=[1, 2])
        run.run(2)
        found = reference_run(run.program, {"u": START, "k": COEFFICIENT}, 5)
        assert np.array_equal(run.u.gather(), found["u"])
        assert np.array_equal(run.k.gather(), COEFFICIENT)
        assert max(peaks(run)) <= cap


def test_a_field_of_one_buffer_in_the_hosts_memory_needs_room_for_both() -> None:
    options: dict[str, Any] = {"devices": ["reference"] * 2, "comm": SERIAL, "u": START}
    with Computation(relax, START.shape, weights=[2, 1], **options) as run:
        cap = max(used(run))
    del run
    with Computation(relax, START.shape, weights=[2, 1], memory_cap=cap, **options) as run:
        run.run(2)
        tiles = run._engine.tiles
        with pytest.raises(MemoryCapError, match="needs .* where .* are in use, the cap is"):
            run.redistribute(weights=[1, 2])
        assert run._engine.tiles is tiles
        run.run(1)
        assert np.array_equal(run.u.gather(), reference_run(run.program, {"u": START}, 3)["u"])


def test_a_relocation_that_breaks_off_leaves_nothing_to_go_on_with(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "check_capacity", lambda *_: False)
    with Computation(
        LOPSIDED.program("float32"), FIELD.shape, comm=SERIAL, devices=["reference"] * 2
    ) as run:
        run.scatter(FIELD)

        def full(*_: object) -> None:
            raise MemoryError("no memory")

        with monkeypatch.context() as patched:
            patched.setattr(ReferenceExecutor, "tile", full)
            with pytest.raises(MemoryError, match="no memory"):
                run.redistribute(weights=[1, 2])
        for verb in (lambda: run.run(1), run.gather, lambda: run.scatter(FIELD)):
            with pytest.raises(RuntimeError, match="redistribute.*make a new Computation"):
                verb()


JOB = """
import sys
import numpy as np
from controllers import Computation, Stencil, reference_run
from hitmap import default_communicator

comm, devices, zero_copy = default_communicator(), sys.argv[1], sys.argv[2] == "True"
lopsided = Stencil.of("lopsided", [(-1, 1), (-1, 2)], [1, 2, 1, 0, 2, 4, 2, 1, 2, 1, 1, 3], 20)
program = lopsided.program("float32")
field = np.random.default_rng(0).random((133, 41), np.float32)
divisions = [dict(weights=[1, 2]), dict(partition="blocks"), dict(weights=[2, 1])]

def used(run):
    mine = max(one.ledger.on_device for one in run.placement.executors.values())
    return max(comm.allgather(mine))

def computation(**options):
    return Computation(program, field.shape, boundary=("fixed", "periodic"), devices=devices,
                       zero_copy=zero_copy, steps_per_launch=1, comm=comm, **options)

cap = 0
for division in divisions:
    with computation(**division) as run:
        cap = max(cap, used(run))
    del run
with computation(memory_cap=cap) as run:
    run.scatter(field)
    for n_steps, division in enumerate(divisions):
        run.run(n_steps)
        run.redistribute(**division)
    run.run(2)
    whole = run.gather()
    peak = max(device.peak_bytes for device in run.report().devices)
if whole is not None:
    right = reference_run(program, field, 5, (False, True))
    print(np.array_equal(whole, right), peak <= cap)
"""


@pytest.mark.parametrize(("devices", "zero_copy"), sample([
    ("reference", True), *([("cpu", True), ("cpu", False)] if HAS_CPU else []),
], 3))  # fmt: skip
def test_ranks_move_their_fields_within_their_caps(devices: str, zero_copy: bool) -> None:
    job = run_ranks(2, ["-c", JOB, devices, str(zero_copy)])
    assert (job.returncode, job.stdout.split()) == (0, ["True", "True"]), job.stderr
