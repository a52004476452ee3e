# SPDX-License-Identifier: MIT
"""What functions of items refuse: what, where and what to do instead."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import controllers as ct

X, EVERY = np.ones((4, 3), np.float32), np.ones((6, 3), np.float32)
FILE = "test_each_errors.py"


def asked(function: Callable[..., Any], *arrays: Any, **numbers: Any) -> Any:
    return ct.each(function)(*arrays, **numbers)


def by_if(x: ct.Row, every: ct.All) -> ct.Row:
    return x if x[0] > 0 else -x


def by_mask(x: ct.Row, every: ct.All) -> ct.Row:
    return every[every > 0].sum()


def by_loop(x: ct.Row, every: ct.All) -> ct.Row:
    return sum(row for row in every)


def to_array(x: ct.Row, every: ct.All) -> ct.Row:
    return np.asarray(x)


def by_exp(x: ct.Row, every: ct.All) -> ct.Row:
    return np.exp(x)


def by_power(x: ct.Row, every: ct.All) -> ct.Row:
    return x**0.3


def unlike(x: ct.Row, every: ct.All) -> ct.Row:
    return every + every[:2]


def no_axis(x: ct.Row, every: ct.All) -> ct.Row:
    return x.sum(axis=1)


def beyond(x: ct.Row, every: ct.All) -> ct.Row:
    return x[3]


def by_float(x: ct.Row, every: ct.All) -> ct.Row:
    return every[x]


def of_computed(x: ct.Row, every: ct.All) -> ct.Row:
    return (every + 1)[x.argmin()]


def condition(x: ct.Row, every: ct.All) -> ct.Row:
    return x > 0


def narrow(x: ct.Row, every: ct.All) -> ct.int32:
    return x.sum()


def nothing(x: ct.Row, every: ct.All) -> ct.Row:
    x + 1


def too_many_axes(x: ct.Row, every: ct.All) -> ct.Row:
    return x[None, None] + every


def median(x: ct.Row, every: ct.All) -> ct.Row:
    return np.median(x)


def short_product(x: ct.Row, every: ct.All) -> ct.Row:
    return every @ x[:2]


def same_name(x: ct.Row, every: ct.All) -> ct.Row:
    return dict(x=x)


def word(x: ct.Row, every: ct.All) -> ct.Row:
    return dict(float=x)


@pytest.mark.parametrize(("function", "kind", "words"), [
    (by_if, TypeError, "np.where(condition, a, b)"),
    (by_mask, TypeError, "np.where(condition, a, b)"),
    (by_loop, TypeError, "6 rows of a whole array"),
    (to_array, TypeError, "np.stack([a, b])"),
    (by_exp, ValueError, "math='fast'"),
    (by_power, ValueError, "math='fast'"),
    (unlike, ValueError, "(6, 3), (2, 3) cannot be broadcast"),
    (no_axis, ValueError, "axis=1"),
    (beyond, IndexError, "the index 3 is beyond the 3 elements"),
    (by_float, TypeError, "index.astype('int32')"),
    (of_computed, TypeError, "given as ct.All"),
    (condition, ValueError, "np.where(condition, 1, 0)"),
    (narrow, ValueError, "x.astype('int32')"),
    (nothing, ValueError, "return a value"),
    (too_many_axes, ValueError, "return 2 at most"),
    (median, TypeError, "np.median is no function of items"),
    (short_product, ValueError, "(6, 3) and (2,)"),
    (same_name, ValueError, "rename one of them"),
    (word, ValueError, "a word of OpenCL C"),
])  # fmt: skip
def test_what_cannot_be_traced_says_where_and_what_to_do(
    function: Callable[..., Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as error:
        asked(function, X, EVERY)
    assert words in str(error.value) and FILE in str(error.value), error.value


def no_rows(every: ct.All) -> ct.Row:
    return every[0]


def plain(x: ct.Row, every) -> ct.Row:  # type: ignore[no-untyped-def]
    return x


@pytest.mark.parametrize(("function", "words"), [
    (no_rows, "no parameter of ct.Row"), (plain, "'every' is no array of items"),
])  # fmt: skip
def test_parameters_are_rows_whole_arrays_or_numbers(
    function: Callable[..., Any], words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        asked(function, X, EVERY)


@pytest.mark.parametrize(("arrays", "numbers", "words"), [
    ((X,), {}, "missing: every"),
    ((X, EVERY, X), {}, "3 arrays are given"),
    ((X, EVERY), {"eps": 1}, "unknown: eps"),
])  # fmt: skip
def test_a_call_gives_all_arrays_and_known_numbers(
    arrays: Any, numbers: dict[str, float], words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        asked(no_axis, *arrays, **numbers)


def columns(x: ct.Column, y: ct.Row) -> ct.Row:
    return y


def sum_of_columns(x: ct.Column) -> ct.Row:
    return ct.accumulate(x[0])


def test_columns_are_of_arrays_of_as_many_and_sums_are_computed_where_rows_lie() -> None:
    with pytest.raises(ValueError, match="unlike numbers of rows: x 3, y 4 .of a ct.Column"):
        asked(columns, X, X)
    with pytest.raises(ValueError, match="'x' has the shape .4,. and no columns.*ct.Row"):
        asked(columns, X[:, 0], X)
    with pytest.raises(ValueError, match="result: sums over all items.*ct.Row"):
        asked(sum_of_columns, X)


def test_rows_around_have_the_item_s_own_among_them() -> None:
    for first, last in ((1, 2), (-2, -1)):
        with pytest.raises(ValueError, match=f"got {first} to {last}; give numbers with first"):
            ct.Near(first, last)
    with pytest.raises(TypeError, match="Near: last.*whole"):
        ct.Near(0, 0.5)     # type: ignore[arg-type]


def both(x: ct.Row, y: ct.Row, *, a: float) -> ct.Row:
    return x + y + a


def test_arrays_fit_each_other_and_numbers_without_a_default_are_given() -> None:
    with pytest.raises(ValueError, match="unlike numbers of rows: x 4, y 6"):
        asked(both, X, EVERY, a=1)
    with pytest.raises(TypeError, match="missing: a"):
        asked(both, X, X)
    with pytest.raises(ValueError, match=r"'x' has the shape \(0, 3\)"):
        asked(both, X[:0], X[:0], a=1)
    with pytest.raises(ValueError, match="float16"):
        asked(both, X.astype("f2"), X, a=1)
    assert asked(both, X, y=X, a=1).tolist() == (X + X + 1).tolist()


def test_fast_arithmetic_takes_the_functions_of_the_driver() -> None:
    fast = ct.each(math="fast")(by_exp)
    assert np.allclose(fast(X, EVERY), np.exp(X))


def test_a_step_of_a_program_may_use_powers_of_half_numbers() -> None:
    @ct.step
    def roots(u, v):  # type: ignore[no-untyped-def]
        return dict(u=v**1.5, v=v**-0.5)

    start = np.float32([1, 2, 4])
    with ct.Computation(roots, start.shape, u=0, v=start, dtype="float32") as run:
        run.run(1)
        assert np.array_equal(run.u, start * np.sqrt(start))
        assert np.array_equal(run.v, 1 / np.sqrt(start))
