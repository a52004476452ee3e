# SPDX-License-Identifier: MIT
"""Division by a constant through fma has the bits of a division, or is not offered."""
from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pytest

from controllers.device import find_devices
from controllers.kgt.text.division import divide, reciprocal, rounded

Array = npt.NDArray[Any]
MANTISSAS = np.arange(2**23, 2**24, dtype=np.float32)


def fma(a: np.float32, b: Array, c: Array) -> Array:
    """a * b + c, rounded once: the sum in float64, rounded to odd, has enough bits."""
    product, more = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + more
    part = total - product
    rest = (product - (total - part)) + (more - part)
    bits = total.view(np.int64)
    inexact = (rest != 0) & (bits & 1 == 0)
    odd = bits + np.where(inexact, np.where((rest > 0) == (total > 0), 1, -1), 0)
    result: Array = odd.view(np.float64).astype(np.float32)
    return result


@pytest.mark.whole
def test_all_mantissas_are_divided_as_by_a_division_where_it_is_offered() -> None:
    rng, offered = random.Random(3), 0
    for divisor in (40.0, 22.0, 81.0, 6.5, *(rng.uniform(1, 2) for _ in range(6))):
        found = reciprocal(divisor, "float32")
        if found is None:
            continue
        offered += 1
        low = MANTISSAS * np.float32(found.low)
        quotients = fma(np.float32(found.high), MANTISSAS, low)
        assert np.array_equal(quotients, MANTISSAS / np.float32(divisor)), divisor
    assert offered > 4


def test_a_divisor_with_a_quotient_too_near_to_a_middle_is_not_offered() -> None:
    assert reciprocal(1 / 3, "float32") is None
    divisor = np.float32(1 / 3)
    exact = Fraction(float(divisor))
    high = Fraction(3) - Fraction(1, 2**22)
    assert high <= 1 / exact < high + Fraction(1, 2**22)
    assert rounded(Fraction(1, 3), 24) == exact


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_infinities_and_tiny_numbers_are_divided_correctly(dtype: str) -> None:
    found = reciprocal(-22, dtype)
    assert found is not None
    handle = find_devices()[0].handle
    assert handle is not None, "an OpenCL device"
    context = cl.Context([handle])
    queue = cl.CommandQueue(context)
    name = "float" if dtype == "float32" else "double"
    text = "\n".join([
        *divide("divide_cells", found, dtype, 4),
        f"__kernel void divide(__global {name} *x) {{ {name} c[4];",
        "for (int i = 0; i < 4; ++i) c[i] = x[4 * get_global_id(0) + i];",
        "divide_cells(c); for (int i = 0; i < 4; ++i) x[4 * get_global_id(0) + i] = c[i]; }",
    ])  # fmt: skip
    info, rng = np.finfo(dtype), np.random.default_rng(4)
    special = [0.0, -0.0, np.inf, -np.inf, info.max, info.tiny, -info.tiny / 3, info.tiny * 40]
    near = found.least * rng.uniform(0.1, 10, 100)
    x = np.array([*special, *near, *rng.standard_normal(100)], dtype)
    buffer = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    program = cl.Program(context, text).build(["-cl-fp32-correctly-rounded-divide-sqrt"])
    cl.Kernel(program, "divide")(queue, (x.size // 4,), None, buffer)
    result = np.empty_like(x)
    cl.enqueue_copy(queue, result, buffer)
    with np.errstate(all="ignore"):
        expected = x / np.dtype(dtype).type(-22)
    assert result.tobytes() == expected.tobytes()
