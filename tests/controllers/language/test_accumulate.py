# SPDX-License-Identifier: MIT
"""Sums over all items: exact, and the same bits on any devices and places."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from item_runs import KINDS, ItemRun, opened
from sample import sample

import controllers as ct
from controllers.kgt import generate
from controllers.kgt.strategies.items.config import ItemsOnCpuConfig
from controllers.kgt.text.fold_values import with_values

N = 301


@ct.each
def moments(x: ct.Row, mass: ct.Row, every: ct.All, *, a: float = 1, i: ct.Index) -> ct.Row:
    return dict(
        total=ct.accumulate(mass * a),
        twice=x * 2,
        centre=ct.accumulate(mass * x),
        nearest=ct.accumulate(abs(every - x).sum(axis=1).argmin()),
        positive=ct.accumulate(x > 0),
        place=ct.accumulate(i),
    )


@ct.each
def products(x: ct.Row) -> ct.Row:
    return ct.accumulate(x[:, None] * x)


@ct.each(opencl_c="""
    square_new(0) = x(0) * x(0);
    for (int k = 0; k < 3; ++k) far_new(k) = -x(k);
    if (INDEX(0) % 2) odd_new(0) = 1;
""")
def in_opencl_c(x: ct.Row, *, i: ct.Index) -> ct.Row:
    square = ct.accumulate(x[0] * x[0])
    return dict(square=square, far=-x, odd=ct.accumulate(np.where(i % 2 == 1, x[0] * 0 + 1, 0)))


FUNCTIONS = {"moments": moments, "products": products, "in_opencl_c": in_opencl_c}


def arrays_for(name: str, dtype: str) -> dict[str, Any]:
    random = np.random.default_rng(3)
    sizes = 10.0 ** random.integers(-18, 18, (N, 1))
    known = {
        "x": (random.normal(size=(N, 3)) * sizes).astype(dtype),
        "mass": random.random(N), "every": random.normal(size=(5, 3)).astype(dtype),
    }
    return {one: known[one] for one in FUNCTIONS[name].parameters.uses}


def test_a_sum_is_that_of_all_items_exactly() -> None:
    arrays = arrays_for("moments", "float64")
    found = moments(*arrays.values(), a=2)
    x, mass = arrays["x"], arrays["mass"]
    assert [*found] == ["total", "twice", "centre", "nearest", "positive", "place"]
    assert found["total"] == math.fsum(2 * mass)
    assert found["centre"].tolist() == [math.fsum(mass * column) for column in x.T]
    assert found["positive"].tolist() == (x > 0).sum(axis=0).tolist()
    assert found["place"] == N * (N - 1) / 2
    assert np.array_equal(found["twice"], 2 * x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sample(FUNCTIONS, 3))
def test_kernels_have_the_sums_of_the_reference_on_any_places(
    name: str, dtype: str, kind: str
) -> None:
    function, arrays = FUNCTIONS[name], arrays_for(name, dtype)
    right = function(*arrays.values())
    right = right if isinstance(right, dict) else {"result": right}
    for weights in ((1,), (1, 0, 3)):
        run = ItemRun(function, arrays, [opened(kind)], weights=weights)
        for _ in range(2):
            found = run.results()
            assert {*found} == {*right}
            for one, value in right.items():
                assert np.array_equal(found[one], value), (one, weights)


@pytest.mark.parametrize("is_summed", [False, True])
def test_whole_numbers_beside_arrays_of_floats_alone_are_of_64_bits(is_summed: bool) -> None:
    @ct.each
    def thirds(x: ct.Row, *, i: ct.Index) -> ct.Row:
        value = x * (i % 3 + (i + (1 << 40)) // 7)
        return ct.accumulate(value) if is_summed else value

    arrays = {"x": np.arange(40.0) / 3}
    found = ItemRun(thirds, arrays, [opened("cpu")], weights=(2, 1)).results()["result"]
    assert np.array_equal(found, thirds(*arrays.values()))


def test_groups_that_sum_together_have_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    @ct.each
    def own(x: ct.Row) -> ct.Row:       # no text of it is known yet
        return ct.accumulate(x * 3)

    def sizes(extent: tuple[int, ...], is_cpu: bool) -> Any:
        return (24,), (8,)

    monkeypatch.setattr(ItemsOnCpuConfig, "most_items", 8)
    monkeypatch.setattr("controllers.kgt.strategies.items.config.summing_sizes", sizes)
    arrays = arrays_for("products", "float32")
    run = ItemRun(own, arrays, [opened("cpu")], weights=(1, 2))
    assert np.array_equal(run.results()["result"], own(*arrays.values()))
    (stage,) = run.made.program.stages
    text = generate(*with_values(run.made.program, stage), ItemsOnCpuConfig()).source
    assert "kgt_sum_group(" in text


@pytest.mark.parametrize("way", ["reference", *KINDS])
def test_values_that_are_not_finite_and_sums_beyond_all_floats(way: str) -> None:
    nan, inf = np.nan, np.inf
    x = np.array([[1, 1, inf, 1e308, 1], [nan, 2, -inf, 1e308, inf]])
    arrays = {"x": x}

    @ct.each
    def total(x: ct.Row) -> ct.Row:
        return ct.accumulate(x)

    right = np.array([nan, 3, nan, inf, inf])
    assert np.array_equal(total(x), right, equal_nan=True)
    found = ItemRun(total, arrays, [opened(way)], weights=(1, 1)).results()["result"]
    assert np.array_equal(found, right, equal_nan=True)


def test_a_workspace_gives_sums_and_arrays_in_the_order_that_is_returned() -> None:
    arrays = arrays_for("moments", "float32")
    right = moments(*arrays.values())
    with ct.workspace(devices="cpu", places_per_controller=3) as on:
        x, mass = on.array(arrays["x"]), on.array(arrays["mass"])
        for _ in range(2):
            found = moments(x, mass, arrays["every"])
            assert [*found] == [*right]
            assert all(np.array_equal(found[name], value) for name, value in right.items())
            assert isinstance(found["total"], float)
        assert np.array_equal(products(x), products(arrays["x"]))
        assert on.report().as_dict()


def too_many(x: ct.Row) -> ct.Row:
    return ct.accumulate(np.stack([x * k for k in range(13)])[:, :, None] * x[:2])


def of_a_dtype(x: ct.Row) -> ct.int32:
    return ct.accumulate(x[0])


def called_as_a_number(x: ct.Row, *, a: float = 1) -> ct.Row:
    return dict(a=ct.accumulate(x))


def computed_with(x: ct.Row) -> ct.Row:
    return ct.accumulate(x) + 1


@pytest.mark.parametrize(
    "function, error, said",
    [
        (too_many, ValueError, "result are 78 sums.*64 at most.*sum_by"),
        (of_a_dtype, ValueError, "sums over all items are float64.*int32.*leave it out"),
        (called_as_a_number, ValueError, "'a' is returned, and a parameter.*rename"),
        (computed_with, TypeError, "unsupported operand"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_cannot_be_summed_is_said(
    function: Callable[..., Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        ct.each(function)(np.ones((4, 3)))


def test_a_users_text_must_come_to_its_end() -> None:
    @ct.each(opencl_c="if (x(0) < 0) return;  result_new(0) = x(0);")
    def positive(x: ct.Row) -> ct.Row:
        return ct.accumulate(np.maximum(x[0], 0))

    with pytest.raises(ValueError, match="test_accumulate.py:.*has a return.*if"):
        positive(np.ones((4, 3)))
