# SPDX-License-Identifier: MIT
"""The checked mode names faults of kernels and of the engine, and says nothing of good runs."""
from __future__ import annotations

import json
import subprocess
from pathlib import Path

import checked_faults
import numpy as np
import pytest
from good_programs import GOOD, GOOD_KERNELS
from mpi_jobs import HANGS_S, helpers_path, run_ranks
from sample import sample
from wrong_kernels import CROSS, EXTENT, INNER, WRONG

from controllers import CheckError, Computation, Controller, Kernel, Stencil, reading, updating
from controllers.check import oclgrind, setting_of
from controllers.check.engine import CheckedEngine
from controllers.device import NoDeviceError, find_devices, find_simulator, is_simulator
from controllers.engine import Engine
from hitmap import SerialCommunicator, Shape

HAS_OCLGRIND = find_simulator() is not None
needs_oclgrind = pytest.mark.skipif(not HAS_OCLGRIND, reason="Oclgrind is not installed")
SERIAL = SerialCommunicator()


@pytest.mark.parametrize(
    "name", sample([name for name, case in WRONG.items() if case.check is True], 20)
)
def test_a_wrong_kernel_is_named(name: str) -> None:
    case = WRONG[name]
    with pytest.raises(CheckError) as caught:
        case.run(True)
    assert caught.value.kind == case.kind
    assert case.index in (None, caught.value.index)
    assert caught.value.rank == caught.value.step == 0
    assert "'mine'" in caught.value.what or caught.value.kind == "nan"


@needs_oclgrind
@pytest.mark.parametrize("name", sample(WRONG, 18))
def test_a_wrong_kernel_is_named_under_oclgrind(name: str) -> None:
    case = WRONG[name]
    with pytest.raises(CheckError) as caught:
        case.run("oclgrind")
    if case.check == "oclgrind":
        assert caught.value.kind == case.kind
        assert "line 1 of kernel" in caught.value.what or "line 3 of kernel" in caught.value.what


def test_there_are_twenty_wrong_kernels_of_every_kind() -> None:
    assert len(WRONG) >= 20
    assert {case.kind for case in WRONG.values()} == {
        "undeclared", "bounds", "foreign", "race", "read-only", "unset", "nan", "uninitialised",
        "barrier",
    }  # fmt: skip


def test_there_are_fifty_good_programs() -> None:
    assert len(GOOD) >= 50


@pytest.mark.parametrize("name", sample(GOOD, 58))
def test_a_good_program_raises_no_alarm(name: str) -> None:
    GOOD[name](True)


@needs_oclgrind
@pytest.mark.parametrize("name", sample([*list(GOOD)[:39:6], *GOOD_KERNELS], 8))
def test_a_good_program_raises_no_alarm_under_oclgrind(name: str) -> None:
    GOOD[name]("oclgrind")


FAULTS = {name: ranks for ranks in (1, 2) for name in checked_faults.names(ranks)}


@pytest.fixture(scope="module")
def found_of_faults(request: pytest.FixtureRequest) -> dict[str, dict[str, object] | None]:
    """What the checked mode says of each: one job per number of ranks tries all that are chosen."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    chosen = {
        item.callspec.params["name"] for item in items if "found_of_faults" in item.fixturenames
    }
    found = {}
    for ranks in (1, 2):
        names = [name for name, n in FAULTS.items() if n == ranks and name in chosen]
        if not names:
            continue
        arguments = [str(Path(checked_faults.__file__)), *names]
        env = {**helpers_path(), "CONTROLLERS_CHECK": "on"}
        job = run_ranks(ranks, arguments, 2 * HANGS_S, env)
        lines = [json.loads(line) for line in job.stdout.splitlines() if line.startswith("{")]
        found |= {line["name"]: line["found"] for line in lines}
        assert job.returncode == 0 and len(lines) == len(names), job.stderr[-3000:]
    return found


@pytest.mark.parametrize("name", sample(FAULTS, 200))
def test_a_fault_of_the_engine_is_named(
    name: str, found_of_faults: dict[str, dict[str, object] | None]
) -> None:
    found, what = found_of_faults[name], name.partition(": ")[2]
    if what == "as it should be":
        assert found is None
        return
    assert found is not None, "not found"
    assert found["field"] == "u" and found["index"] is not None
    assert found["step"] in (0, 1, 2, 3, 4) and found["rank"] in (0, 1)
    if " not after " in what:
        assert found["kind"] in ("unordered", "unwritten", "stale")
    elif "level" not in what:
        assert found["kind"] in ("unwritten", "stale")


def heat(check: bool | str | None = True, **options: object) -> Computation:
    program = CROSS.program("float32")
    return Computation(
        program, EXTENT, devices="cpu:0", comm=SERIAL, check=check, **options  # type: ignore[arg-type]
    )


def test_a_nan_of_the_users_is_no_alarm_and_one_that_appears_is() -> None:
    field = np.ones(EXTENT, np.float32)
    field[5, 5] = np.nan
    with heat(places_per_controller=3) as run:
        run.scatter(field)
        run.run(4)
        assert np.isnan(run.gather()).sum() > 9     # type: ignore[arg-type]
        field[5, 5], field[17, 3], field[17, 5] = 1, np.inf, -np.inf
        run.scatter(field)
        with pytest.raises(CheckError, match=r"u at \(17, 4\) NaN") as caught:
            run.run(4)
    error = caught.value
    assert (error.kind, error.field, error.index, error.step) == ("nan", "u", (17, 4), 0)


def test_a_fault_after_many_steps_is_named_with_its_step() -> None:
    kernel = Kernel.of("late", "NEW(u) = HERE(u) == 100 ? NEAR(u, 2, 0) : HERE(u) + 1;")
    with heat(kernel=kernel) as run:
        with pytest.raises(CheckError, match="step 100: .* offset \\(2, 0\\)") as caught:
            run.run(1000)
        assert caught.value.step == 100
        assert run._engine.n_steps == 128, "the ranks compare notes every 64 steps"


@pytest.mark.parametrize("cell", [Shape((15, 7), (16, 8)), Shape((11, 9), (12, 10))])
def test_a_value_that_changes_behind_the_back_is_named(cell: Shape) -> None:
    with heat(places_per_controller=2) as run:
        run.run(2)
        place = 1 if cell.lower[0] > 11 else 0
        run._engine.newest("u", place).view(cell)[...] = 8
        with pytest.raises(CheckError, match="has other bits at place") as caught:
            run.run(2)
    assert (caught.value.kind, caught.value.index, caught.value.step) == ("corrupt", cell.lower, 2)


def test_without_check_the_engine_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONTROLLERS_CHECK", raising=False)
    with heat(check=None) as run:
        assert type(run._engine) is Engine
    with Controller("cpu:0") as controller:
        assert controller._launches.checked is None


def test_the_environment_asks_for_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTROLLERS_CHECK", "on")
    assert (setting_of(None), setting_of(False)) == ("on", "off")
    with heat(check=None) as run:
        assert type(run._engine) is CheckedEngine
    monkeypatch.setenv("CONTROLLERS_CHECK", "yes")
    with pytest.raises(ValueError, match="CONTROLLERS_CHECK is one of off, on, oclgrind.*'yes'"):
        setting_of(None)


def test_a_missing_oclgrind_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oclgrind, "find_simulator", lambda: None)
    with pytest.raises(NoDeviceError, match=r"Oclgrind, which is not installed; pip install"):
        heat("oclgrind")
    with pytest.raises(NoDeviceError, match="Oclgrind"):
        Controller("cpu:0", check="oclgrind")


def test_the_simulator_is_no_device_of_the_host() -> None:
    assert not any(is_simulator(device) for device in find_devices())


def test_accessors_that_do_not_compile_are_left_out() -> None:
    source = """
        float twice(__global const float *t, const long t_first, const long t_pitch_0, BOX)
        { CELL; return 2 * HERE(t); }
        __kernel void mine(__global const float *t, __global float *new, TILE(t), TILE(new), BOX)
        { CELL; HERE(new) = twice(t, t_first, t_pitch_0, extent_0, extent_1, lower_0, lower_1); }
    """
    kernel = Kernel.of("mine", source, roles={"new": "out"})
    with Controller("cpu:0", check=True) as controller:
        one, two = controller.tile(EXTENT), controller.tile(EXTENT)
        one.write(3)
        controller.launch(kernel, INNER, t=one, new=two.select(INNER))
        assert two.read().sum() == 6 * INNER.n_cells
        cell = Shape((1, 1), (2, 2))
        with pytest.raises(CheckError) as caught:
            controller.launch(kernel, INNER, t=one.select(cell), new=two.select(INNER))
    assert (caught.value.kind, caught.value.index, caught.value.step) == ("undeclared", (1, 2), 1)


def test_launches_wait_for_host_tasks_and_the_other_way_round() -> None:
    more = Kernel.of("more", "__kernel void more(__global float *u, TILE(u), BOX)"
                             "{ CELL; HERE(u) += 1; }")  # fmt: skip
    with Controller("cpu:0", check=True) as controller, Controller("cpu:0") as other:
        u, v = controller.tile(EXTENT), other.tile(EXTENT)
        for _ in range(5):
            controller.launch(more, INNER, u=u.select(INNER))
            controller.host_task(lambda a, b: np.copyto(b, a + 1), reading(u), updating(v))
            other.host_task(lambda a, b: np.copyto(b, a + 1), reading(v), updating(u))
        assert u.read()[5, 5] == 15 and u.read()[0, 0] == 10


COMMAND = ["-m", "controllers", "run", "examples/patterns/jacobi_2d4.py", "--size", "40", "30",
           "--iterations", "5", "--device", "cpu"]  # fmt: skip
ROOT = Path(__file__).parents[3]


def command(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = [str(ROOT / word) if word.startswith("examples") else word for word in COMMAND]
    return run_ranks(2, [*arguments, *options, "--output", str(tmp_path / "field.npy")])


@pytest.mark.whole
def test_the_command_line_checks(tmp_path: Path) -> None:
    done = command(tmp_path, "--check")
    assert done.returncode == 0, done.stderr
    program = Stencil.of("j", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
    assert np.load(tmp_path / "field.npy").dtype == program.dtype


@pytest.mark.whole
def test_the_command_line_names_the_fault_once_and_writes_nothing(tmp_path: Path) -> None:
    kernel = tmp_path / "mine.cl"
    kernel.write_text("NEW(u) = INDEX(0) == 30 ? NEAR(u, 2, 0) : NEAR(u, 1, 0);")
    done = command(tmp_path, "--check", "--kernel", str(kernel))
    assert done.returncode == 1
    assert done.stderr.count("CheckError: undeclared, rank 1, step 0: kernel 'mine'") == 1
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "field.npy").exists()
