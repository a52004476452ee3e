# SPDX-License-Identifier: MIT
"""Fields at half points on any number of places, and how users read and set them."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from random_staggered import random_staggered
from sample import cases, sample

import controllers as ct
from controllers.run.dry_run import dry_run

N_PLACES = (1, 2, 3, 5)
GRID = ct.Grid(y=6, x=9, lower=0, upper=(3, 9))
ON_HOST: dict[str, Any] = {"devices": "reference"}


@ct.step
def push(vx: Any, p: Any) -> Any:
    return dict(vx=vx - 0.5 * (p.at("x", 1 / 2) - p.at("x", -1 / 2)))


@ct.step
def squeeze(p: Any, vx: Any) -> Any:
    return dict(p=p - 0.5 * (vx.at("x", 1 / 2) - vx.at("x", -1 / 2)))


def pair(**options: Any) -> ct.Computation:
    start: dict[str, Any] = {"p": lambda y, x: y + x, "vx": lambda y, x: 10 * x, **options}
    rules = dict(p=ct.mirror(), vx=ct.mirror(-1))
    return ct.Computation([push, squeeze], GRID, boundary=rules, location=dict(vx="x"), **start)


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locations are one sweep, however few cells there are."""
    monkeypatch.setattr("controllers.plan.outline.launch_nbytes", lambda locations: 0)


def check(number: int, **options: Any) -> None:
    case = random_staggered(number)
    right = ct.reference_run(case.program, case.arrays, case.n_steps, dt=0.1)
    with ct.Computation(case.steps, case.grid, **options, **case.options) as run:
        run.run(case.n_steps)
        for name, values in right.items():
            np.testing.assert_array_equal(run[name], values, err_msg=f"{name} of case {number}")


@pytest.mark.parametrize("device", sample(["reference", "cpu"], 2))
@pytest.mark.parametrize(
    "rule", sample([ct.mirror(), ct.fixed(2), ct.extrapolate(1), ct.keep()], 4)
)
def test_points_on_the_end_see_what_is_beyond_where_nothing_else_does(
    rule: Any, device: str
) -> None:
    above = ct.step(lambda p, v: dict(p=1.5 * p, v=v + p.at("x", 1 / 2)))
    below = ct.step(lambda p, v: dict(v=2 * v - p.at("x", -1 / 2)))
    for steps in (above, below, [above, below]):
        given = dict(location=dict(v="x"), boundary=rule, p=lambda y, x: y + x, v=1)
        with ct.Computation(
            steps, ct.Grid(y=5, x=8), devices=device, places_per_controller=2, dims=(1, 2), **given
        ) as run:
            start = {name: np.asarray(run[name]) for name in run.fields}
            right = ct.reference_run(run.program, start, 3)
            run.run(3)
            for name, values in right.items():
                assert np.array_equal(run[name], values), (name, steps)


@pytest.mark.parametrize("number", cases(1, 60))
@pytest.mark.usefixtures("together")
def test_random_programs_have_the_bits_of_the_reference_on_all_numbers_of_places(
    number: int,
) -> None:
    for n_places in N_PLACES:
        partition, stored = ("bands", "blocks")[number % 2], ("auto", "always")[n_places % 2]
        options = {"partition": partition, "stored": stored, **ON_HOST}
        check(number, places_per_controller=n_places, **options)


@pytest.mark.parametrize("number", cases(1, 20))
@pytest.mark.usefixtures("together")
def test_random_programs_have_the_bits_of_the_reference_on_a_device(number: int) -> None:
    overlap: Any = ("off", "on")[number % 2]
    n_places = N_PLACES[number % 4]
    check(number, places_per_controller=n_places, zero_copy=number % 3 > 0, overlap=overlap)


@pytest.mark.parametrize("number", cases(1, 20))
@pytest.mark.usefixtures("together")
def test_the_checked_mode_finds_nothing_in_random_programs(number: int) -> None:
    check(number, places_per_controller=3, check="on", **ON_HOST)


def test_a_field_at_half_points_is_read_and_set_as_an_array_of_its_own_shape(
    tmp_path: Path,
) -> None:
    with pair(places_per_controller=3, partition="blocks", **ON_HOST) as run:
        right = np.broadcast_to(10.0 * np.arange(10), (6, 10)).copy()
        right[:, [0, 9]] = 0        # the walls, whatever is given
        assert run.vx.shape == (6, 10) and run.p.shape == (6, 9)
        assert np.array_equal(run.vx, right)
        assert np.array_equal(run.vx[1:5:2, -2:], right[1:5:2, -2:])
        run.vx[2, 3:] = values = np.arange(7.0)
        assert np.array_equal(run.vx[2, 3:], [*values[:-1], 0])
        run.vx.save(tmp_path / "vx.npy")
        run.vx.set(7)
        assert run.vx[0].tolist() == [0, *[7] * 8, 0]
        run.vx.load_file(tmp_path / "vx.npy")
        assert np.array_equal(run.vx, np.load(tmp_path / "vx.npy"))
        with pytest.raises(ValueError, match=r"\(6, 10\) cells is needed, got one of \(6, 9\)"):
            run.vx.set(np.zeros((6, 9)))


def test_tiles_of_several_fields_have_boxes_of_their_own() -> None:
    found = {}

    def look(tile: ct.TileView) -> None:
        found[tile.place] = [(str(one.box), one.domain) for one in (tile, tile["p"], tile["vx"])]
        assert tile["vx"].array.shape == tile["vx"].shape

    with pair(dims=(1, 2), places_per_controller=2, **ON_HOST) as run:
        run.load(lambda tile: tile["vx"].write(tile["vx"].indices()[1] + 1.0))
        run.visit(look)
        assert run.vx[0].tolist() == [0, *range(2, 10), 0] and not run.p[...].any()
    cells = ("[0:6, 5:9]", (6, 9))
    assert found[1] == [cells, cells, ("[0:6, 5:10]", (6, 10))]


def test_it_becomes_an_array_with_the_coordinates_of_its_points() -> None:
    pytest.importorskip("xarray")
    with pair(**ON_HOST) as run:
        array = run.vx.to_xarray()
        assert array is not None
        assert array.coords["x"].values.tolist() == [*range(10)]
        assert array.coords["y"].values.tolist() == run.p.to_xarray().coords["y"].values.tolist()
        run.vx.set(array + 1)
        assert run.vx[0, 1] == array[0, 1] + 1


def test_places_may_be_divided_otherwise_under_way() -> None:
    with pair(places_per_controller=3, **ON_HOST) as run:
        start = {name: np.asarray(run[name]) for name in ("p", "vx")}
        run.run(3)
        run.redistribute(partition="blocks", dims=None)
        run.run(2)
        right = ct.reference_run(run.program, start, 5)
        assert all(np.array_equal(run[name], right[name]) for name in right)


def test_plans_say_where_fields_lie_and_the_last_place_has_the_last_points() -> None:
    plan = dry_run([push, squeeze], GRID, 2, boundary=ct.mirror(), location=dict(vx="x"),
                   dims=(1, 2), devices="cpu")  # fmt: skip
    assert "vx lies at half points of x: 6 x 10" in str(plan)
    owned = [[str(plan.plan.owned(name, place)) for place in (0, 1)] for name in ("p", "vx")]
    assert owned == [["[0:6, 0:5]", "[0:6, 5:9]"], ["[0:6, 0:5]", "[0:6, 5:10]"]]
    moved = {v.field: [str(m) for m in e.messages] for v, e in plan.plan.exchanges.items()}
    assert moved == {       # a point reads the cell before it, a cell the point behind it
        "vx": ["place 1 -> 0: [0:6, 5:6], 6 cells"], "p": ["place 0 -> 1: [0:6, 4:5], 6 cells"],
    }  # fmt: skip


@pytest.mark.whole
def test_two_ranks_have_the_bits_of_the_reference() -> None:
    job = run_ranks(2, f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent)!r}]
from controllers.plan import outline
from test_staggered import check
outline.launch_nbytes = lambda locations: 0
for number in range(12):
    check(number, places_per_controller=1 + number % 2, devices="reference")
print("alike")
""", env=helpers_path())
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("alike") == 2


def test_a_step_in_opencl_c_counts_points_and_cells_by_their_numbers() -> None:
    left = ct.opencl_c(
        "vx_new = vx(0, 0) - (VALUE)0.5 * (p(0, 0) - p(0, -1));",
        reads=dict(vx=0, p=[(0, 0), (0, -1)]), writes=("vx",), reference=push, name="left",
    )  # fmt: skip
    start: dict[str, Any] = {"p": lambda y, x: y * x, "vx": lambda x: np.sin(x)}
    options: dict[str, Any] = {"boundary": dict(p=ct.mirror()), "location": dict(vx="x")}
    found = []
    for first in (push, left):
        with ct.Computation(
            [first, squeeze], GRID, places_per_controller=2, devices="cpu:0", **options, **start
        ) as run:
            run.run(4)
            found.append((run.p[...], run.vx[...]))
    assert all(map(np.array_equal, *found))


def test_no_kernel_of_ones_own_computes_fields_of_unlike_locations() -> None:
    both = ct.step(lambda p, vx: dict(p=p / 2, vx=vx / 2))
    kernel = ct.Kernel.of("half", "NEW(p) = HERE(p) / 2; NEW(vx) = HERE(vx) / 2;")
    with pytest.raises(ValueError, match="unlike locations, which no kernel of one's own"):
        dry_run(both, GRID, 1, location=dict(vx="x"), kernel=kernel)
    with pytest.raises(ValueError, match="fields lie at half points"):
        dry_run(ct.step(lambda vx: dict(vx=vx / 2)), GRID, 1, location=dict(vx="x"),
                steps_per_launch=2)  # fmt: skip


def test_what_is_stored_at_half_points_is_computed_around_the_cells_of_each_place() -> None:
    @ct.step
    def diffuse(p: Any, k: Any) -> Any:
        flux = ct.stored(k * (p.at("x", 1 / 2) - p.at("x", -1 / 2)))
        return dict(p=p + flux.at("x", 1 / 2) - flux.at("x", -1 / 2))

    p, k = np.random.default_rng(3).random((2, 6, 9))
    k = np.column_stack([k, k[:, 0]])
    options: dict[str, Any] = {"boundary": dict(p=ct.fixed(0.5)), "location": dict(k="x")}
    with ct.Computation(
        diffuse, GRID, stored="always", places_per_controller=5, partition="blocks", p=p, k=k,
        **ON_HOST, **options,
    ) as run:  # fmt: skip
        assert run.plan.program.temporaries
        run.run(3)
        for _ in range(3):
            flux = k * np.diff(np.pad(p, ((0, 0), (1, 1)), constant_values=0.5), axis=1)
            p = p + flux[:, 1:] - flux[:, :-1]
        assert np.array_equal(run.p, p)

    @ct.step
    def both(p: Any, k: Any) -> Any:
        flux = ct.stored(k * k + 1)
        return dict(p=flux.at("x", 1 / 2) - flux.at("x", -1 / 2), k=flux.at("x", 1))

    sides: Any = {"boundary": ct.mirror(), "location": dict(k="x")}
    text = str(dry_run(both, GRID, 1, stored="always", **sides))
    assert "    computes what others read of it, 0..0 x 0..1 around the cells of each place" in text
    assert "both_of_k: a stored value is computed where it is read, at one offset alone" in text
    found: list[Any] = []
    for stored in ("always", "never"):
        with ct.Computation(
            both, GRID, stored=stored, places_per_controller=5, partition="blocks", p=p, k=k,
            **ON_HOST, **sides,
        ) as run:  # fmt: skip
            run.run(3)
            found.append((len(run.plan.sweeps), np.asarray(run.p), np.asarray(run.k)))
    (n_kept, *kept), (n_again, *again) = found
    assert n_kept == n_again + 1 and all(map(np.array_equal, kept, again))
