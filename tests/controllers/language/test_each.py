# SPDX-License-Identifier: MIT
"""Functions of items: the reference against NumPy item by item, kernels against the reference."""
from __future__ import annotations

from itertools import product
from typing import Any

import item_functions
import numpy as np
import numpy.typing as npt
import pytest
from item_functions import FUNCTIONS, arrays_for, by_rows
from item_runs import KINDS, ItemRun, opened
from sample import sample

import controllers as ct
from controllers.language.each import Each

Array = npt.NDArray[Any]


def reference(function: Each, arrays: dict[str, Array], **numbers: float) -> dict[str, Array]:
    found = function(*arrays.values(), **numbers)
    return found if isinstance(found, dict) else {"result": found}


def same(found: Array, right: Array) -> bool:
    return found.dtype == right.dtype and np.array_equal(
        found, right, equal_nan=right.dtype.kind == "f"
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_reference_gives_what_numpy_gives_item_by_item(name: str, dtype: str) -> None:
    function = ct.each(FUNCTIONS[name])
    arrays = arrays_for(function, dtype)
    found = reference(function, arrays)
    right = by_rows(FUNCTIONS[name], function.parameters.uses, arrays)
    assert [*found] == [*right]
    for one, values in found.items():
        assert values.shape == right[one].shape
        if values.dtype.kind == "f":
            assert np.allclose(values, right[one], rtol=1e-4 if dtype == "float32" else 1e-12)
        else:
            assert np.array_equal(values, right[one])


@pytest.mark.parametrize(("name", "kind"), sample(product(FUNCTIONS, KINDS), 5))
def test_kernels_give_the_bits_of_the_reference_on_any_places(name: str, kind: str) -> None:
    function = ct.each(FUNCTIONS[name])
    executors = [opened(kind), opened(kind)]
    for number, weights in enumerate([(1,), (1, 2, 1), (0, 3, 1)]):
        dtype = ("float32", "float64", "float32")[number]
        arrays = arrays_for(function, dtype, seed=number)
        right = reference(function, arrays)
        found = ItemRun(function, arrays, executors, weights=weights).results()
        assert [*found] == [*right] and all(same(found[one], right[one]) for one in right)


@pytest.mark.parametrize("way", ["reference", *KINDS, "two images"])
def test_numbers_change_between_calls_without_another_kernel(way: str) -> None:
    function = ct.each(item_functions.pull)
    arrays = arrays_for(function, "float32")
    executor = opened(way.replace("two images", "cpu"), zero_copy=way != "two images")
    run = ItemRun(function, arrays, [executor], weights=(2, 1), copied=["mass"])
    for eps2 in (1e-3, 0.25):
        assert same(run.results(eps2=eps2)["result"], function(*arrays.values(), eps2=eps2))


@pytest.mark.parametrize("kind", KINDS)
def test_special_values_are_as_in_numpy_and_of_a_tie_the_first_is_taken(kind: str) -> None:
    @ct.each
    def extremes(x: ct.Row, every: ct.All) -> ct.Row:
        y = every + x
        return dict(least=y.min(), most=y.max(), at=y.argmin(), top=y.argmax(), total=y.sum())

    nan, inf = np.nan, np.inf
    for values in ([1, nan, 0, nan], [inf, inf], [-inf, -inf], [0.0, -0.0, 0.0], [-0.0, -0.0]):
        arrays = {"x": np.float32([-0.0, 1]), "every": np.float32(values)}
        right = reference(extremes, arrays)
        with np.errstate(invalid="ignore"):
            y = arrays["every"] + arrays["x"][:, None]
            assert np.array_equal(right["at"], y.argmin(1)), values
            assert np.array_equal(right["top"], y.argmax(1))
            assert np.array_equal(right["least"], y.min(1), equal_nan=True)
        found = ItemRun(extremes, arrays, [opened(kind)], weights=(1,)).results()
        for name, one in right.items():
            assert same(found[name], one), (name, values)
            assert np.array_equal(np.signbit(found[name]), np.signbit(one))


def test_a_sum_runs_from_the_first_row_to_the_last() -> None:
    @ct.each
    def total(x: ct.Row, every: ct.All) -> ct.Row:
        return x + every.sum()

    every = np.float32([2**24, 1, 1, -(2**24)])
    assert total(np.float32([0]), every).tolist() == [0]        # 2 by pairs
    arrays = {"x": np.float32([0]), "every": every}
    assert ItemRun(total, arrays, [opened("cpu")], weights=(1,)).results()["result"].tolist() == [0]


def test_an_index_beyond_the_rows_is_that_of_the_nearest() -> None:
    @ct.each
    def taken(at: ct.Row, every: ct.All) -> ct.Row:
        return every[at]

    arrays = {"at": np.array([0, 3, 4, -1, -4, -5], np.int64), "every": np.float64([5, 6, 7, 8])}
    right = [5, 8, 8, 8, 5, 5]
    assert taken(*arrays.values()).tolist() == right
    run = ItemRun(taken, arrays, [opened("cpu")], weights=(1, 1))
    assert run.results()["result"].tolist() == right


def test_fewer_items_than_places_and_whole_arrays_on_places_without_items() -> None:
    function = ct.each(item_functions.nearest)
    arrays = arrays_for(function, "float32")
    for rows, many in ((2, 9), (13, 2)):
        few = {"x": arrays["x"][:rows], "every": arrays["every"][:many]}
        run = ItemRun(function, few, [opened("cpu")], weights=(1, 1, 1, 1))
        assert same(run.results()["result"], function(*few.values()))


def test_the_plan_gathers_columns_and_rows_around_and_nothing_else() -> None:
    for name, said in (
        ("turned", "once column is set: 26 cells in 6 messages"),
        ("blurred", "once x is set: 18 cells in 4 messages"),
    ):
        function = ct.each(FUNCTIONS[name])
        arrays = arrays_for(function, "float32")
        copied = [one for one in arrays if one in ("mass", "matrix")]
        run = ItemRun(
            function, arrays, [opened("reference")], weights=(1, 1, 1), copied=copied
        )
        assert said in str(run.run), str(run.run)


def test_the_plan_gathers_each_row_once_and_nothing_that_is_copied() -> None:
    function = ct.each(item_functions.pull)
    arrays = arrays_for(function, "float32")
    run = ItemRun(function, arrays, [opened("reference")], weights=(1, 1, 1), copied=["mass"]).run
    text = str(run)
    assert "every.0@1 [0:9, 0:3]" in text and "x.0@1 [4:9, 0:3]" in text
    assert "once every is set: 54 cells in 6 messages" in text and "once mass" not in text
    assert not run.is_light
    alone = ItemRun(function, arrays, [opened("reference")], weights=(1,))
    assert alone.run.is_light
