# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from controllers.language.neighbour import shifted
from controllers.program.expression import Constant, Coordinate, Index, Read, Scalar, where
from controllers.program.offsets import MAX_OFFSET


def test_all_that_an_expression_says_of_cells_is_seen_from_the_neighbour() -> None:
    def of(i: int, j: int) -> object:
        near = Read("u", (i, j + 1)) * Coordinate(0, True, i - 1) + Scalar("a") * Read("v", (i, j))
        return where(Index(1, j) > 3, near / (near + Constant(2)), Coordinate(1, False, j))

    assert shifted(of(0, 0), (2, -3)) is of(2, -3)      # type: ignore[arg-type]
    assert shifted(of(2, -3), (0, 0)) is of(2, -3)      # type: ignore[arg-type]


def test_neighbours_that_are_too_far_away_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 2147483647 cells away"):
        shifted(Read("u", (MAX_OFFSET,)), (1,))
