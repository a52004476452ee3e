# SPDX-License-Identifier: MIT
"""Terms: what array expressions are made of, each a value per position; cheap to make.

A term knows its kind (dtype), and a `key` that is equal for terms that one kernel computes: numbers
that meet floats are no part of it, they are arguments of the kernel.
"""
from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias, Union

from controllers.array.source import Source
from controllers.program.dtypes import Kind

Steps: TypeAlias = tuple[int, ...]
_NONE: frozenset[Source] = frozenset()


class _Known:
    """What is known of every term.  size: its operations; numbers: the arguments, in order.

    lasts: whether it is kept, to be found when the same is written again.
    """

    __slots__ = ("key", "kind", "lasts", "numbers", "size", "sources")
    key: Any
    kind: Kind
    lasts: bool
    numbers: tuple[float, ...]
    size: int
    sources: frozenset[Source]


class Leaf(_Known):
    """The cells of a source from `start` on."""

    __slots__ = ("source", "start")

    def __init__(self, source: Source, start: Steps) -> None:
        self.source, self.start = source, start
        self.kind, self.lasts = source.kind, source.lasts
        self.key = (source.key, start)
        self.numbers = ()
        self.sources = frozenset((source,))
        self.size = 1


class Number(_Known):
    """A number in all cells: a whole one among integers, or an argument of the kernel."""

    __slots__ = ("value",)

    def __init__(self, value: float, kind: Kind, *, constant: bool) -> None:
        self.value, self.kind = value, kind
        self.key = ("number", value) if constant else "argument"
        self.numbers = () if constant else (float(value),)
        self.lasts = False
        self.sources = _NONE
        self.size = 1


class Apply(_Known):
    """A function of the table of functions on terms."""

    __slots__ = ("operands", "symbol")

    def __init__(self, symbol: str, kind: Kind, operands: tuple[Term, ...]) -> None:
        self.symbol, self.kind, self.operands = symbol, kind, operands
        self.lasts = False
        if len(operands) == 2:      # mostly
            one, other = operands
            self.numbers = one.numbers + other.numbers
            self.sources = one.sources | other.sources
            self.size = one.size + other.size + 1
            self.key = symbol, one.key, other.key
        else:
            self.numbers = sum([one.numbers for one in operands], ())
            self.sources = _NONE.union(*[one.sources for one in operands])
            self.size = sum([one.size for one in operands]) + 1
            self.key = (symbol, *[one.key for one in operands])


class Slid(_Known):
    """The term so many positions further on."""

    __slots__ = ("steps", "term")

    def __init__(self, term: Term, steps: Steps) -> None:
        self.term, self.steps = term, steps
        self.kind, self.numbers, self.sources = term.kind, term.numbers, term.sources
        self.size, self.lasts = term.size, False
        self.key = ("at", steps, term.key)


Term: TypeAlias = Union[Leaf, Number, Apply, Slid]


def leaf_of(source: Source, start: Steps) -> Leaf:
    """The cells of a source from `start` on."""
    return _lasting_leaf(source, start) if source.lasts else Leaf(source, start)


_lasting_leaf = lru_cache(maxsize=1024)(Leaf)


def slid(term: Term, steps: Steps) -> Term:
    """The term so many positions further on."""
    if not any(steps) or isinstance(term, Number):
        return term
    if isinstance(term, Leaf):
        return leaf_of(term.source, added(term.start, steps))
    return Slid(term, steps)


def added(one: Steps, other: Steps) -> Steps:
    """The sum of two offsets."""
    return tuple([a + b for a, b in zip(one, other)])


def anchor(term: Term) -> tuple[Source, Steps] | None:
    """The first leaf: its source, and the cell of position 0; None of numbers alone."""
    todo: list[tuple[Term, Steps]] = [(term, ())]
    while todo:
        one, steps = todo.pop()
        if isinstance(one, Leaf):
            return one.source, added(one.start, steps) if steps else one.start
        if isinstance(one, Slid):
            todo.append((one.term, added(one.steps, steps) if steps else one.steps))
        elif isinstance(one, Apply):
            todo += [(operand, steps) for operand in reversed(one.operands)]
    return None
