# SPDX-License-Identifier: MIT
"""Digests of fields: one definition, whatever computes them, and what changes them."""
from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpi_jobs import helpers_path, run_ranks
from random_staggered import random_staggered
from sample import sample

import controllers as ct
from controllers.integrity.digest import Digest, digest_of
from hitmap import Shape

DTYPES = ("float32", "float64", "uint8", "int16", "int32", "int64")
EXTENT = (23, 37)
EXTENTS = ((701,), EXTENT, (5, 7, 9), (3, 4, 5, 6))


@ct.step
def diffuse(u: Any, v: Any) -> dict[str, Any]:
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
    return dict(u=u + 0.125 * (around - 4 * u), v=v + u)


def cells(dtype: str, extent: tuple[int, ...] = EXTENT, seed: int = 0) -> npt.NDArray[Any]:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind != "f":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, extent, dtype, endpoint=True)
    return rng.standard_normal(extent).astype(dtype)


def digest(values: npt.NDArray[Any]) -> Digest:
    whole = Shape.of_extent(values.shape)
    return digest_of(values, whole, whole)


def held(values: npt.NDArray[Any], **options: Any) -> Digest:
    """As a computation makes it, of a program that keeps its field."""
    here = (0,) * values.ndim
    stage = ct.Stage("s", {"u": ct.Read("u", here)}, ((0, 0),) * values.ndim)
    program = ct.Program("keep", (ct.Field("u", values.dtype.name),), (stage,))
    with ct.Computation(program, values.shape, **options) as run:
        run.scatter(values)
        return run.digest()["u"]


@pytest.mark.parametrize(("dtype", "extent"), sample(product(DTYPES, EXTENTS), 7))
def test_devices_and_the_host_agree(dtype: str, extent: tuple[int, ...]) -> None:
    values = cells(dtype, extent)
    right = digest(values)
    assert held(values) == right
    assert held(values, zero_copy=False, places_per_controller=3) == right
    assert held(values, devices="reference") == right
    assert held(values, check=True) == right


def mixed(number: int) -> int:
    """The finalizer of SplitMix64, in Python's own integers."""
    number %= 1 << 64
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % (1 << 64)
    number = (number ^ number >> 27) * 0x94D049BB133111EB % (1 << 64)
    return number ^ number >> 31


def test_groups_of_work_items_agree_with_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    # as on GPUs
    monkeypatch.setattr("controllers.integrity.digest_kernel.group_size", lambda device: 8)
    values = cells("float32", (5, 4200))
    values[2, 3] = np.nan
    assert held(values, places_per_controller=2) == digest(values)


def test_it_is_the_number_that_the_documentation_says() -> None:
    values = cells("float32", (3, 4100))[:, 4090:]
    box, domain = Shape((0, 4090), (3, 4100)), Shape.of_extent((3, 4100))
    wide = values.astype(np.float64)
    totals = [0, 0]
    for r, c in np.ndindex(3, 10):
        s, k = divmod(4090 + c, 4096)
        factor = mixed(
            0x9E3779B97F4A7C15 + r * 0xBF58476D1CE4E5B9 + s * 0x94D049BB133111EB
        ) | 1    # fmt: skip
        weight = mixed((k + 1) * 0x9E3779B97F4A7C15) >> 32 | 1
        for at, array in enumerate((values, wide)):
            b = int(np.ascontiguousarray(array).view(f"u{array.itemsize}")[r, c])
            totals[at] += (b ^ b >> 32) * weight * factor
    assert digest_of(values, box, domain) == Digest(totals[0] % (1 << 64))
    assert digest_of(wide, box, domain) == Digest(totals[1] % (1 << 64))


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_other_value_and_any_swap_changes_it(dtype: str) -> None:
    rng, values = random.Random(dtype), cells(dtype, (9, 13), 3)
    right = held(values)
    for _ in range(40):
        other = values.copy()
        flat, bits = other.reshape(-1), other.reshape(-1).view(np.uint8)
        bits[rng.randrange(bits.size)] ^= 1 << rng.randrange(8)
        assert digest(other) != right
        other[...] = values
        one, two = rng.sample(range(flat.size), 2)
        if flat[one] != flat[two]:
            flat[one], flat[two] = flat[two], flat[one]
            assert digest(other) != right
        other[...] = values
        for at in rng.sample(range(flat.size), 2):
            bits[(at + 1) * other.itemsize - 1] ^= 0x80      # two signs
        assert digest(other) != right


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_errors_that_keep_sums_and_moments_change_it(dtype: str) -> None:
    # along the golden ratio's strides, too, where what is linear in the index comes back
    rng, values = random.Random(dtype), cells(dtype, (90, 700), 5)
    right, numbers = digest(values), values.view(f"i{values.itemsize}")
    for pattern in ((1, -1), (1, -2, 1), (1, -3, 3, -1), (1, -4, 6, -4, 1)):
        for stride in (1, 2, 3, 5, 8, 13, 21, 34, 55):
            kept, at = numbers.copy(), rng.randrange(700 - stride * len(pattern))
            numbers[rng.randrange(90), at : at + stride * len(pattern) : stride] += pattern
            assert digest(values) != right
            numbers[...] = kept


@pytest.mark.parametrize("dtype", sample(["float32", "float64"], 2))
def test_zeros_have_signs_and_all_nans_are_one(dtype: str) -> None:
    values = cells(dtype)
    values[3, 4] = 0.0
    other = values.copy()
    other[3, 4] = -0.0
    assert held(other) == digest(other) != digest(values) == held(values)
    values[3, 4] = values[7, 9] = np.nan
    other[...] = values
    other.view(f"u{other.itemsize}")[3, 4] |= 1 | 1 << (8 * other.itemsize - 1)
    assert np.isnan(other[3, 4])
    values[0, 0] = other[0, 0] = np.inf
    assert held(other) == digest(other) == digest(values) == held(values)
    assert digest(values).n_nan == 2


def test_a_run_takes_them_after_every_so_many_steps() -> None:
    with ct.Computation(
        diffuse, EXTENT, boundary="periodic", digest_every=4, u=lambda y, x: y * x, v=0
    ) as run:
        run.run(10)
        for now in run.steps(3):
            assert run.digest()["u"] == digest(np.asarray(now.u))
        found = run.report()
    assert found.digests is not None
    assert [step for step, _ in found.digests.taken] == [4, 8, 12]
    json.dumps(found.as_dict())
    assert "digests every 4 steps, the last after step 12" in found.table()
    with ct.Computation(diffuse, EXTENT, boundary="periodic", u=lambda y, x: y * x, v=0) as run:
        for step, taken in found.digests.taken:
            run.run(step - run.step)
            assert taken == run.digest()
            assert taken["v"] == digest(np.asarray(run.v))
        assert run.report().digests is None


@pytest.mark.whole
@pytest.mark.parametrize(
    "options", sample([{"chunks": 4, "zero_copy": False}, {"halo_width": 2}], 2)
)
def test_fields_in_chunks_and_rounds_have_them(options: dict[str, Any]) -> None:
    grid = ct.Grid(y=40, x=30, boundary="periodic")
    with ct.Computation(
        diffuse, grid, u=lambda y, x: np.sin(y) * x, v=0, **options
    ) as run:  # fmt: skip
        run.run(5)
        for name, found in run.digest().items():
            assert found == digest(np.asarray(run[name]))


@pytest.mark.parametrize("number", sample([1, 0, 2], 3))
def test_fields_at_half_points_have_them(number: int) -> None:
    staggered = random_staggered(number)
    with ct.Computation(
        staggered.steps, staggered.grid, places_per_controller=2, **staggered.options
    ) as run:
        for name, array in staggered.arrays.items():
            run[name].scatter(array)
        run.run(staggered.n_steps)
        for name, found in run.digest().items():
            assert found == digest(np.asarray(run[name].gather()))


RANKS = """
import json, sys
import numpy as np
import controllers as ct
from test_digests import EXTENT, diffuse
with ct.Computation(
    diffuse, EXTENT, boundary="periodic", u=lambda y, x: np.cos(y * x), v=0, digest_every=3,
    partition=sys.argv[1], places_per_controller=int(sys.argv[2]), devices=sys.argv[3],
    dtype="float32"
) as run:
    run.run(7)
    run.u[2:4, 5] = np.nan
    found = run.report().digests.as_dict(), {n: one.plain for n, one in run.digest().items()}
    if run.comm.rank == 0:
        print(json.dumps(found))
"""


@pytest.mark.parametrize(("ranks", "partition", "places", "devices"), sample([
    (2, "blocks", "2", "reference"), (2, "blocks", "2", "cpu"), (3, "bands", "1", "cpu"),
], 3))  # fmt: skip
def test_ranks_and_layouts_have_the_same(
    ranks: int, partition: str, places: str, devices: str
) -> None:
    outputs = []
    for n, *words in ((1, "bands", "1", devices), (ranks, partition, places, devices)):
        job = run_ranks(n, ["-c", RANKS, *words], env=helpers_path(Path(__file__).parent))
        assert job.returncode == 0, job.stderr
        outputs.append(json.loads(job.stdout))
    assert outputs[0] == outputs[1]
    assert outputs[0][1]["u"][1] == 2
