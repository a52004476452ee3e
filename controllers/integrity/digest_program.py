# SPDX-License-Identifier: MIT
"""The program that folds the cells of a field to its digest, on any device.

It sees floats as whole numbers of their bits, of which all arithmetic is exact and wraps alike.
"""
from __future__ import annotations

import numpy as np

from controllers.array.lowering import BoxStage
from controllers.integrity.digest import FIRST, HALF, OF_COLUMN, OF_ROW, Digest
from controllers.plan import Plan
from controllers.program.accumulator import Accumulator
from controllers.program.boundary import KEEP, PERIODIC, Boundary
from controllers.program.exact_sum import BITS, N_FLAGS
from controllers.program.expression import Application, Constant, Expression, Index, Read, where
from controllers.program.fold import Fold
from controllers.program.program import Field, Program
from hitmap.shape import Shape

CELLS, DIGEST, NANS = "cells", "digest", "nans"     # the field, and the folds
_SIZE = 1 << 64
_LOW = (1 << HALF) - 1


def digest_program(plan: Plan, name: str) -> Program:
    """Of a field of a plan; its one field has `bits_dtype`."""
    field, domain = plan.program.field(name), plan.layout_of(name).domain
    kind, here = np.dtype(field.dtype), (0,) * domain.n_axes
    stored = bits_dtype(kind).name
    bits: Expression = Read(CELLS, here)
    if stored != "int64":
        bits = Application("int64", bits)
    folds = {}
    if kind.kind == "f":
        infinite, nan = (int(kind.type(one).view(stored)) for one in (np.inf, np.nan))
        is_nan = _apply("bitwise_and", bits, np.iinfo(stored).max) > Constant(infinite)
        bits = where(is_nan, nan, bits)
        folds[NANS] = Fold("sum", where(is_nan, 1, 0), wraps=True)
    if stored == "int32" and kind.kind == "f":      # the upper half is 0
        words = _lower_half(bits)
    else:
        words = _apply("bitwise_xor", bits, _upper_half(bits))
    folds[DIGEST] = Fold("sum", _apply("*", words, _weight(domain)), wraps=True)
    stage = BoxStage(DIGEST, {}, ((0, 0),) * len(here), folds, CELLS, cells=domain)
    sides = tuple((PERIODIC, PERIODIC) if ring else (KEEP, KEEP) for ring in plan.periodic)
    return Program(DIGEST, (Field(CELLS, stored, Boundary(sides), field.half),), (stage,))


def bits_dtype(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """As which its cells are seen: floats as whole numbers of as many bits.

    >>> bits_dtype(np.dtype("float32")), bits_dtype(np.dtype("uint8"))
    (dtype('int32'), dtype('uint8'))
    """
    return np.dtype(f"int{8 * dtype.itemsize}") if dtype.kind == "f" else dtype


def digest_of_folds(found: dict[str, Accumulator]) -> Digest:
    """What the folds of the program have come to."""
    return Digest(_whole(found[DIGEST]), _whole(found[NANS]) if NANS in found else 0)


def _whole(found: Accumulator) -> int:
    """A sum of whole numbers, modulo 2**64."""
    digits = found.words[N_FLAGS:].tolist()
    return sum(int(digit) << BITS * at for at, digit in enumerate(digits)) % _SIZE


def _weight(domain: Shape) -> Expression:
    """Of each cell, as `digest.digest_of` has it: products are of numbers of 32 bits."""
    *rows, column = (
        Index(axis) if not low else Index(axis) - low for axis, low in enumerate(domain.lower)
    )
    scaled = _apply("*", _lower_half(column), OF_COLUMN)
    key = _apply("+", _apply("+", scaled, column), _signed(FIRST))
    stride = OF_ROW
    for along, extent in zip(reversed(rows), reversed(domain.extent[:-1])):
        key = _apply("+", key, _apply("*", along, _signed(stride)))
        stride *= extent
    product = _apply("*", _lower_half(key), _upper_half(key))
    mixed = _apply("bitwise_xor", product, _upper_half(product))
    return _apply("bitwise_or", _lower_half(mixed), 1)


def _lower_half(value: Expression) -> Expression:
    return _apply("bitwise_and", value, _LOW)


def _upper_half(value: Expression) -> Expression:
    return _lower_half(_apply("right_shift", value, HALF))


def _apply(name: str, value: Expression, other: Expression | int) -> Expression:
    return Application(name, value, Constant(other) if isinstance(other, int) else other)


def _signed(number: int) -> int:
    """As an int64 has it."""
    number %= _SIZE
    return number - _SIZE if number >= _SIZE // 2 else number
