# SPDX-License-Identifier: MIT
"""A stencil as a user would write it: the third way, beside generic and specialised."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers import Computation, Kernel, Stencil
from controllers.kgt.text.emitter import literal
from controllers.program.program import INTEGERS
from hitmap.comm import Communicator

WAYS = ("specialised", "generic", "body", "whole")


def user_body(stencil: Stencil, dtype: str) -> str:
    """The statements that compute one cell, with the arithmetic of the description."""
    whole = dtype in INTEGERS
    terms = []
    offsets = product(*(range(a, b + 1) for a, b in stencil.shape))
    for offset, weight in zip(offsets, stencil.weights):
        if weight:
            read = f"NEAR(u, {', '.join(map(str, offset))})"
            factor = f"{int(weight) % 2**64}UL" if whole else literal(weight, dtype)
            terms.append(f"{factor} * (ulong){read}" if whole else f"{factor} * {read}")
    total = "\n    + ".join(terms)
    if not whole:
        return f"NEW(u) = ({total}) / {literal(stencil.factor, dtype)};"
    if stencil.factor == -1:
        return f"NEW(u) = (VALUE)(0UL - ({total}));"
    divisor = f"(long){int(stencil.factor) % 2**64}UL"
    return f"NEW(u) = (VALUE)((long)({total}) / {divisor});"


def kernel_for(way: str, stencil: Stencil, dtype: str) -> str | Kernel:
    """What `kernel=` says for one of WAYS."""
    if way not in ("body", "whole"):
        return way
    body = user_body(stencil, dtype)
    head = (
        "__kernel void mine(TILE(u), __global const VALUE *u, BOX, __global VALUE *restrict u_new)"
    )
    return Kernel.of("mine", body if way == "body" else f"{head}\n{{\n    CELL;\n    {body}\n}}")


def run(
    way: str, stencil: Stencil, field: npt.NDArray[Any], n_steps: int, boundary: tuple[str, ...],
    comm: Communicator | None = None, **options: Any,
) -> npt.NDArray[Any] | None:  # fmt: skip
    """The field after some steps, on rank 0."""
    dtype = field.dtype.name
    with Computation(
        stencil.program(dtype), field.shape, boundary=boundary, comm=comm,
        kernel=kernel_for(way, stencil, dtype), **options,
    ) as computation:  # fmt: skip
        computation.scatter(field if computation.comm.rank == 0 else None)
        computation.run(n_steps)
        return computation.gather()


def extreme(rng: np.random.Generator, extent: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
    """Integers of the whole range, its ends more often than they deserve."""
    info = np.iinfo(dtype)
    field = rng.integers(info.min, info.max, extent, dtype, endpoint=True)
    ends = rng.choice(np.array([info.min, info.max, 0, 1, info.max - 1], dtype), extent)
    return np.where(rng.random(extent) < 0.3, ends, field)


def integer_stencil(rng: np.random.Generator, n_axes: int) -> Stencil:
    """Whole weights up to the ends of 64 bits, factors of either sign."""
    reach = rng.integers(0, 3 if n_axes < 4 else 2, (n_axes, 2))
    shape = [(-int(low), int(high)) for low, high in reach]
    n_weights = int(np.prod([high - low + 1 for low, high in shape]))
    pool = [0, 1, 1, -1, 2, -3, 255, 65537, -(2**31), 2**40 + 1, -(2**63), 2**63 - 1]
    weights = [pool[i] for i in rng.integers(0, len(pool) - 4 * int(rng.integers(2)), n_weights)]
    weights[int(rng.integers(n_weights))] = 1
    factor = [1, 4, -1, 3, -7, 256, -(2**63), 10**12][int(rng.integers(8))]
    return Stencil.of("random", shape, weights, factor)
