# SPDX-License-Identifier: MIT
"""The checked mode on programs that rename fields, and on plans with tasks of the host."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from controllers import Boundary, CheckError, Computation, fixed, reference_run
from controllers.check import CheckedEngine
from controllers.check.versions import Versions
from controllers.device import reference_device
from controllers.executor.reference import ReferenceExecutor
from controllers.plan import HostTask, Location, Plan
from controllers.program.expression import Read
from controllers.program.program import Field, Program
from controllers.program.stage import Stage
from hitmap import Layout, SerialCommunicator, Shape

EXTENT = (12, 8)
DOMAIN = Shape.of_extent(EXTENT)
FIXED = (False, False)
STAR = ((-1, 1), (-1, 1))
AROUND = sum(Read("u", offset) for offset in ((-1, 0), (1, 0), (0, -1), (0, 1)))
LEAP = Stage("leap", {"u": AROUND - 2 * Read("u", (0, 0)) - Read("old", (0, 0))}, STAR)
FIELDS = tuple(Field(name, "float64") for name in ("u", "old", "older"))
WAVE = Program("wave", FIELDS[:2], (LEAP,), renames={"old": "u"})
LATE = Program("late", FIELDS, (LEAP,), renames={"old": "u", "older": "old"})


def arrays(program: Program) -> dict[str, npt.NDArray[Any]]:
    rng = np.random.default_rng(0)
    return {field.name: rng.random(EXTENT) for field in program.fields}


def test_fields_may_be_set_one_by_one_while_others_are_renamed() -> None:
    given = arrays(LATE)
    with Computation(
        LATE, EXTENT, check=True, devices="cpu:0", places_per_controller=3,
        comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        for name, values in given.items():
            run[name].scatter(values)
        run.run(3)
        run["old"].scatter(given["old"])
        run.run(4)
        results = {name: run[name].gather() for name in given}
    midway = reference_run(LATE, given, 3, FIXED)
    right = reference_run(LATE, {**midway, "old": given["old"]}, 4, FIXED)
    assert all(np.array_equal(results[name], right[name]) for name in given)


def engine_of(plan: Plan) -> CheckedEngine:
    executors = {place: ReferenceExecutor(reference_device()) for place in plan.places}
    engine = CheckedEngine(plan, executors, SerialCommunicator())
    for place in plan.places:
        owned = plan.layout.owned[place]
        for field, values in arrays(plan.program).items():
            for tile in engine.to_set(field, place):
                executors[place].move_to(tile, owned, values[owned.slices((0, 0))])
    engine.loaded()
    return engine


def plan_of(program: Program, *tasks: HostTask) -> Plan:
    homes = [Location(0, 0), Location(0, 1)]
    return Plan(program, Layout.bands(DOMAIN, 2), FIXED, homes, host_tasks=tasks)


def test_buffers_that_change_roles_wrongly_are_found() -> None:
    plan = plan_of(LATE)
    plan.program = replace(LATE, renames={"older": "u", "old": "older"})
    engine = engine_of(plan)
    with pytest.raises(CheckError) as caught:
        engine.run(2)
    engine.close()
    assert (caught.value.kind, caught.value.field) == ("stale", "old")
    assert "of u as it was loaded; it needs cell" in str(caught.value)
    assert "of older as it was loaded" in str(caught.value)


def test_a_renamed_field_that_no_stage_reads_is_looked_at_too() -> None:
    plan = plan_of(replace(LATE, renames={"old": "u"}))
    plan.program = LATE
    engine = engine_of(plan)
    with pytest.raises(CheckError, match="place 0 ends with older at") as caught:
        engine.run(2)
    engine.close()
    assert (caught.value.kind, caught.value.field) == ("stale", "older")


def test_the_halo_of_a_renamed_field_must_have_been_exchanged() -> None:
    near = Stage("near", {"u": Read("u", (0, 0)) - Read("old", (-1, 0))}, ((-1, 0), (0, 0)))
    plan = plan_of(Program("near", FIELDS[:2], (near,), renames={"old": "u"}))
    assert any(operation.bundle is not None for operation in plan.operations)
    plan.__dict__["operations"] = tuple(
        replace(operation, after=()) for operation in plan.operations
        if operation.bundle is None
    )  # fmt: skip
    engine = engine_of(plan)
    with pytest.raises(CheckError, match="reads old at") as caught:
        engine.run(4)
    engine.close()
    assert caught.value.kind in ("stale", "unwritten", "unordered")


def test_a_sweep_that_writes_over_what_others_of_its_cells_read_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = plan_of(WAVE)
    assert [sweep.stage.overwrites for sweep in here.sweeps] == [{"u": "old"}]
    engine = engine_of(here)
    engine.run(3)
    engine.close()
    monkeypatch.setattr("controllers.program.spared.spares", lambda sweep, use: True)
    blur = Stage("blur", {"u": AROUND / 4}, STAR)
    with Computation(
        Program("blur", FIELDS[:1], (blur,)), arrays(WAVE)["u"], check=True,
        devices="cpu:0", comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        assert run.plan.sweeps[0].stage.overwrites == {"u": "u"}
        with pytest.raises(CheckError, match="gives u at .* another value than the reference"):
            run.run(2)


ADD = Stage("add", {"u": Read("u", (0, 0)) + Read("old", (0, 0))}, ((0, 0), (0, 0)))
ADDED = Program("added", FIELDS[:2], (ADD,))


def grow(cells: Mapping[str, npt.NDArray[Any]]) -> None:
    cells["old"][...] += 1


def ran(*tasks: HostTask, change: Callable[[Plan], None] = lambda plan: None) -> None:
    plan = plan_of(ADDED, *tasks)
    change(plan)
    engine = engine_of(plan)
    try:
        engine.run(3)
        for place in plan.places:
            cells = plan.layout.owned[place].slices((0, 0))
            u, old = (arrays(ADDED)[name][cells] for name in ("u", "old"))
            for _ in range(3):
                u, old = u + old, old + 1
            assert np.array_equal(engine.newest("u", place).view(plan.layout.owned[place]), u)
    finally:
        engine.close()


def test_tasks_of_the_host_raise_no_alarm() -> None:
    seen: list[float] = []
    ran(HostTask("grow", grow, ("old",), ("old",)),
        HostTask("look", lambda cells: seen.append(cells["old"].sum()), ("u", "old")))  # fmt: skip
    assert len(seen) == 6


def without(verb: str) -> Callable[[Plan], None]:
    def change(plan: Plan) -> None:
        plan.__dict__["operations"] = tuple(
            replace(operation, after=()) for operation in plan.operations if operation.verb != verb
        )

    return change


def test_a_task_that_is_left_out_is_found() -> None:
    with pytest.raises(CheckError, match="old at .* as it was loaded; it needs") as caught:
        ran(HostTask("grow", grow, ("old",), ("old",)), change=without("host"))
    assert caught.value.kind == "stale"


def test_a_task_that_finds_the_field_of_another_step_is_named() -> None:
    look = HostTask("look", lambda cells: None, ("u",))
    with pytest.raises(CheckError, match="the host task look at place 0 reads u at") as caught:
        ran(look, change=without("launch"))
    assert (caught.value.kind, caught.value.step) == ("stale", 0)


def test_a_task_that_writes_what_it_was_given_to_read_is_named() -> None:
    with pytest.raises(CheckError, match="the host task grow at place 0 writes old at .0, 0") as c:
        ran(HostTask("grow", grow, ("old",)))
    assert c.value.kind == "read-only"


def test_a_task_that_does_not_wait_is_found() -> None:
    def hurried(plan: Plan) -> None:
        plan.__dict__["operations"] = tuple(
            replace(operation, after=()) if operation.verb == "host" else operation
            for operation in plan.operations
        )

    with pytest.raises(CheckError):
        ran(HostTask("grow", grow, ("old",), ("old",)), change=hurried)


@pytest.mark.parametrize(("renames", "field", "step", "origin"), [
    ({"b": "a"}, "b", 0, ("b", 0)),
    ({"b": "a"}, "b", 4, ("a", 3)),
    ({"b": "a", "c": "b"}, "c", 4, ("a", 2)),
    ({"b": "a", "c": "b"}, "c", 1, ("b", 0)),
    ({"a": "b", "b": "a"}, "a", 5, ("b", 0)),
    ({"a": "b", "b": "a"}, "a", 10**9, ("a", 0)),
    ({"c": "a", "a": "b", "b": "a"}, "c", 10**9 + 2, ("b", 0)),
])  # fmt: skip
def test_renamed_fields_have_the_values_of_others_as_they_were(
    renames: dict[str, str], field: str, step: int, origin: tuple[str, int]
) -> None:
    versions = Versions((), DOMAIN, renames, [HostTask("t", grow, writes=("k",))] * 2)
    name, time = origin
    assert np.array_equal(
        versions.stamps(field, DOMAIN, 2 * step), versions.stamps(name, DOMAIN, 2 * time)
    )


def test_cells_outside_of_renamed_fields_are_those_of_the_field_they_stood_for() -> None:
    walls = Boundary.of({0: "periodic", 1: ("keep", "mirror"), 2: "mirror"}, 3)
    read = Read("v", (1, -1, 1)) + Read("u", (0, 0, -1)) + Read("old", (0, 0, 1))
    program = Program(
        "turns", tuple(Field(name, "float32", walls) for name in ("old", "v", "u")),
        (Stage("mean", {"old": read / 3}, ((-1, 1),) * 3),), renames={"v": "old", "u": "v"},
    )  # fmt: skip
    rng = np.random.default_rng(4)
    start = {name: rng.random((5, 3, 3), np.float32) for name in ("old", "v", "u")}
    right = reference_run(program, start, 4)
    with Computation(program, (5, 3, 3), devices="reference", check="on") as computation:
        for name, values in start.items():
            computation[name].scatter(values)
        computation.run(4)
        for name, values in right.items():
            assert np.array_equal(computation[name].gather(), values)


def test_cells_outside_that_never_change_are_the_same_of_fields_that_renames_join() -> None:
    walls = Boundary.of({0: fixed(2), 1: (fixed(0), fixed(1))}, 2)
    read = Read("u", (-1, 0)) - Read("old", (1, -1)) + Read("older", (0, 1))
    program = Program(
        "walls", tuple(Field(name, "float32", walls) for name in ("u", "old", "older")),
        (Stage("leap", {"u": read / 2}, STAR),), renames={"old": "u", "older": "old"},
    )  # fmt: skip
    start = {name: values.astype(np.float32) for name, values in arrays(program).items()}
    with Computation(
        program, EXTENT, devices="reference", places_per_controller=2, check=True,
        comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        for name, values in start.items():
            run[name].scatter(values)
        run.run(5)
        right = reference_run(program, start, 5)
        assert all(np.array_equal(run[name].gather(), right[name]) for name in start)
