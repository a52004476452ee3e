# SPDX-License-Identifier: MIT
"""What a step returns: new values of fields, by their names, and fields under other names."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controllers.language.grid import Grid
from controllers.language.half_points import Half, described
from controllers.language.kinds import Kinds, unknown
from controllers.language.reduced import folds_in, is_number
from controllers.language.struct import Struct
from controllers.language.value import Value, is_value, node_at, plain
from controllers.program.expression import Constant, Expression, Read, where
from controllers.program.identifier import check_identifier
from controllers.program.repeat import NOW
from controllers.program.scalars import TIME, TIME_STEP
from hitmap.argument import short

Updates = dict[str, Expression]


def changes(
    returned: Mapping[str, Any],
    kinds: Kinds,
    grid: Grid,
    over: Callable[[Half], Expression | None] | None,
    what: str,
) -> tuple[Updates, dict[str, str]]:
    """What the fields of the program become, and which get which other ones; `what` is the step.

    over: the condition of the cells that are computed, by where they lie; None where all are.
    """
    here = (0,) * len(grid.axes)
    updates: Updates = {}
    renames: dict[str, str] = {}
    for name, node in _parts(returned, kinds, grid, what):
        own = Read(name, here)
        if node is own:
            continue
        lies = kinds.program_halves
        condition = None if over is None else over(lies[name])
        if isinstance(node, Read) and node.offset == here and lies[node.field] == lies[name]:
            if condition is not None:
                raise ValueError(
                    f"{what} gives {name!r} the field {node.field!r} itself, which renames all of "
                    f"it, but is restricted to some cells; copy it by 1 * {node.field}"
                )
            renames[name] = node.field
        else:
            updates[name] = node if condition is None else where(condition, node, own)
    return updates, renames


@dataclass
class Renames:
    """The renames of all steps of a program, which are all done as the whole of them ends."""

    all: dict[str, str] = field(default_factory=dict)
    _where: dict[str, str] = field(default_factory=dict)    # the step, by the new name
    _written: set[str] = field(default_factory=set)

    def add(
        self, renames: Mapping[str, str], updates: Updates, reads: Sequence[Read], what: str
    ) -> None:
        """Those of the next step, which also writes and reads; ValueError where that cannot be."""
        used = {*updates, *(read.field for read in reads), *renames, *renames.values()}
        late = [new for new in self.all if new in used]
        early = [new for new, old in renames.items() if old in self._written]
        for new in (*late, *early):
            old = {**renames, **self.all}[new]
            raise ValueError(
                f"{what}: {new!r} is a new name for {old!r}, and of several steps in a row all "
                f"renames are done at the end, of what fields were at the beginning; so nothing "
                f"may write {old!r} before or use {new!r} after it: copy it by 1 * {old}"
            )
        self.all |= renames
        self._where |= dict.fromkeys(renames, what)
        self._written |= updates.keys()


    def check(self) -> None:
        """ValueError where a step would copy: a field gets another one, which stays what it is."""
        for new, old in self.all.items():
            if old not in self._written and old not in self.all:
                raise ValueError(
                    f"{self._where[new]} gives {new!r} the field {old!r} itself, which is a new "
                    f"name for it, but {old!r} keeps its values, too; copy it by 1 * {old}"
                )


def checked(returned: object, kinds: Kinds, what: str) -> Mapping[str, Any]:
    """What a step returned, if these are new values of fields and results, by their names."""
    if not isinstance(returned, Mapping) or not returned:
        raise TypeError(
            f"{what} returns the new values by the names of fields, as dict(u=...), got "
            f"{short(returned)}"
        )
    for name, value in returned.items():
        if name not in kinds.dtypes and not is_result(value):
            if isinstance(name, str) and name == TIME_STEP:
                raise ValueError(
                    f"{what} returns dt, which is made of no fold of fields, as ct.max(u); give "
                    f"the computation a constant, dt=..."
                )
            raise ValueError(unknown(str(name), [*kinds.dtypes], f"{what} returns"))
    return returned


def is_result(value: object) -> bool:
    """Whether it is one number, or a struct of them, made of folds."""
    if isinstance(value, Struct):
        return all(map(is_result, value.parts.values()))
    if not isinstance(value, Value):
        return False
    return is_number(value.node) and bool(folds_in([value.node]))


def numbers(
    returned: Mapping[str, Any], kinds: Kinds, axes: Sequence[str], what: str
) -> dict[str, Expression]:
    """The results of a step, and `dt`; those of structs by component, as `name_part`."""
    found: dict[str, Expression] = {}
    for name, value in returned.items():
        if name not in kinds.dtypes:
            parts: Mapping[str, Any] = value.parts if isinstance(value, Struct) else {"": value}
            for part, one in parts.items():
                found[f"{name}_{part}" if part else name] = one.node
    for name in found:
        if name != TIME_STEP:
            _check_result(name, kinds, axes, what)
    return found


def _check_result(name: str, kinds: Kinds, axes: Sequence[str], what: str) -> None:
    try:
        check_identifier(name, "result")
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    taken = next((text for names, text in (
        (kinds.program_dtypes, "a field"), (axes, "an axis"), ((TIME,), "the time"),
        (NOW, "what a run says of itself"),
    ) if name in names), "")  # fmt: skip
    if taken:
        raise ValueError(
            f"{what} returns a result {name!r}, which is the name of {taken}; rename the result"
        )


def _parts(
    returned: Mapping[str, Any], kinds: Kinds, grid: Grid, what: str
) -> Iterator[tuple[str, Expression]]:
    """The fields of the program with their new values."""
    for name, value in returned.items():
        if name not in kinds.dtypes:
            continue
        names, half = kinds.dtypes[name].names, kinds.halves[name]
        if names is None:
            yield name, _node(value, name, half, grid, what)
        elif isinstance(value, Struct):
            parts = value.parts
            if sorted(parts) != sorted(names):
                raise ValueError(
                    f"{what} gives {name!r} a struct of {', '.join(parts)}, it has "
                    f"{', '.join(names)}; build it by ct.struct(dtype, ...)"
                )
            for part in names:
                yield f"{name}_{part}", _node(parts[part], f"{name}.{part}", half, grid, what)
        else:
            for part in names:
                yield f"{name}_{part}", _node(value, name, half, grid, what)


def _node(value: Any, name: str, half: Half, grid: Grid, what: str) -> Expression:
    """The expression of a value for one field."""
    if not is_value(value):
        got = "a struct; take one of its components" if isinstance(value, Struct) else short(value)
        raise TypeError(f"{what} gives {name!r} one value per cell or a number, got {got}")
    if not isinstance(value, Value):
        try:
            return Constant(plain(value))
        except ValueError as error:     # it is infinite
            raise ValueError(f"{what} gives {name!r} no value of its dtype: {error}") from None
    if value.places != grid.places:
        raise ValueError(
            f"{what} gives {name!r} a value of another grid, {value.places}; use the grid of the "
            f"computation, {grid!r}"
        )
    if value.node.is_condition:
        raise ValueError(
            f"{what} gives {name!r} a condition, and a field holds numbers; choose them by "
            f"np.where(condition, 1, 0)"
        )
    if value.half not in (None, half):
        axis = next(axis for axis, a, b in zip(grid.axes, value.half, half) if a != b)
        raise ValueError(
            f"{what} gives {name!r}, which lies {described(half, grid.axes)}, a value "
            f"{described(value.half, grid.axes)}; take it half a cell away, f.at({axis!r}, 1/2), "
            f"or say where the field lies: location=dict(...)"
        )
    return node_at(value, half)
