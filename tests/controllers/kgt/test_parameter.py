# SPDX-License-Identifier: MIT
from __future__ import annotations

import numpy as np
import pytest

from controllers.kgt.parameter import Parameter, Role, with_roles

READ, KEPT = Parameter("a", "float*", "in"), Parameter("b", "float*", "inout")
COUNT = Parameter("n", "uint", "scalar")


def test_declared_roles_are_taken_where_const_allows_them() -> None:
    roles: dict[str, Role] = {"b": "out"}
    assert [p.role for p in with_roles([READ, KEPT, COUNT], roles, "k")] == ["in", "out", "scalar"]
    assert with_roles([READ, KEPT], {"a": "in"}, "k") == (READ, KEPT)


@pytest.mark.parametrize(
    ("roles", "fault"),
    [
        ({"a": "out"}, "'a' is declared 'writing', but its parameter is a pointer to const"),
        ({"a": "inout"}, "'a' is declared 'updating'"),
        ({"b": "in"}, r"'b' is declared 'reading'.*write `__global const float\*`"),
        ({"n": "in"}, "'n' is declared 'reading', but its parameter is no tile"),
        ({"c": "in"}, "no parameter 'c'; it has a, b, n"),
    ],
)
def test_declared_roles_may_not_contradict_the_kernel(
    roles: dict[str, Role], fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        with_roles([READ, KEPT, COUNT], roles, "k")


def test_scalars_get_the_type_of_their_parameter_or_are_refused() -> None:
    assert Parameter("x", "float", "scalar").typed(0.1).dtype == np.float32
    assert Parameter("x", "unsigned long", "scalar").typed(2**64 - 1) == np.uint64(2**64 - 1)
    for value in (-1, 2**32, 0.5):
        with pytest.raises(ValueError, match="'n' is a uint, got"):
            COUNT.typed(value)
    with pytest.raises(ValueError, match="'x' is a float4; use one of char"):
        Parameter("x", "float4", "scalar").typed(1)
