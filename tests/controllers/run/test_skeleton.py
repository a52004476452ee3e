# SPDX-License-Identifier: MIT
"""`stencil_computation`, and the `Computation` under it, as their users see them."""
from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpi_jobs import HANGS_S, SOON_S, run_group, run_ranks
from sample import sample

from controllers import Computation, Report, Stencil, TileView, reference_run, stencil_computation
from hitmap.comm import SerialCommunicator

STAR = [[0, 1, 0], [1, 2, 1], [0, 1, 0]]
NEAR = [(-1, 1), (-1, 1)]
PROGRAM = Stencil.of("star", NEAR, STAR, 6).program("float32")


def random_field(*extent: int, dtype: str = "float32") -> npt.NDArray[Any]:
    return np.random.default_rng(sum(extent)).normal(size=extent).astype(dtype)


def loader(field: npt.NDArray[Any]) -> Callable[[TileView], None]:
    """An `init` that sets the cells of `field`."""

    def init(tile: TileView) -> None:
        tile.array[...] = field[tile.box.slices((0,) * field.ndim)]

    return init


def computed(
    field: npt.NDArray[Any],
    shape: list[tuple[int, int]],
    pattern: Any,
    factor: float,
    n_steps: int,
    **options: Any,
) -> npt.NDArray[Any]:
    """The field after `n_steps` steps of `stencil_computation`."""
    result = np.full_like(field, np.nan)

    def output(tile: TileView) -> None:
        result[tile.box.slices((0,) * field.ndim)] = tile.array

    stencil_computation(
        field.shape, shape, pattern, factor, n_steps, None, loader(field), output,
        comm=SerialCommunicator(), dtype=field.dtype, **{"devices": "cpu:0", **options},
    )  # fmt: skip
    return result


def computation(sizes: Any = (23, 19), **options: Any) -> Computation:
    options = {"comm": SerialCommunicator(), "devices": "cpu:0", **options}
    return Computation(options.pop("program", PROGRAM), sizes, **options)


def test_the_arguments_stand_in_the_order_of_the_paper() -> None:
    calls: list[str] = []
    report = stencil_computation(
        (5, 7), NEAR, STAR, 6, 3, None,
        lambda tile: calls.append(f"init {tile.place}"),
        lambda tile: calls.append(f"output {tile.place}"),
    )  # fmt: skip
    assert isinstance(report, Report) and report.steps == 3
    assert calls == ["init 0", "output 0"]


@pytest.mark.parametrize(("boundary", "dtype"), sample(product(
    ["fixed", "periodic", ["periodic", "fixed"]], ["float32", "float64"]
), 6))  # fmt: skip
def test_the_result_is_that_of_the_reference(boundary: Any, dtype: str) -> None:
    field = random_field(23, 19, dtype=dtype)
    words = [boundary] * 2 if isinstance(boundary, str) else boundary
    program = Stencil.of("star", NEAR, STAR, 6).program(dtype)
    expected = reference_run(program, field, 5, tuple(word == "periodic" for word in words))
    result = computed(field, NEAR, STAR, 6, 5, boundary=boundary)
    assert result.dtype == dtype
    assert np.array_equal(result, expected)


def test_a_size_of_one_axis_may_be_a_number() -> None:
    program = Stencil.of("sum", [(-1, 1)], [1, 0, 1], 2).program("float32")
    with computation(9, program=program) as c:
        c.scatter(np.arange(9, dtype=np.float32) ** 2)
        c.run(1)
        result = c.gather()
    assert result is not None
    assert result.tolist() == [0, *((i * i) + 1 for i in range(1, 8)), 64]


def test_sizes_count_the_boundary_cells_which_keep_their_values() -> None:
    field = random_field(9, 8)
    result = computed(field, NEAR, STAR, 6, 4)
    assert result.shape == (9, 8)
    inner = (slice(1, -1), slice(1, -1))
    changed = result != field
    assert changed[inner].all() and changed.sum() == changed[inner].sum()


def test_the_declared_shape_says_which_cells_are_fixed_also_where_weights_are_zero() -> None:
    field = random_field(9, 8)
    shape = [(-2, 0), (0, 3)]
    pattern = np.zeros((3, 4))
    pattern[1, 0] = 2       # reads one cell above, no farther
    result = computed(field, shape, pattern, 1, 1)
    expected = field.copy()
    expected[2:, :5] = 2 * field[1:-1, :5]
    assert np.array_equal(result, expected)


def test_the_field_is_zero_where_init_sets_nothing() -> None:
    results: list[npt.NDArray[Any]] = []
    stencil_computation(
        (6, 5), NEAR, STAR, 6, 2, devices="cpu:0", comm=SerialCommunicator(),
        output=lambda tile: results.append(tile.array.copy()),
    )  # fmt: skip
    assert [result.tolist() for result in results] == [np.zeros((6, 5)).tolist()]


@pytest.mark.parametrize("zero_copy", [True, False])
def test_init_and_output_are_called_once_per_place_with_its_owned_cells(zero_copy: bool) -> None:
    seen: list[tuple[int, str, tuple[int, ...]]] = []

    def look(tile: TileView) -> None:
        assert tile.array.shape == tile.box.extent
        assert tile.array.dtype == np.float32 and tile.array.flags.writeable
        seen.append((tile.place, str(tile.box), tile.domain))

    with computation((10, 9), places_per_controller=3, zero_copy=zero_copy) as c:
        c.load(look)
        first, seen[:] = list(seen), []
        c.run(2)
        c.visit(look)
    assert first == seen == [
        (0, "[0:4, 0:9]", (10, 9)), (1, "[4:7, 0:9]", (10, 9)), (2, "[7:10, 0:9]", (10, 9)),
    ]  # fmt: skip


@pytest.mark.parametrize("zero_copy", [True, False])
def test_a_second_load_starts_again(zero_copy: bool) -> None:
    field = random_field(11, 9)
    with computation((11, 9), places_per_controller=2, zero_copy=zero_copy) as c:
        c.load(loader(random_field(11, 9) + 1))
        c.run(3)
        c.load(loader(field))
        c.run(4)
        assert np.array_equal(c.gather(), reference_run(PROGRAM, field, 4, (False, False)))
        c.load(lambda tile: None)
        assert not np.any(c.gather())


def test_a_scattered_array_of_another_float_dtype_is_rounded() -> None:
    with computation((4, 5)) as c:
        c.scatter(np.arange(20, dtype=np.float64).reshape(4, 5))
        assert np.array_equal(c.gather(), np.arange(20).reshape(4, 5))


@pytest.mark.parametrize("zero_copy", [True, False])
@pytest.mark.parametrize("partition", ["bands", "blocks"])
def test_gather_returns_what_was_scattered(partition: str, zero_copy: bool) -> None:
    field = random_field(11, 13)
    options = {"places_per_controller": 4, "partition": partition, "zero_copy": zero_copy}
    with computation((11, 13), **options) as c:
        c.scatter(field)
        assert np.array_equal(c.gather(), field)
        out = np.zeros_like(field)
        assert c.gather(out=out) is out
        assert np.array_equal(out, field)


def test_a_gathered_field_does_not_change_with_later_steps() -> None:
    with computation((11, 13)) as c:
        c.scatter(random_field(11, 13))
        first = c.gather()
        assert first is not None
        kept = first.copy()
        c.run(2)
        assert np.array_equal(first, kept)


@pytest.mark.parametrize("devices", ["cpu:0", "cpu:0/1,1", "reference"])
@pytest.mark.parametrize("parts", [(7,), (3, 4), (0, 1, 0, 6), (1,) * 7])
def test_steps_in_parts_equal_all_steps_at_once(devices: str, parts: tuple[int, ...]) -> None:
    field = random_field(17, 13)
    with computation((17, 13), devices=devices, places_per_controller=2) as c:
        c.scatter(field)
        done = 0
        for n_steps in parts:
            c.run(n_steps)
            done += n_steps
            assert np.array_equal(c.gather(), reference_run(PROGRAM, field, done, (False, False)))


def test_progress_is_told_until_all_steps_are_done() -> None:
    told: list[tuple[int, int]] = []
    with computation((17, 13), places_per_controller=2) as c:
        c.run(100, lambda done, total: told.append((done, total)))
    assert told[-1] == (100, 100)
    assert told == sorted(told)


def test_one_place_of_a_fixed_field_does_nothing_but_launch() -> None:
    with computation() as c:
        assert not c.plan.transfers
        assert {operation.verb for operation in c.plan.operations} == {"launch"}


def test_places_without_cells_take_part() -> None:
    field = random_field(4, 9)
    for n_steps in (0, 3):
        with computation((4, 9), places_per_controller=6, boundary="periodic") as c:
            c.scatter(field)
            c.run(n_steps)
            assert np.array_equal(c.gather(), reference_run(PROGRAM, field, n_steps, (True, True)))
            cells = [place.cells for place in c.report().places]
    assert cells == [9, 9, 9, 9, 0, 0]


def test_a_field_smaller_than_the_stencil_is_left_as_it_is() -> None:
    field = random_field(2, 2)
    with computation(field.shape) as c:     # the skeleton refuses it: it would change nothing
        c.scatter(field)
        c.run(3)
        assert np.array_equal(c.gather(), field)


def test_weights_alone_ask_for_weighted_bands() -> None:
    with computation((51, 3), devices="cpu:0/1,1", weights=[50, 1]) as c:
        assert [owned.extent for owned in c.layout.owned] == [(50, 3), (1, 3)]


def test_the_report_says_what_all_steps_have_cost() -> None:
    with computation((64, 33), devices="cpu:0/1,1", places_per_controller=2) as c:
        assert (c.report().steps, c.report().seconds, c.report().seconds_per_step) == (0, 0, 0)
        c.run(20)
        c.run(30)
        report = c.report()
    assert (report.steps, report.cells) == (50, 64 * 33)
    assert report.seconds > 0
    assert report.seconds_per_step == pytest.approx(report.seconds / 50)
    assert report.cells_per_s == pytest.approx(64 * 33 * 50 / report.seconds)
    assert [place.place for place in report.places] == [0, 1, 2, 3]
    assert sum(place.share for place in report.places) == pytest.approx(1)
    assert sum(place.cells for place in report.places) == 64 * 33
    for place in report.places:
        assert place.cells_per_s > 0 and 0 < place.compute_s <= report.seconds
        assert 0 <= place.exposed_s <= report.seconds
        assert "1 of" in place.device
    *rows, total, exchange, kernel, memory = report.table().splitlines()
    assert "stage star: generated, strategy '" in kernel
    assert len(rows) == 5 and total.startswith("50 steps")
    assert "imbalance" in exchange and memory.startswith("at most")


def test_the_report_is_plain_data_for_json() -> None:
    report = stencil_computation((9, 8), NEAR, STAR, 6, 5, comm=SerialCommunicator())
    plain = json.loads(json.dumps(report.as_dict()))
    assert {"seconds", "seconds_per_step", "cells_per_s", "steps", "places"} <= set(plain)
    assert plain["steps"] == 5
    assert plain["places"][0]["rank"] == 0


@pytest.mark.parametrize(
    ("options", "value", "remedy"),
    [
        ({"partition": "stripes"}, "stripes", "bands, blocks, weighted"),
        ({"partition": "weighted"}, "weighted", "weights"),
        ({"partition": "bands", "weights": [1]}, "bands", "belong to the partition"),
        ({"weights": [1, 3]}, r"\[1, 3\]", "one per place"),
        ({"weights": [-1]}, "-1", "not negative"),
        ({"weights": [float("nan")]}, "nan", "finite"),
        ({"boundary": "open"}, "open", "fixed, periodic"),
        ({"boundary": ["fixed"] * 3}, "3", "one each"),
        ({"overlap": "maybe"}, "maybe", "auto, on, off"),
        ({"dtype": "float16"}, "float16", "float32, float64"),
        ({"dtype": "int32", "factor": 0.5}, "0.5", "whole number"),
        ({"iterations": -1}, "-1", "not be negative"),
        ({"sizes": (9,)}, "1: .9,.", "one size per axis"),
        ({"sizes": (9, 8, 7)}, "3: .9, 8, 7.", "one size per axis"),
        ({"sizes": (9, 0)}, "9, 0", "at least one cell"),
        ({"kernel": "heat.cl"}, "heat.cl", "register_stencil"),
        ({"factor": 0}, "0", "use 1"),
        ({"pattern": [1, 2, 3]}, "3", "one per offset"),
        ({"devices": "warp drive"}, "warp drive", "choose one of"),
        ({"devices": "0"}, "'0'", "by kind or name"),
    ],
)
def test_wrong_arguments_are_named_with_a_remedy(
    options: dict[str, Any], value: str, remedy: str
) -> None:
    arguments = {"sizes": (9, 8), "shape": NEAR, "pattern": STAR, "factor": 6, "iterations": 1}
    with pytest.raises(ValueError, match=value) as refusal:
        stencil_computation(**{**arguments, "comm": SerialCommunicator(), **options})
    assert re.search(remedy, str(refusal.value))


def test_a_controller_holds_at_least_one_place() -> None:
    with pytest.raises(ValueError, match="at least one place, got 0"):
        computation(places_per_controller=0)


def test_an_array_that_does_not_fit_is_refused() -> None:
    with computation((4, 5)) as c:
        with pytest.raises(ValueError, match=r"\(5, 4\)"):
            c.scatter(np.zeros((5, 4), np.float32))
        with pytest.raises(ValueError, match="None"):
            c.scatter(None)


WITHOUT_MPI = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "mpi4py":
            raise ImportError("no MPI here")

sys.meta_path.insert(0, Blocked())
import controllers
report = controllers.stencil_computation((9, 8), [(-1, 1), (-1, 1)], [1] * 9, 9, 5)
print(report.steps, "steps")
"""


def run_alone(program: str) -> str:
    """Standard output of a Python process that no launcher has started."""
    job = run_group([sys.executable, "-c", program], HANGS_S, os.environ)
    assert job.returncode == 0, job.stderr
    return job.stdout


@pytest.mark.whole
def test_one_process_runs_without_an_mpi_library() -> None:
    assert run_alone(WITHOUT_MPI) == "5 steps\n"


def test_importing_the_package_loads_neither_mpi_nor_opencl() -> None:
    program = "import sys, controllers; print({'mpi4py.MPI', 'pyopencl'} & set(sys.modules))"
    assert run_alone(program) == "set()\n"


RAISES = """
from controllers import stencil_computation

def init(tile):
    if tile.place == 1:
        raise OSError("no such terrain")

stencil_computation((64, 64), [(-1, 1), (-1, 1)], [1] * 9, 9, 1000, init=init)
"""


def test_a_rank_that_raises_ends_the_job_at_once_and_is_named() -> None:
    start = time.perf_counter()
    job = run_ranks(2, RAISES)
    assert time.perf_counter() - start < SOON_S
    assert job.returncode != 0
    assert "rank 1 of 2" in job.stderr
    assert "OSError: no such terrain" in job.stderr


REPORTS = """
import sys
import numpy as np
from controllers import Computation, Stencil, reference_run
program = Stencil.of("mean", [(-1, 1), (-1, 1)], [1] * 9, 9).program("float32")
field = np.random.default_rng(0).random((23, 19), np.float32)
with Computation(program, field.shape, partition="blocks") as c:
    c.scatter(field if c.comm.rank == 1 else None, root=1)
    c.run(5)
    result = c.gather(root=1)
    assert (result is None) == (c.comm.rank != 1)
    if result is not None:
        assert np.array_equal(result, reference_run(program, field, 5, (False, False)))
    reports = c.comm.allgather(c.report())
    assert all(report == reports[0] for report in reports)
    if c.comm.rank == 0:
        print([place.rank for place in reports[0].places], reports[0].steps)
"""


@pytest.mark.whole
def test_any_rank_may_be_the_root_and_all_get_the_same_report() -> None:
    job = run_ranks(3, REPORTS)
    assert job.returncode == 0, job.stderr
    assert job.stdout == "[0, 1, 2] 5\n"


DISAGREES = """
from controllers import stencil_computation
from hitmap import default_communicator
odd = default_communicator().rank == 2
sizes, pattern, steps, options = (9, 8), [1] * 9, 5, {}
CHANGE
stencil_computation(sizes, [(-1, 1), (-1, 1)], pattern, 9, steps, **options)
"""


@pytest.mark.parametrize(
    "change",
    sample([
        "sizes = (9, 9 if odd else 8)",
        "pattern = [1] * 8 + [2 if odd else 3]",
        "steps = 7 if odd else 5",
        "options['weights'] = [1, 2, 3 if odd else 4]",
        "options['partition'] = 'blocks' if odd else 'bands'",
        "options['boundary'] = 'periodic' if odd else 'fixed'",
        "options['dtype'] = 'float64' if odd else 'float32'",
    ], 7),
)  # fmt: skip
def test_arguments_that_differ_between_ranks_are_an_error_that_names_the_odd_one(
    change: str,
) -> None:
    job = run_ranks(3, DISAGREES.replace("CHANGE", change))
    assert job.returncode != 0
    assert "must be the same on all ranks" in job.stderr
    assert "rank 2 has" in job.stderr


def test_a_mistake_of_one_rank_ends_the_job_and_is_named() -> None:
    change = "options['boundary'] = 'open' if odd else 'fixed'"
    job = run_ranks(3, DISAGREES.replace("CHANGE", change))
    assert job.returncode != 0
    assert "rank 2: a boundary is one of" in job.stderr and "'open'" in job.stderr
    assert job.stderr.count("Traceback") == 1      # all ranks raise, one says so
