# SPDX-License-Identifier: MIT
"""Scalars, indices and coordinates in whole runs: the bits of the reference, and no builds."""
from __future__ import annotations

import inspect
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpi_jobs import run_ranks
from sample import cases, sample

import controllers
from controllers import Computation, Field, Program, Read, Stage, reference_run
from controllers.device import assign, choose, find_devices
from controllers.executor import opencl
from controllers.executor.opencl import OpenCLExecutor
from controllers.placement.capacity import nbytes_needed
from controllers.program.application import apply_sweep
from controllers.program.coordinates import Coordinates
from controllers.program.expression import Coordinate, Expression, Index, Scalar, where
from controllers.program.scalars import KEYWORDS, Parameter
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap import Shape
from hitmap.strided import Geometry

Array = npt.NDArray[Any]
U, V = Read("u", (0, 0)), Read("v", (0, 0))
T, DT, A, B = Scalar("t"), Scalar("dt"), Scalar("a"), Scalar("b")
SCALARS = {"a": Parameter(0.75), "b": Parameter(), "c": np.sqrt(A) * B, "d": np.cos(T) + A}
GRID = Coordinates(("y", "x"), (-1.0, 3.0), (0.1, 0.3))


def leaf(rng: random.Random, *, steady: bool = False) -> Expression:
    """A number that a stage is given, or reads."""
    offset = rng.randint(-3, 3)
    axis = rng.randrange(2)
    given = [A, B, Scalar("c"), A / 3 + B, DT]
    if not steady:
        given += [T, Scalar("d"), np.exp(-T * A), Coordinate(axis, rng.random() < 0.5, offset)]
        given += [where(Index(axis, offset) == rng.randint(0, 9), A, V)]
        given += [where(Index(0) + Index(1) * 2 < rng.randint(0, 30), U, T)]
    return rng.choice(given)


def tree(rng: random.Random, n_leaves: int, **how: bool) -> Expression:
    if n_leaves == 1:
        reach = rng.randint(-1, 1), rng.randint(-1, 1)
        return Read(rng.choice("uv"), reach) if rng.random() < 0.5 else leaf(rng, **how)
    left = rng.randint(1, n_leaves - 1)
    one, other = tree(rng, left, **how), tree(rng, n_leaves - left, **how)
    return rng.choice([one + other, one - other, one * 0.5 - other, one * other])


def program(seed: int, dtype: str = "float32", **how: bool) -> Program:
    rng, shape = random.Random(seed), ((-1, 1), (-1, 1))
    stages = (
        Stage("flow", {"u": U + tree(rng, 5, **how) * 0.01}, shape),
        Stage("react", {"v": V * 0.5 + tree(rng, 4, **how) * 0.01}, shape),
    )
    fields = Field("u", dtype), Field("v", dtype)
    return Program("given", fields, stages[: rng.randint(1, 2)], scalars=SCALARS, grid=GRID)


def start(program: Program, extent: tuple[int, ...] = (23, 19)) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    return {field.name: rng.random(extent).astype(program.dtype) for field in program.fields}


def fields_of(run: Computation) -> dict[str, Array]:
    return {name: run[name].gather() for name in run.fields}  # type: ignore[misc]


def check(made: Program, periodic: tuple[bool, bool], n_steps: int, **how: Any) -> Computation:
    """A run, with its parameters changed on the way, has the bits of the reference."""
    arrays = start(made)
    words = ["periodic" if wraps else "fixed" for wraps in periodic]
    with Computation(made, (23, 19), boundary=words, dt=0.125, **how) as run:
        for name, array in arrays.items():
            run[name].scatter(array)
        run.run(n_steps, b=0.3)
        right = reference_run(made, arrays, n_steps, periodic, {"b": 0.3}, dt=0.125)
        for name, array in fields_of(run).items():
            assert array.tobytes() == right[name].tobytes(), name
        assert (run.step, run.time) == (n_steps, n_steps * 0.125)
        if not made.changing:
            run.run(2, a=1.25)
            right = reference_run(made, right, 2, periodic, {"b": 0.3, "a": 1.25}, dt=0.125)
            for name, array in fields_of(run).items():
                assert array.tobytes() == right[name].tobytes(), name
    return run


@pytest.mark.parametrize("seed", cases(2, 60))
def test_random_programs_have_the_bits_of_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    made = program(seed, rng.choice(["float32", "float64"]), steady=seed % 3 == 0)
    periodic = rng.random() < 0.5, rng.random() < 0.5
    devices = "reference" if seed % 3 == 1 else "cpu"
    places = rng.choice([1, 2, 3, 5])
    check(made, periodic, 3 + 40 * (seed % 3 == 1), devices=devices, places_per_controller=places)


@pytest.mark.parametrize(
    "kind, how",
    sample([("cpu", "vectors of"), ("other", "one cell"), ("gpu", "marching")], 3),
)
def test_launches_by_all_strategies_take_the_scalars_of_now(kind: str, how: str) -> None:
    around = sum(Read("u", (0, n)) * (A + n) for n in (-1, 0, 1))
    stage = Stage("push", {"u": (U + DT * around) / (1 + np.sin(A) * B)}, ((0, 0), (-1, 1)))
    made = Program("push", (Field("u", "float32"),), (stage,), scalars=SCALARS)
    (stage,) = made.stages
    (device,) = assign(choose(["cpu:0"], find_devices()), 0, 1)
    executor = OpenCLExecutor(replace(device, kind=kind), zero_copy=False)
    box, over, dtype = Shape((0, 0), (9, 640)), Shape((0, 1), (9, 600)), np.dtype("float32")
    old, new = (executor.tile(Geometry.dense(box), dtype) for _ in range(2))
    values = np.random.default_rng(2).random(box.extent).astype(dtype)
    executor.move_to(old, box, values)
    given, sweep = Surroundings.usual(made, box), Sweep.of(stage, over)
    launch = executor.launch_command(made, sweep, {"u": old}, {"u": new}, over, given)
    ((_, text),) = executor._kernels
    assert how in text.splitlines()[0]
    results = set()
    for a in (0.5, 0.5, -2.25):
        given.change(made.rules.at({"a": a, "b": 3.0, "dt": 0.1}, 0.0))
        launch(None).wait()
        found = executor.move_from(new, over)
        right = apply_sweep(
            sweep, lambda _, cells: values[cells.slices((0, 0))], over, "float32", given
        )
        assert found.tobytes() == right["u"].tobytes()
        results.add(found.tobytes())
    assert len(results) == 2


def test_a_change_of_parameters_builds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = program(0, steady=True)
    with Computation(made, (23, 19), devices="cpu", dt=0.5) as run:
        for name, array in start(made).items():
            run[name].scatter(array)
        builds: list[str] = []
        monkeypatch.setattr(opencl, "build", lambda *given, **more: builds.append(str(given)))
        monkeypatch.setattr(opencl, "compiled", lambda *given, **more: builds.append(str(given)))
        results = []
        for b in (0.5, 1.5):
            run.run(1, b=b)
            results.append(fields_of(run)["u"].tobytes())
        assert results[0] != results[1] and not builds


def test_places_far_ahead_of_their_devices_take_the_scalars_of_their_step() -> None:
    stage = Stage("add", {"u": U + T * T}, ((0, 0), (0, 0)))
    made = Program("add", (Field("u", "float64"),), (stage,))
    with Computation(made, np.zeros((12, 8)), dt=1.0, places_per_controller=3) as run:
        run.run(200)
        squares = sum(n * n for n in range(200))
        assert np.array_equal(run.gather(), np.full((12, 8), squares))  # type: ignore[arg-type]


def test_time_goes_on_from_run_to_run_and_begins_anew_with_the_fields() -> None:
    made = program(3)
    with Computation(made, (23, 19), devices="reference") as run:
        arrays = start(made)
        with pytest.raises(ValueError, match="'b' has no value"):
            run.run(1, dt=0.1)
        assert run.time == run.step == 0
        run.run(3, b=1.0, dt=0.1)
        assert run.time == 3 * 0.1
        assert "\nscalars: a = 0.75, b = 1, dt = 0.1\n" in run.report().table()
        assert run.report().as_dict()["scalars"] == {"a": 0.75, "b": 1.0, "dt": 0.1}
        run.run(3, dt=0.2)      # from here on: 0.3 and so many steps of it
        assert run.time == 3 * 0.1 + 3 * 0.2 and run.step == 6
        run.redistribute(places_per_controller=2)
        run.run(1)
        assert run.time == 3 * 0.1 + 4 * 0.2
        first, *others = run.fields
        run[first].scatter(arrays[first])
        assert run.step == (0 if not others else 7)
        for name in others:
            run[name].scatter(arrays[name])
    halve = controllers.Stencil.of("halve", [(0, 0)], [1], 2)
    with Computation(halve, 4, dt=0.5, devices="reference") as plain:
        plain.run(3)
        assert plain.time == 1.5


@pytest.mark.parametrize(
    "given, error, says",
    [
        ({"A": 1.0}, ValueError, "no scalar 'A' .there are a, b, dt"),
        ({"d": 1.0}, ValueError, "'d' is computed of others"),
        ({"t": 1.0}, ValueError, "'t' is computed"),
        ({"a": "1"}, TypeError, "number"),
        ({"b": math.nan}, ValueError, "finite"),
    ],
)
def test_what_is_no_value_of_a_parameter_is_refused_and_changes_nothing(
    given: dict[str, Any], error: type[Exception], says: str
) -> None:
    made = program(1)
    with Computation(made, (23, 19), devices="reference", dt=0.1) as run:
        run.run(1, b=1.0)
        with pytest.raises(error, match=says):
            run.run(1, **{"a": 5.0, **given})
        assert run.step == 1
        assert run._engine.numbers.parameters == {"a": 0.75, "b": 1.0, "dt": 0.1}
    with pytest.raises(TypeError, match="number"):
        Computation(made, (23, 19), devices="reference", dt="1")  # type: ignore[arg-type]


@pytest.mark.parametrize("devices", sample(["reference", "cpu"], 2))
def test_the_checked_mode_and_another_layout_go_on_with_scalars(devices: str) -> None:
    made, arrays = program(4), start(program(4))
    how: Any = {"check": "on", "places_per_controller": 2, "devices": devices}
    with Computation(made, (23, 19), dt=0.125, **how) as run:
        for name, array in arrays.items():
            run[name].scatter(array)
        run.run(3, b=0.3)
        run.redistribute(places_per_controller=3)
        run.run(2)
        right = reference_run(made, arrays, 5, (False, False), {"b": 0.3}, dt=0.125)
        for name, array in fields_of(run).items():
            assert array.tobytes() == right[name].tobytes(), name


@pytest.mark.whole
def test_tuning_under_way_and_dry_runs_take_programs_with_scalars() -> None:
    made, arrays = program(0, steady=True), start(program(0, steady=True), (64, 64))
    with Computation(made, (64, 64), dt=0.125, devices="cpu", tune=0.2) as run:
        for name, array in arrays.items():
            run[name].scatter(array)
        run.run(60, b=0.3)
        right = reference_run(made, arrays, 60, (False, False), {"b": 0.3}, dt=0.125)
        for name, array in fields_of(run).items():
            assert array.tobytes() == right[name].tobytes(), name
        told = run.explain()
    assert "scalar a: a parameter, 0.75 by default" in told and "scalar b: a parameter\n" in told
    assert "scalar c = sqrt(a) * b, once per run" in told
    assert "scalar d = cos(t) + a, in each step" in str(controllers.dry_run(made, (64, 64), 2))


def test_tables_of_coordinates_are_counted_before_they_are_allocated() -> None:
    shape, x = ((-1, 1), (-1, 1)), Coordinate(1) + Coordinate(1, False, -2) + Coordinate(0, True)
    stage = Stage("mix", {"u": where(Index(0, 3) == 4, U, Read("u", (1, 1)) * x)}, shape)
    made = Program("mix", (Field("u", "float32"),), (stage,), grid=GRID)
    with Computation(made, (23, 19), devices="cpu", places_per_controller=2) as run:
        executor = run._engine.executors[0]
        assert executor.ledger.as_dict()["constants"] > 0
        assert executor.ledger.on_device == nbytes_needed(run.plan, executor, run.plan.places)


def test_parameters_have_other_names_than_what_run_takes() -> None:
    kinds = {p.name: p.kind for p in inspect.signature(Computation.run).parameters.values()}
    assert [*kinds] == ["self", *KEYWORDS, "scalars"]


def test_a_body_of_ones_own_sees_the_scalars_of_its_stage() -> None:
    stage = Stage("decay", {"u": U * (A + T) + DT}, ((0, 0), (0, 0)))
    made = Program("decay", (Field("u", "float32"),), (stage,), scalars={"a": Parameter(0.5)})
    own = controllers.Kernel.of("own", "NEW(u) = HERE(u) * s_scalar_0 + s_dt;")
    array = np.random.default_rng(3).random((9, 8)).astype("float32")
    with Computation(made, array, kernel=own, dt=0.25, devices="cpu") as run:
        run.run(3)
        right = reference_run(made, array, 3, (False, False), dt=0.25)
        assert np.array_equal(run.gather(), right)  # type: ignore[arg-type]


RANKS = """
import numpy as np, sys
from hitmap import default_communicator
import controllers
from controllers import Computation, Field, Program, Read, Stage, reference_run
from controllers.program.expression import Scalar
from controllers.program.functions import FUNCTIONS
U, T, K = Read("u", (0,)), Scalar("t"), Scalar("k")
stage = Stage("add", {"u": U * 0.5 + np.exp(-T) * Read("u", (1,)) + np.sin(K)}, ((-1, 1),))
made = Program("add", (Field("u", "float64"),), (stage,), scalars={"k": PARAMETER})
comm, start = default_communicator(), np.linspace(0, 1, 40)
right = reference_run(made, start, 903, (False,), {"k": 2.0}, 0.01)
def stop(done, total):
    if comm.rank == 1 and done > 20:
        raise KeyError("enough")
if comm.rank == 1:      # another host, which rounds otherwise
    for name in ("exp", "sin"):
        object.__setattr__(FUNCTIONS[name], "compute", lambda values: values * 0)
with Computation(made, start, dt=0.01, devices="reference", comm=comm) as run:
    run.run(100, k=2.0)
    try:
        run.run(700, stop)
    except (KeyError, RuntimeError):    # wherever that was
        pass
    run.run(903 - run.step)
    found = run.gather()
    try:
        run.run(1, k=comm.rank)
    except ValueError as error:
        print("refused" if "scalars" in str(error) else error, flush=True)
if comm.rank == 0:
    print("right" if found.tobytes() == right.tobytes() else found - right)
""".replace("PARAMETER", "__import__('controllers').program.scalars.Parameter()")


@pytest.mark.whole
def test_all_ranks_compute_with_the_scalars_of_rank_0() -> None:
    job = run_ranks(2, RANKS)
    assert job.returncode == 0, job.stdout + job.stderr
    counts = {word: job.stdout.count(word) for word in ("refused", "right")}
    assert counts == {"refused": 2, "right": 1}, job.stdout + job.stderr
