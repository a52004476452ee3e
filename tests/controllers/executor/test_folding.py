# SPDX-License-Identifier: MIT
"""Folds of OpenCL kernels have the bits of NumPy's, whatever the values, boxes and strategies."""
from functools import cache

import numpy as np
import pytest

from controllers.device import find_devices
from controllers.executor.opencl import OpenCLExecutor
from controllers.program.accumulator import KINDS, Accumulator, numbers_of
from controllers.program.expression import Constant, Read, where
from controllers.program.field import Field
from controllers.program.fold import Fold
from controllers.program.program import Program, Stage
from hitmap import Shape
from tests.support.fold_runs import folded

DTYPES = ("float32", "float64", "uint8", "int16", "int32", "int64")
EXTENTS = ((5003,), (37, 129), (1, 70), (90, 1), (7, 9, 66), (3, 4, 5, 19))
HARD = ("plain", "wide", "denormal", "tail", "cancelling", "infinite", "nan", "zeros", "huge")


@cache
def executor():
    device = next(device for device in find_devices() if device.kind != "reference")
    return OpenCLExecutor(device)


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
    return plain.astype(dtype)


def program_of(n_axes, dtype, masked, updates):
    """All kinds of folds of u, and of a condition, in a stage that copies it to v or does not."""
    u, v = Read("u", (0,) * n_axes), Read("v", (0,) * n_axes)
    over = u > 0 if masked else None
    folds = {kind: Fold(kind, u > 1 if kind in ("any", "all") else u, over) for kind in KINDS}
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


def check(dtype, extent, kind, seed, masked, updates):
    rng = np.random.default_rng(seed)
    u, v = (values(rng, dtype, extent, kind) for _ in range(2))
    program = program_of(len(extent), dtype, masked, updates)
    arrays = {"u": u, "v": v} if updates else {"u": u}
    made, fields = folded(executor(), program, arrays, n_boxes=seed % 4 + 1, times=seed % 2 + 1)
    for name, right in expected(u, masked).items():
        assert made[name] == right, (name, made[name].words, right.words)
    if updates:
        assert np.array_equal(fields["v"], np.where(v > 0, u, v), equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_folds_of_kernels_have_the_bits_of_numpy(dtype):
    for seed, extent in enumerate(EXTENTS[1:3]):
        check(dtype, extent, "plain", seed, masked=bool(seed), updates=not seed)


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_hard_numbers_are_exact(dtype, kind):
    check(dtype, (37, 129), kind, 3, masked=kind == "wide", updates=kind == "tail")


@pytest.mark.whole
@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_folds_of_all_extents_have_the_bits_of_numpy(dtype, extent):
    kinds = HARD if dtype in ("float32", "float64") else ("plain",)
    for seed, kind in enumerate(kinds * 4):
        check(dtype, extent, kind, seed, masked=seed % 3 == 0, updates=seed % 2 == 0)
