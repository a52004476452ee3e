# SPDX-License-Identifier: MIT
"""Fields by name, initial fields, and what objects look like when they are printed."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import run_ranks

import controllers as ct
from controllers import (
    Computation,
    Division,
    Execution,
    Field,
    Program,
    Read,
    Stage,
    Stencil,
    TileView,
    devices,
    dry_run,
    reference_run,
    stencil_computation,
)
from hitmap import Layout, SerialCommunicator, Shape

STAR = Stencil.of("star", pattern=[[0, 1, 0], [1, 0, 1], [0, 1, 0]], factor=4)
FIELD = np.random.default_rng(0).random((12, 9))
ON = Execution(devices=["reference"] * 2)
NEAR = ((-1, 1),)
COUPLED = Program(
    "coupled",
    (Field("u", "float32"), Field("v", "float32")),
    (Stage("one", {"u": Read("u", (-1,)) + Read("u", (1,))}, NEAR),
     Stage("two", {"v": Read("v", (0,)) + Read("u", (0,))}, NEAR)),
)  # fmt: skip


def started(program: Any = STAR, sizes: Any = FIELD, **options: Any) -> Computation:
    return Computation(program, sizes, comm=SerialCommunicator(), **{"execution": ON, **options})


def expected(n_steps: int, dtype: str = "float64") -> np.ndarray:
    program = STAR.program(dtype)
    return reference_run(program, FIELD.astype(dtype), n_steps, (False, False))


def test_an_array_gives_sizes_dtype_and_the_initial_field() -> None:
    with started() as run:
        assert (run.domain.extent, run.program.dtype) == (FIELD.shape, "float64")
        assert np.array_equal(run.gather(), FIELD)
        run.run(3)
        assert np.array_equal(run.gather(), expected(3))
    with started(dtype="f4") as run:
        run.run(3)
        assert np.array_equal(run.gather(), expected(3, "float32"))
    results: list[np.ndarray] = []
    stencil_computation(
        FIELD, None, [[0, 1, 0], [1, 0, 1], [0, 1, 0]], 4, 2, dtype=np.float64, devices="reference",
        comm=SerialCommunicator(), output=lambda tile: results.append(tile.array.copy()),
    )  # fmt: skip
    assert np.array_equal(results[0], expected(2))


def test_a_field_by_its_name_has_the_verbs(tmp_path: Path) -> None:
    with started(sizes=FIELD.shape) as run:
        u = run["u"]
        u.load(lambda tile: tile.write(FIELD[tile.box.slices((0, 0))]))
        run.run(2)
        run.redistribute(weights=[1, 3])
        run.run(1)
        assert np.array_equal(u.gather(), expected(3))
        u.save(tmp_path / "u.npy")
        u.scatter(FIELD)
        run.run(1)
        u.load_file(tmp_path / "u.npy")
        seen = np.zeros_like(FIELD)

        def see(tile: TileView) -> None:
            seen[tile.box.slices((0, 0))] = tile["u"].array

        u.visit(see)
        assert np.array_equal(seen, expected(3))
        with pytest.raises(KeyError, match="no field 'v'; there are u"):
            run["v"]


def test_with_several_fields_the_short_form_names_them() -> None:
    with started(COUPLED, (9,), execution=Execution(devices="reference")) as run:
        assert run.fields == ("u", "v")
        for call in (run.gather, lambda: run.scatter(np.zeros(9)), lambda: run.save("u.npy")):
            with pytest.raises(ValueError, match=r"fields u, v; say which .*computation\['u'\]"):
                call()

        def init(tile: TileView) -> None:
            tile["u"].array[...] = np.arange(9)
            tile["v"].write(np.ones(9))
            with pytest.raises(ValueError, match=r"fields u, v; .*tile\['u'\].array"):
                _ = tile.array
            with pytest.raises(KeyError, match="no field 'w' here; there are u, v"):
                tile["w"]

        run.load(init)
        run["v"].scatter(np.full(9, 2.0))
        assert np.array_equal(run["u"].gather(), np.arange(9))
        assert np.array_equal(run["v"].gather(), np.full(9, 2))
        with pytest.raises(ZeroDivisionError):
            run["u"].load(lambda tile: 1 // 0)
        run["v"].scatter(np.zeros(9))
        with pytest.raises(RuntimeError, match="the field is torn, as load was broken off"):
            run["v"].gather()
        run["u"].scatter(np.zeros(9))
        assert np.array_equal(run["v"].gather(), np.zeros(9))


def test_what_methods_keep_between_stages_is_listed_no_more_and_set_with_the_field() -> None:
    decay = ct.rk3(lambda u: dict(u=-u[1]), dt=0.5)
    rim = {"boundary": ct.keep(), "devices": "reference"}
    with ct.Computation(decay, ct.Grid(x=6), u=1, **rim) as run:
        assert run.fields == ("u",) and "u_1" not in dir(run) and "u_1" not in repr(run)
        assert run.program.dtypes.keys() == {"u", "u_1", "u_2"}
        for number, by in enumerate((
            lambda u: run.load(lambda tile: np.copyto(tile.array, u)), run.scatter, run.u.set,
        )):  # fmt: skip
            start = FIELD[number, :6].astype("float64")
            by(start)
            assert np.array_equal(run.u_1, start) and np.array_equal(run["u_2"], start)
            run.run(2)
            right = ct.reference_run(run.program, dict.fromkeys(("u", "u_1", "u_2"), start), 2)
            assert np.array_equal(run.gather(), right["u"]) and run.u[-1] == start[-1]
        assert run.step == 4, "steps count anew after load and scatter, on after set"


def test_dims_and_layouts_divide_a_computation() -> None:
    ready = Layout.weighted_blocks(Shape.of_extent(FIELD.shape), [1, 2, 2, 4])
    with started(dims=(2, 1)) as run:
        run.run(1)
        run.redistribute(layout=ready, places_per_controller=2)
        assert run.layout is ready
        run.run(1)
        run.redistribute(Division(dims=(1, 2)))
        run.run(1)
        assert np.array_equal(run.gather(), expected(3))
        assert [box.extent for box in run.layout.owned] == [(12, 5), (12, 4)]
        with pytest.raises(ValueError, match="layout of 4 places.*2 controllers with 1.*2 in all"):
            run.redistribute(Division(layout=ready))
        assert np.array_equal(run.gather(), expected(3))
    planned = dry_run(STAR, FIELD.shape, 2, dims=(2, 2), places_per_controller=2)
    assert [where.rank for where in planned.plan.locations] == [0, 0, 1, 1]


def test_what_is_printed_can_be_read() -> None:
    with started() as run:
        run.run(3)
        for one, words in (
            (run, "Computation of star: u float64, 12 x 9 cells, places: 2 on reference, steps"),
            (run["u"], f"u of {run.calls.owner}: 12 x 9 cells of float64"),
            (run.layout, "Layout of 12 x 9 cells, places: 2"),
            (run.program, "Program star: u float64; star sets u; 2 axes, math strict"),
            (run.plan, "Plan of star: 12 x 9 cells, places: 2, steps per launch: "),
            (run.report(), "Report: 3 steps of 108 cells in "),
            (STAR, "Stencil star: 4 weights over (-1, 1) x (-1, 1), factor 4"),
            (dry_run(STAR, (9, 9), 2), "DryRun of <Plan of star: 9 x 9 cells"),
            (devices()[-1], "Device reference: reference, 1 compute units"),
        ):
            assert words in repr(one) and len(repr(one)) < 160, repr(one)


JOB = """
import numpy as np
from controllers import Computation, Division, Stencil
from hitmap import Layout, Shape, default_communicator
comm = default_communicator()
star = Stencil.of("star", pattern=[1, 0, 1], factor=2)
with Computation(star, np.arange(9.0) + 100 * comm.rank, devices="reference") as run:
    whole = run["u"].gather()
    assert comm.rank or (whole == np.arange(9)).all(), "that of rank 0 counts"
    calls = (
        lambda: run.redistribute(layout=Layout.weighted(Shape.of_extent((9,)), [1, 1 + comm.rank])),
        lambda: run.redistribute(dims=(2,) if comm.rank else None),
        lambda: Computation(star, 9, devices="reference", dims=[2.5 if comm.rank else 2]),
        lambda: Computation(star, np.zeros(9) if comm.rank else 9, devices="reference"),
    )
    for call in calls:
        try:
            call()
        except (TypeError, ValueError) as error:
            said = comm.gather(str(error))
            if comm.rank == 0:
                print(*said, sep="\\n")
    run.run(1)
"""


@pytest.mark.whole
def test_ranks_must_say_the_same_of_layouts_and_arrays() -> None:
    done = run_ranks(2, JOB)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 8
    expected = ["layout must", "dims must", "dims: a whole", "initial must"]
    for line, words in zip(said, [words for words in expected for _ in range(2)], strict=True):
        assert words in line
