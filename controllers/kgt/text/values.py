# SPDX-License-Identifier: MIT
"""Operations as OpenCL C, each in the dtype that NumPy gives it.

    float32, float64    float, double
    uint8, int16        int, wrapped to uchar or short by a conversion where the result may not fit
    int32               int, or where the result may not fit uint, which stands for it
    int64               what `controllers.kgt.text.integer` says

Signed overflow is undefined in C, so what may wrap is computed with unsigned numbers.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from controllers.kgt.text.c_text import Text, converted, joined
from controllers.kgt.text.integer import integer_literal
from controllers.kgt.text.lanes import Lanes
from controllers.kgt.text.literals import OPENCL_TYPES, has_exact_reciprocal, literal
from controllers.program.dtypes import (
    CONDITION,
    Kind,
    computed_number,
    kind_of_number,
    signature,
)
from controllers.program.expression import Symbol
from controllers.program.function import Integers, Range
from controllers.program.functions import (
    ATOM,
    FLOATS,
    FUNCTIONS,
    INTEGERS,
    QUOTIENT,
    Function,
)

_SIGNED = {"ushort": "short", "uint": "int", "ulong": "long"}
_UNSIGNED = {"uint8": "uchar", "int16": "ushort", "int32": "uint"}
_NARROW = {"uchar", "short"}        # which C promotes to int


class Values:
    """Texts of values; int64 is computed in the C type `wide`, as wide as `lanes`.

    `temporary` makes a variable of a value.
    """

    def __init__(self, wide: str, lanes: Lanes, temporary: Callable[[Text], Text]) -> None:
        self._wide, self._lanes, self._temporary = wide, lanes, temporary

    def number(self, value: float) -> Text:
        """A constant, which has no text before it meets something."""
        return Text((), ATOM, 1, value, kind=kind_of_number(value))

    def operation(self, symbol: Symbol, operands: Sequence[Text]) -> Text:
        """A function of the table on values."""
        function = FUNCTIONS[symbol]
        dtype, kind = signature(function, [operand.kind for operand in operands])
        numbers = [operand.constant for operand in operands]
        if kind.weak and all(operand.is_number for operand in operands):
            return self.number(computed_number(function, dtype, numbers))
        if function.converts:
            return self.converted(operands[0], function.converts)
        texts = [
            one if one.kind == CONDITION else self.converted(one, dtype) for one in operands
        ]
        if dtype not in INTEGERS:
            result = self._of_floats(function, texts, dtype)
        elif dtype == "int64":
            result = self._of_wide(function, texts)
        else:
            result = self._of_narrow(function, texts, dtype)
        return result._replace(kind=kind)

    def stored(self, text: Text, dtype: str) -> Text:
        """A value as one of a field."""
        if text.kind.dtype != dtype or text.is_number:
            text = self.converted(text, dtype)
        return self._typed(OPENCL_TYPES[dtype], text, narrows=True)

    def converted(self, text: Text, dtype: str) -> Text:
        """A value in another dtype."""
        if text.is_number:
            return self._literal(text.constant or 0, dtype)
        source, kind = text.kind.dtype, Kind(dtype)
        if source in FLOATS:
            if dtype in FLOATS:
                return self._typed(OPENCL_TYPES[dtype], text)._replace(kind=kind)
            helper = f"kgt_{dtype}_of_{text.type_name}({{0}})"
            made = joined(FUNCTIONS[dtype], helper, [text])
            return made._replace(kind=kind, type_name=OPENCL_TYPES[dtype])
        if dtype == "int64":
            return self._widened(text)._replace(kind=kind)
        if source == dtype:
            return text
        if dtype in INTEGERS and np.can_cast(source, dtype):
            return text._replace(kind=kind)     # a narrower C type holds the value as well
        given = text if dtype in INTEGERS else self._signed(text)
        made = self._typed(OPENCL_TYPES[dtype], given, narrows=True)
        return made._replace(kind=kind)

    def _widened(self, text: Text) -> Text:
        """As int64, in the type of these."""
        if self._wide == "int" and self._lanes.width == 1 and text.type_name in _NARROW:
            return text._replace(type_name="int")
        return self._typed(self._wide, text if text.type_name == self._wide else self._signed(text))

    def _signed(self, text: Text) -> Text:
        return self._typed(_SIGNED.get(text.type_name, text.type_name), text)

    def _typed(self, type_name: str, text: Text, narrows: bool = False) -> Text:
        if text.type_name == type_name:
            return text
        if narrows and self._lanes.width > 1:
            text = self._temporary(text)
        return self._cast(type_name, text)

    def _cast(self, type_name: str, text: Text) -> Text:
        return converted(type_name, text, self._lanes)

    def _literal(self, value: float, dtype: str) -> Text:
        number, type_name, wide = np.dtype(dtype).type(value).item(), "int", self._lanes.width > 1
        if dtype not in INTEGERS:
            text, type_name = literal(value, dtype), OPENCL_TYPES[dtype]
        elif dtype == "int64":
            text, type_name = integer_literal(number, self._wide), self._wide
        else:
            text = integer_literal(number, type_name)
            type_name = _UNSIGNED[dtype] if wide else type_name
        if wide and type_name in ("ulong", "uchar", "ushort", "uint"):
            text = f"({self._lanes.type(type_name)}){text}"     # may be converted, as vectors
        return Text((text,), ATOM, 1, number, kind=Kind(dtype), type_name=type_name)

    def _of_floats(self, function: Function, operands: Sequence[Text], dtype: str) -> Text:
        type_name = OPENCL_TYPES.get(dtype, "int")
        divisor = operands[1].constant if function.name == "/" else None
        if divisor is not None and has_exact_reciprocal(divisor, dtype):
            function = FUNCTIONS["*"]
            operands = operands[0], self._literal(1 / divisor, dtype)
        text = self._lanes.function(function.text.replace("VALUE", type_name), type_name)
        return joined(function, text, operands)._replace(type_name=type_name)

    def _of_wide(self, function: Function, operands: Sequence[Text]) -> Text:
        """Of int64; functions and `ulong` take operands that are turned signed."""
        rule, arithmetic = _rule(function), self._wide
        if function.name == QUOTIENT and arithmetic == "ulong":
            return self._signed_quotient(operands[0], operands[1])
        if rule.wraps or (not rule.text and arithmetic != "ulong"):
            made = joined(function, rule.text or function.text, operands)
            return made._replace(type_name=arithmetic)
        signed = _SIGNED.get(arithmetic, arithmetic)
        made = joined(
            function, _text(function, rule, signed), [self._cast(signed, one) for one in operands]
        )
        return made if made.truth else self._cast(arithmetic, made)

    def _signed_quotient(self, left: Text, right: Text) -> Text:
        """The quotient of two signed numbers that are written as `ulong`."""
        if right.constant == -1:
            zero = Text(("0UL",), ATOM, 1)     # wraps, where `long` is undefined
            made = joined(FUNCTIONS["-"], FUNCTIONS["-"].text, (zero, left))
            return made._replace(type_name="ulong")
        division = FUNCTIONS[QUOTIENT]
        if right.constant:
            divisor = Text((integer_literal(int(right.constant), "long"),), ATOM, 1)
            signed = joined(division, division.text, (self._cast("long", left), divisor))
            return self._cast("ulong", signed)
        made = joined(division, "kgt_quotient({0},\n{1})", (left, right))
        return made._replace(type_name="ulong")

    def _of_narrow(self, function: Function, operands: Sequence[Text], dtype: str) -> Text:
        """Of integers narrower than int64; vectors, which C promotes to nothing, in their own type.
        """
        rule, info = _rule(function), np.iinfo(dtype)
        if self._lanes.width > 1:
            unsigned = [self._typed(_UNSIGNED[dtype], one) for one in operands]
            return joined(function, function.text, unsigned)._replace(type_name=_UNSIGNED[dtype])
        low, high = rule.bounds(*(_range(one, int(info.min), int(info.max)) for one in operands))
        fits = info.min <= low and high <= info.max
        if dtype == "int32" and rule.wraps and not fits and not function.gives_condition:
            operands = [one if one.truth else self._typed("uint", one) for one in operands]
            return joined(function, rule.text or function.text, operands)._replace(type_name="uint")
        given = [one if one.truth else self._signed(one) for one in operands]
        if rule.text:   # functions of C are for several types, of which all operands have one
            given = [one if one.truth else self._typed("int", one) for one in given]
        made = joined(function, _text(function, rule, "int"), given)._replace(type_name="int")
        return made if made.truth or fits else self._cast(OPENCL_TYPES[dtype], made)


def _rule(function: Function) -> Integers:
    assert function.integers is not None, f"{function.name!r} is no function of integers"
    return function.integers


def _text(function: Function, rule: Integers, type_name: str) -> str:
    return (rule.text or function.text).replace("VALUE", type_name)


def _range(text: Text, low: int, high: int) -> Range:
    """What it may be."""
    if text.truth:
        return 0, 1
    return (low, high) if text.constant is None else (int(text.constant), int(text.constant))
