# SPDX-License-Identifier: MIT
"""Pools of buffers, and permutations of these: how buffers change roles from step to step."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def pools_of(fields: Sequence[str], renames: Mapping[str, str]) -> dict[str, str]:
    """By field the name of its pool: of the first field in it."""
    pools = {field: field for field in fields}
    for new, old in renames.items():
        one, other = sorted((pools[new], pools[old]), key=[*fields].index)
        pools = {field: one if name == other else name for field, name in pools.items()}
    return pools


def order_of(turn: tuple[int, ...]) -> int:
    """How often a permutation is done until all is as it was."""
    return next(n for n, power in enumerate(_steps(turn), 1) if power == tuple(range(len(turn))))


def powers_of(turn: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
    """A permutation done 0 times, once and so on, so many of them at most."""
    powers = [tuple(range(len(turn)))]
    for power in _steps(turn):
        if len(powers) == count:
            break
        powers.append(power)
    return powers


def _steps(turn: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The permutation done once, twice, and so on."""
    power = tuple(range(len(turn)))
    while True:
        power = tuple(turn[at] for at in power)
        yield power
