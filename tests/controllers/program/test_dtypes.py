# SPDX-License-Identifier: MIT
"""NumPy 2's promotion, whatever NumPy is installed, and what numbers become."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from controllers.program.dtypes import Kind, applied, kind_of_number, promoted
from controllers.program.expression import Application, Constant, Expression, Read, where
from controllers.program.functions import DTYPES
from controllers.program.program import Field, Program, Stage
from controllers.program.reference import reference_run, values_of

ARRAYS = {f"x{dtype}": np.array([1, 7, 100], dtype) for dtype in DTYPES}
KINDS = {name: array.dtype.name for name, array in ARRAYS.items()}
F, D, B, S, N, L = (Read(name, (0,)) for name in ARRAYS)        # float32 ... int64


def computed(expression: Expression) -> np.ndarray[Any, Any]:
    """In the dtype that it has."""
    _, (value,) = applied([expression], KINDS)
    return values_of(expression, lambda read: ARRAYS[read.field], value.kind.dtype)


def test_arrays_are_promoted_as_numpy_does() -> None:
    for one, other in product(ARRAYS, repeat=2):
        expected = ARRAYS[one] + ARRAYS[other]
        got = computed(Read(one, (0,)) + Read(other, (0,)))
        assert got.dtype == expected.dtype and np.array_equal(got, expected)
        assert promoted(Kind(KINDS[one]), Kind(KINDS[other])).dtype == expected.dtype


@pytest.mark.parametrize(
    ("expression", "dtype", "values"),
    [
        (S * 0.5, "float64", [0.5, 3.5, 50]),
        (B * 0.1, "float64", [0.1, 0.7000000000000001, 10]),
        (F * 3, "float32", [3, 21, 300]),
        (F + 2**40, "float32", [2**40] * 3),
        (B + 200, "uint8", [201, 207, 44]),
        (-B, "uint8", [255, 249, 156]),
        (S / S, "float64", [1, 1, 1]),
        (np.sqrt(S * S), "float32", [1, 7, 100]),
        (N // -3, "int32", [-1, -3, -34]),
        (N % -3, "int32", [-2, -2, -2]),
        (S * 400, "int16", [400, 2800, -25536]),
        (where(B < 300, S, F), "float32", [1, 7, 100]),
        (where(B < -1, 1, B), "uint8", [1, 7, 100]),
        (Constant(0.1) + Constant(0.2) + F * 0, "float32", [np.float32(0.1 + 0.2)] * 3),
        (Constant(7) // Constant(2) * B, "uint8", [3, 21, 44]),
        (np.floor(S), "int16", [1, 7, 100]),
        (L + D, "float64", [2, 14, 200]),
        (L << B, "int64", [2, 7 * 2**7, 0]),
        (B >> 9, "uint8", [0, 0, 0]),
        (-N >> L, "int64", [-1, -1, -1]),
        (~B, "uint8", [254, 248, 155]),
        ((D * 1e10).astype("int32"), "int32", [2**31 - 1] * 3),
        ((F * -3.7).astype("uint8"), "uint8", [0, 0, 0]),
        ((F * -3.7).astype("int64"), "int64", [-3, -25, -370]),
        (np.reciprocal(F), "float32", [1, np.float32(1) / np.float32(7), np.float32(0.01)]),
        (np.clip(S, 2, 50), "int16", [2, 7, 50]),
        (S**3, "int16", [1, 343, 16960]),
        (np.square(B), "uint8", [1, 49, 16]),
        (Application("quotient", Application("widened", S), Constant(-2)), "int64", [0, -3, -50]),
    ],
)
def test_each_operation_has_the_dtype_and_the_values_of_numpy(
    expression: Expression, dtype: str, values: list[float]
) -> None:
    got = computed(expression)
    assert got.dtype == dtype and got.tolist() == np.array(values, dtype).tolist()


def test_numbers_are_weak() -> None:
    assert promoted(kind_of_number(2), kind_of_number(0.5)) == Kind("float64", weak=True)
    assert promoted(Kind("uint8"), kind_of_number(2)) == Kind("uint8")
    assert promoted(Kind("int64"), kind_of_number(0.5)) == Kind("float64")
    assert promoted(Kind("float32", weak=True), Kind("float64")) == Kind("float64")
    given = promoted(Kind("float32", weak=True), kind_of_number(0.1))
    assert given == Kind("float32", weak=True), "coordinates are of a stage's dtype"


def test_a_store_is_of_the_same_kind() -> None:
    def stored(value: Expression, dtype: str) -> list[float]:
        fields = tuple(Field(name, kind) for name, kind in KINDS.items())
        stage = Stage("s", {"u": value}, ((0, 0),))
        program = Program("p", (*fields, Field("u", dtype)), (stage,))
        arrays = {**ARRAYS, "u": ARRAYS[f"x{dtype}"]}
        result: list[float] = reference_run(program, arrays, 1, (False,))["u"].tolist()
        return result

    assert stored(N * 1000, "int16") == [1000, 7000, -31072]
    assert stored(D / 3, "float32") == [float(np.float32(n / 3)) for n in (1, 7, 100)]
    assert stored(L, "float32") == [1, 7, 100]
    assert stored(Constant(2**24 + 1), "float32") == [2**24] * 3
    assert stored(Constant(255), "uint8") == [255] * 3
    for value, dtype in ((F, "int64"), (S, "uint8"), (Constant(2.0), "int16")):
        with pytest.raises(ValueError, match=f"'u', which holds {dtype}, values of .*astype"):
            stored(value, dtype)
