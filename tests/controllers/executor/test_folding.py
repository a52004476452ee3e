# SPDX-License-Identifier: MIT
"""Folds of OpenCL kernels have the bits of NumPy's, whatever the values, boxes and strategies."""
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from itertools import product
from unittest import mock

import numpy as np
import pytest
from fold_runs import folded
from sample import sample

from controllers.device import Device, find_devices
from controllers.executor import opencl
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.registry import SPECIALISED
from controllers.kernel.stage_kernel import stage_kernel
from controllers.kgt.strategies.cell import CellConfig, GroupsConfig
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.marching import config as marching
from controllers.kgt.strategies.rows import RowsConfig
from controllers.kgt.text.fold_blocks import is_noted
from controllers.kgt.text.fold_values import with_values
from controllers.program.accumulator import KINDS, Accumulator, numbers_of
from controllers.program.expression import Constant, Read, where
from controllers.program.field import Field
from controllers.program.fold import Fold
from controllers.program.program import Program, Stage
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap import Shape
from hitmap.strided import Geometry

DTYPES = ("float32", "float64", "uint8", "int16", "int32", "int64")
EXTENTS = ((5003,), (37, 129), (1, 70), (90, 1), (7, 9, 66), (3, 4, 5, 19))
HARD = ("plain", "wide", "denormal", "tail", "cancelling", "infinite", "nan", "zeros", "huge",
        "alternating", "edges")  # fmt: skip


@cache
def executor():
    device = next(device for device in find_devices() if device.kind != "reference")
    return OpenCLExecutor(device)


@cache
def like_gpu():
    """An executor that takes this device for a GPU."""
    return OpenCLExecutor(replace(executor().device, kind="gpu"))


@pytest.fixture
def walking(monkeypatch):
    """Groups that walk over small boxes, as over large ones."""
    for most in ("BESIDE_GROUPS", "SUMMING_GROUPS", "FEW_GROUPS"):
        monkeypatch.setattr(marching, most, 3)


def values(rng, dtype, extent, kind):
    """Fields of one kind of numbers."""
    if np.dtype(dtype).kind != "f":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, extent, dtype, endpoint=True)
    info, plain = np.finfo(dtype), rng.standard_normal(extent)
    if kind == "wide":
        plain = np.ldexp(plain, rng.integers(info.minexp - info.nmant, info.maxexp - 20, extent))
    elif kind == "denormal":
        plain = plain * float(info.tiny)
    elif kind == "tail":
        plain = 2.0 ** -np.linspace(0, 300, plain.size).reshape(extent)
    elif kind == "cancelling":
        plain = np.where(rng.random(extent) < 0.5, 1, -1) * float(info.max) / 2**40 + plain
    elif kind in ("infinite", "nan"):
        plain.flat[rng.integers(0, plain.size, 3)] = np.inf if kind == "infinite" else np.nan
    elif kind == "zeros":
        plain = np.where(plain < 0, -0.0, 0.0)
    elif kind == "huge":
        plain = np.sign(plain) * float(info.max)
    elif kind == "alternating":     # all but a few leave the sum where it was
        plain = np.where(np.arange(plain.size) % 2, -1.0, 1.0).reshape(extent) * (1 + info.eps)
        plain.flat[:: 1 + plain.size // 9] = float(info.tiny)
    elif kind == "edges":
        most, least = float(info.max), float(info.smallest_subnormal)
        edges = [most, most / 2, most * float(info.eps), 1, info.eps / 2, info.tiny, least, 0]
        plain = rng.choice([*edges, *(-float(edge) for edge in edges)], extent)
        plain.flat[rng.integers(0, plain.size)] = -np.inf if plain.size % 2 else 0
    return plain.astype(dtype)


def program_of(n_axes, dtype, masked, updates, only):
    """Folds of u, and of a condition, in a stage that copies it to v or does not."""
    u, v = Read("u", (0,) * n_axes), Read("v", (0,) * n_axes)
    over = u > 0 if masked else None
    folds = {kind: Fold(kind, u > 1 if kind in ("any", "all") else u, over) for kind in only}
    folds["n_cells"] = Fold("sum", Constant(1), over)
    stage = Stage("s", {"v": where(v > 0, u, v)} if updates else {}, ((0, 0),) * n_axes, folds)
    return Program("p", (Field("u", dtype), Field("v", dtype)), (stage,))


def expected(array, masked):
    """What NumPy makes of them."""
    domain = Shape.of_extent(array.shape)
    mask, numbers = array > 0 if masked else None, numbers_of(domain, domain)
    found = {
        kind: Accumulator.of(kind, array > 1 if kind in ("any", "all") else array, mask, numbers)
        for kind in KINDS
    }
    found["n_cells"] = Accumulator.of("sum", np.ones(array.shape, np.int64), mask)
    return found


def check(
    dtype, extent, kind, seed, masked=False, updates=True, only=KINDS, config=None, on=executor
):
    """Folds of some kinds over random boxes, by a configuration where it suits."""
    rng = np.random.default_rng(seed)
    u, v = (values(rng, dtype, extent, kind) for _ in range(2))
    program = program_of(len(extent), dtype, masked, updates, only)
    arrays = {"u": u, "v": v} if updates else {"u": u}
    made, fields = folded(
        on(), program, arrays, n_boxes=seed % 4 + 1, times=seed % 2 + 1, config=config
    )
    right = expected(u, masked)
    for name in made:
        assert made[name] == right[name], (name, made[name].words, right[name].words)
    if updates:
        assert np.array_equal(fields["v"], np.where(v > 0, u, v), equal_nan=True)


@pytest.mark.parametrize(
    ("dtype", "kind"), sample([*(("float32", kind) for kind in HARD), ("float64", "edges")], 3)
)
def test_sums_of_hard_numbers_are_exact(dtype, kind):
    check(dtype, (37, 129), kind, 3, only=("sum", "max"))


@pytest.mark.parametrize(
    ("dtype", "masked"), sample(product(["uint8", "int64"], [False, True]), 3)
)
def test_sums_of_whole_numbers_are_exact(dtype, masked):
    check(dtype, (37, 129), "plain", 3, masked, only=("sum",))


@pytest.mark.parametrize(("dtype", "kind"), sample(
    product(["float32", "float64"], ["plain", "edges", "mixed", "infinite", "nan"]), 4
))  # fmt: skip
def test_a_sum_that_is_all_that_a_kernel_computes_is_exact(dtype, kind):
    # several blocks in a row; of "mixed", the sum of some cannot be made without rounding
    rng, extent = np.random.default_rng(5), (3, 9001)
    u = values(rng, dtype, extent, kind)
    if kind == "mixed":
        u[1, 5000::3000] = 2.0**-60
    stage = Stage("s", {}, ((0, 0),) * 2, {"s": Fold("sum", Read("u", (0, 0)))})
    program = Program("p", (Field("u", dtype),), (stage,))
    made, _ = folded(executor(), program, {"u": u}, n_boxes=1, times=2)
    assert made["s"] == Accumulator.of("sum", u)


def test_one_step_of_narrow_boxes_folds_too():
    check("float64", (9, 5), "wide", 3, masked=True, only=("sum", "argmin", "any"))


@pytest.mark.whole
@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_folds_have_the_bits_of_numpy(dtype, extent):
    kinds = HARD if dtype in ("float32", "float64") else ("plain",)
    for only in (("sum", "max", "argmin"), ("min", "argmax", "any", "all")):
        for seed, kind in enumerate(kinds * 2):
            check(dtype, extent, kind, seed, seed % 3 == 0, seed % 2 == 0, only)


CONFIGURATIONS = {
    "cell": ((37, 128), CellConfig()),
    "groups": ((37, 128), GroupsConfig()),
    "vectors": ((37, 128), MarchingConfig(4, 2, 0, (8, 2, 1))),
    "one wide": ((37, 131), MarchingConfig(1, 4, 0, (8, 4, 1))),
    "a row": ((5003,), MarchingConfig(4, 1, 0, (64, 1, 1))),
    "a loop": ((37, 128), MarchingConfig(4, 8, 0, (8, 2, 1), looped=True)),
    "3-D": ((9, 8, 64), MarchingConfig(2, 2, 1, (4, 2, 2))),
    "4-D": ((3, 9, 8, 32), MarchingConfig(2, 4, 1, (4, 2, 2))),
    "rows of an item": ((9, 8, 64), MarchingConfig(2, 2, 0, (4, 2, 2), rows=3)),
    "4-D rows": ((3, 9, 7, 32), MarchingConfig(2, 4, 2, (4, 2, 2), looped=True, rows=2)),
    "rows": ((37, 131), RowsConfig(8, 4, band=9, segment=64)),
    "planes": ((9, 8, 64), RowsConfig(4, 2, 3, band=6, depth=5, segment=24)),
}


@pytest.mark.whole
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_all_strategies_fold_the_same(name, dtype, walking):
    extent, config = CONFIGURATIONS[name]
    kinds = HARD if dtype != "int32" else ("plain",)
    for only, updates in ((("sum", "max"), True), (("sum", "argmin"), False)):
        for seed, kind in enumerate(kinds):
            check(dtype, extent, kind, seed % 3, updates, updates, only, config)


def test_groups_that_walk_fold_each_cell_once(walking):
    check("float32", (37, 1024), "nan", 1, only=("max",), on=like_gpu)


@pytest.mark.parametrize("n_fields", [1, 2])
def test_what_a_gpu_stores_beside_a_fold_is_in_its_place(n_fields):
    """Of one field behind all steps of an item, of several in each step."""
    reads = {"u": Read("u", (0, 0)), "v": Read("v", (0, 0))}
    updates = dict(list({"u": reads["u"] * 2, "v": reads["u"] + reads["v"]}.items())[:n_fields])
    stage = Stage("s", updates, ((0, 0),) * 2, {"most": Fold("max", reads["u"] * 2)})
    program = Program("p", (Field("u", "float32"), Field("v", "float32")), (stage,))
    u, v = (values(np.random.default_rng(n), "float32", (37, 1024), "plain") for n in range(2))
    made, fields = folded(like_gpu(), program, {"u": u, "v": v})
    assert made["most"] == Accumulator.of("max", u * 2)
    right = {"u": u * 2, "v": u + v}
    assert all(np.array_equal(fields[name], right[name]) for name in updates)


@pytest.mark.whole
@pytest.mark.parametrize("extent", [(1,), (70001,), (3, 1024), (9, 8, 257), (2, 3, 9, 256)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_gpus_fold_the_same(dtype, extent, walking):
    for case, kind in enumerate(("plain", "nan", "wide") if dtype != "int16" else ("plain",)):
        only = ("sum", "max") if case else ("min", "argmax", "any", "all")
        seed = case if extent != (1,) else 4 * case     # one cell is one box
        check(dtype, extent, kind, seed, case == 1, case != 1, only, on=like_gpu)


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["min", "max"])
def test_the_last_of_all_numbers_is_not_nothing(kind):
    """Its key is that of a fold without cells."""
    last = np.iinfo("int32").min if kind == "max" else np.iinfo("int32").max
    array = np.full((5, 1024), last, "int32")
    program = program_of(2, "int32", False, False, (kind,))
    made, _ = folded(like_gpu(), program, {"u": array})
    assert made[kind] == Accumulator.of(kind, array)


@pytest.mark.parametrize("dtype", sample(["float64", "float32"], 2))
def test_launches_that_take_turns_leave_nothing_to_each_other(dtype):
    """The second one has fewer groups than the first, so that it writes fewer slots, if any."""
    program = program_of(2, dtype, False, False, ("max",))
    domain = Shape.of_extent((32, 1024))
    sweep = Sweep.over(program.stages[0], domain, (False, False))
    tile = like_gpu().tile(Geometry.dense(domain), np.dtype(dtype))
    folding = like_gpu().folding(program, sweep, [domain])
    around, launches = Surroundings.usual(program, domain), []
    for groups in (4096, 2):
        with mock.patch.object(marching, "FEW_GROUPS", groups):
            launches.append(like_gpu().launch_command(
                program, sweep, {"u": tile}, {}, domain, around, folding, 0
            ))  # fmt: skip
    for most, launch in zip((9, 5, 7, 3), launches * 2):
        numbers = np.full(domain.extent, -1, dtype)
        numbers[most, most * 100] = most
        like_gpu().move_to(tile, domain, numbers)
        launch(None)
        folding.command(None).wait()
        made = folding.accumulators
        assert made["max"] == Accumulator.of("max", numbers)
        assert made["n_cells"] == Accumulator.of("sum", np.ones(numbers.shape, np.int64), None)


def test_a_launch_that_is_bound_later_takes_the_turn_of_the_others():
    """However the host comes to know of what was folded: by a download, or in the memory itself."""
    program = program_of(2, "float32", False, False, ("max",))
    domain = Shape.of_extent((8, 64))
    sweep = Sweep.over(program.stages[0], domain, (False, False))
    tile = executor().tile(Geometry.dense(domain), np.dtype("float32"))
    folding = executor().folding(program, sweep, [domain])
    around = Surroundings.usual(program, domain)
    for most, merge in ((3, "command"), (2, "reading"), (1, "reading"), (0, "command")):
        launch = executor().launch_command(
            program, sweep, {"u": tile}, {}, domain, around, folding, 0
        )
        numbers = np.full(domain.extent, most, "float32")
        executor().move_to(tile, domain, numbers)
        launched = launch(None)
        getattr(folding, merge)(None).wait()
        launched.wait()
        assert folding.accumulators["max"] == Accumulator.of("max", numbers)


@pytest.mark.whole
@pytest.mark.parametrize(
    "missing", sample(["cl_khr_int64_extended_atomics", "cl_khr_int64_base_atomics"], 2)
)
def test_devices_without_atomic_operations_of_64_bits_fold_too(missing):
    usual = opencl.build

    def without(context, name, source, *others):
        assert missing in source
        return usual(context, name, source.replace(missing, "not_there"), *others)

    with mock.patch.object(opencl, "build", without):
        fresh = like_gpu.__wrapped__()
        check("float64", (6, 1024), "wide", 4, only=("sum", "max", "min"), on=lambda: fresh)


def test_sums_of_floats_need_a_device_that_computes_in_float64():
    device = executor().device
    single = mock.MagicMock(wraps=device, spec=device)
    single.check_dtype.side_effect = lambda dtype: Device.check_dtype(
        mock.Mock(dtypes=("float32",)), dtype
    )
    for only in (("sum",), ("max",)):
        program = program_of(1, "float32", False, True, only)
        stage = replace(program.stages[0], folds={only[0]: program.stages[0].folds[only[0]]})
        refused = pytest.raises(ValueError, match="float64") if only == ("sum",) else nullcontext()
        with refused:
            stage_kernel(SPECIALISED, program, stage, single, executor().choices)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    sample(list(product(("float32", "float64"), (*HARD[1:], *range(15, 22)))), 17),
)
def test_one_sum_beside_what_is_stored_is_exact_whatever_a_block_has(dtype, kind):
    """Also of numbers whose sizes differ by as many powers of 2 as a block may just have."""
    u, rng = Read("u", (0, 0)), np.random.default_rng(0)
    stage = Stage("s", {"v": u * 1}, ((0, 0),) * 2, {"sum": Fold("sum", u)})
    program = Program("p", (Field("u", dtype), Field("v", dtype)), (stage,))
    assert is_noted(with_values(program, stage)[1])
    if isinstance(kind, int):
        of = np.where(rng.random((4, 9001)) < 1e-3, 2.0**-kind, 1) * (2 - np.finfo(dtype).eps)
        array = of.astype(dtype)
    else:
        array = values(rng, dtype, (4, 9001), kind)
    for rows in (2, 4):
        config = RowsConfig(64 // array.itemsize, rows)
        made, fields = folded(executor(), program, {"u": array, "v": array}, 2, config=config)
        assert made["sum"] == Accumulator.of("sum", array)
        assert np.array_equal(fields["v"], array, equal_nan=True)
