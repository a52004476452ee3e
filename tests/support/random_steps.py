# SPDX-License-Identifier: MIT
"""Random traced programs, each of one choice of all options (`random_options`).

A case follows from its number alone.  What steps compute is drawn as `random_programs` draws it,
with what only steps have: stored values, scalars, structs, and cells that are left out.
"""
from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from random_boundaries import half, whole_half
from random_options import Choice, choices
from random_programs import (
    FUNCTIONS,
    Drawn,
    Formula,
    ProgramCase,
    is_read,
    random_array,
)

import controllers as ct
from controllers.language.traced import program_of
from controllers.program.program import DTYPES, FLOATS, INTEGERS, Program
from controllers.program.storing import with_temporaries

LENGTHS = {1: (9, 50), 2: (6, 15), 3: (4, 8)}
_NO_DEFAULT = inspect.Parameter.empty


def planned(number: int) -> Program:
    """The program of a case as it is run: what is stored is kept in memory, or is not."""
    storing = choices()[number]["stored"]
    return with_temporaries(random_steps(number).program, "auto" if storing == "none" else storing)


@cache
def random_steps(number: int) -> ProgramCase:
    """Case `number` of `choices()`, the same every time."""
    for trial in range(50):
        case = _Steps(choices()[number], random.Random(f"{number} {trial}")).case(number)
        try:
            assert case.expected
        except ValueError as error:     # a domain too short for the rules
            assert "larger domain" in str(error), error
            continue
        return case
    raise AssertionError("no rules suit the domain")


class _Steps:
    """The steps of one case and what is around them."""

    def __init__(self, chosen: Choice, rng: random.Random) -> None:
        self.chosen, self.rng = chosen, rng
        self.extent = tuple(rng.randint(*LENGTHS[chosen["axes"]]) for _ in range(chosen["axes"]))
        cells: dict[str, Any] = dict(zip("zyx"[3 - chosen["axes"] :], self.extent))
        self.grid = ct.Grid(**cells, lower=-1, upper=1)
        structs = ["p", "q"] if chosen["renames"] == "earlier" else ["p"]
        self.structs = structs if chosen["structs"] else []
        names = [*self.structs, *"uvwkm"[: chosen["fields"] - 2 * len(self.structs)]]
        pairs = {"none": [], "earlier": [names[1::-1]], "swap": [names[-2:], names[:-3:-1]]}
        self.names, self.renames = names, dict(pairs[chosen["renames"]])
        self.leaders = {name: min(name, self.renames.get(name, name)) for name in names}
        self.leaders |= {old: self.leaders[new] for new, old in self.renames.items()}
        self.dtypes = self._random_dtypes()

    def case(self, number: int) -> ProgramCase:
        """The program, with values of its fields."""
        dtypes: dict[str, Any] = {
            name: [(field[-1], self.dtypes[field]) for field in self.fields(name)]
            if name in self.structs else self.dtypes[name] for name in self.names
        }  # fmt: skip
        steps, sides = self._steps(), {name: self._sides(name) for name in self.names}
        program = program_of(
            steps, self.grid, dtype={name: np.dtype(one) for name, one in dtypes.items()},
            boundary=sides, dt=0.25,
        ).program  # fmt: skip
        rng = np.random.default_rng(number)
        arrays = {name: random_array(rng, one, self.extent) for name, one in self.dtypes.items()}
        per_launch = self.chosen["steps"]
        n_steps = 2 * per_launch + 1 if per_launch > 1 else self.rng.randint(2, 4)
        return ProgramCase(program, (), arrays, program.periodic, n_steps)

    def fields(self, name: str) -> list[str]:
        """Those of the program that a field of the steps is."""
        return [f"{name}_a", f"{name}_b"] if name in self.structs else [name]

    def is_whole(self, name: str) -> bool:
        """Whether it holds integers."""
        return self.dtypes[self.fields(name)[0]] in INTEGERS

    def _random_dtypes(self) -> dict[str, str]:
        """Of the fields of the program; those that exchange their names have the same ones."""
        rng, kind = self.rng, self.chosen["dtypes"]
        found: dict[str, str] = {}
        leaders = sorted({*self.leaders.values()})
        rng.shuffle(leaders)
        for position, leader in enumerate(leaders):
            whole = position == 1 if position < 2 else rng.random() < 0.5
            alike = [name for name in self.names if self.leaders[name] == leader]
            for fields in zip(*map(self.fields, alike)):
                whole_numbers = kind == "integers" or (kind == "mixed" and whole)
                pool: tuple[str, ...] = INTEGERS if whole_numbers else FLOATS
                if kind == "floats" and len({*found.values()}) == 1:
                    pool = tuple({*FLOATS} - {*found.values()})
                found |= dict.fromkeys(fields, kind if kind in FLOATS else rng.choice(pool))
        return {field: found[field] for name in self.names for field in self.fields(name)}

    def _steps(self) -> list[ct.Step]:
        """One of them renames, one is restricted, one stores what neighbours use of it."""
        n_stages, rng, new = self.chosen["stages"], self.rng, self.renames
        exchanged = {*new, *new.values()}
        last = rng.random() < 0.5 and not {*self.names} <= exchanged
        renaming = n_stages - 1 if last or not new else 0
        restricted = rng.choice([n for n in range(n_stages) if n != renaming or not new] or [-1])
        storing, made = rng.randrange(n_stages), []
        for position in range(n_stages):
            # after it nothing reads the new names, before it nothing writes what it renames
            readable = [n for n in self.names if n not in new or position <= renaming]
            writable = [n for n in self.names if n not in exchanged]
            if position >= renaming:
                writable += [n for n in {*new.values()} if n not in new]
            formulas = self._formulas(readable, writable, position == storing)
            renames = new if position == renaming else {}
            over = self._region(readable) if position == restricted else None
            made.append(ct.step(self._function(formulas, renames), over=over))
        return made

    def _formulas(
        self, readable: Sequence[str], writable: Sequence[str], storing: bool
    ) -> dict[str, Formula]:
        """What the fields of the program become in one step."""
        rng, chosen, here = self.rng, self.chosen, (0,) * self.chosen["axes"]
        read = {field: self.dtypes[field] for name in readable for field in self.fields(name)}
        drawn = Drawn(rng, len(here), read, {field for field in read if rng.random() < 0.7})
        targets = [field for name in writable for field in self.fields(name)]
        formulas = drawn.updates(targets if chosen["steps"] == 1 else targets[:1])
        for old in self.renames.values():   # which gets a new value, as its old one goes
            if old in writable:
                formulas |= {field: drawn.updates([field])[field] for field in self.fields(old)}
        first = rng.choice(sorted(formulas))
        own = first, here
        extra: list[Formula] = []
        if chosen["steps"] > 1:
            extra.append(own)
        if storing and chosen["stored"] != "none":
            term = ("stored", ("+", drawn.term(False, self.dtypes[first] in INTEGERS), own))
            offset = (*(rng.choice([-1, 0, 1]) for _ in here[1:]), 1)
            extra.append(("-", ("at", term, offset), term))
        if storing and chosen["scalars"] != "none":
            extra.append(("*", ("scalar", None), own))
        for one in extra:
            formulas[first] = _met(formulas[first], one, self.dtypes[first])
        # a field itself would be a new name for it
        return {f: ("*", 1, one) if is_read(one) else one for f, one in formulas.items()}

    def _function(
        self, formulas: Mapping[str, Formula], renames: Mapping[str, str]
    ) -> Callable[..., dict[str, Any]]:
        """A step of all fields that computes formulas."""
        axis, position = self.rng.choice(self.grid.axes), self.rng.uniform(-1, 1)
        kind = self.chosen["scalars"]
        keywords: Mapping[str, Mapping[str, Any]] = {
            "parameter": {"rate": 0.5},
            "time": dict.fromkeys(["t", "dt"], _NO_DEFAULT),
            "coordinate": {axis: _NO_DEFAULT},
        }
        asked = keywords.get(kind, {})

        def scalar(scalars: Mapping[str, Any]) -> Any:
            if kind == "time":
                return np.sin(scalars["t"]) * scalars["dt"]
            if kind == "point":
                return ct.point(self.grid, (position,) * len(self.extent))
            return scalars.get("rate", scalars.get(axis))

        def function(*values: Any, **scalars: Any) -> dict[str, Any]:
            of_names, given = dict(zip(self.names, values)), {"scalar": scalar(scalars)}
            for name, value in of_names.items():
                parts = [value.a, value.b] if name in self.structs else [value]
                given |= dict(zip(self.fields(name), parts))
            new = {field: _value(formula, given) for field, formula in formulas.items()}
            result = {name: of_names[old] for name, old in renames.items()}
            for name in self.names:
                fields = self.fields(name)
                if any(field in new for field in fields):
                    parts = [new.get(field, given[field]) for field in fields]
                    whole = name in self.structs
                    result[name] = ct.struct(PAIR, a=parts[0], b=parts[1]) if whole else parts[0]
            return result

        signed: Callable[..., dict[str, Any]] = _signed(function, self.names, asked)
        return signed

    def _region(self, readable: Sequence[str]) -> Any:
        """The cells of a step that is restricted."""
        rng, kind = self.rng, self.chosen["over"]
        if kind == "box":
            ends = [(rng.randint(0, n // 3), -rng.randint(1, n // 3)) for n in self.extent]
            return tuple(slice(*pair) for pair in ends)
        if kind == "parity":
            return ct.parity(rng.randint(0, 1))
        name = rng.choice(readable)

        def mask(value: Any) -> Any:
            part = value.a if name in self.structs else value
            return part % 2 == 0 if self.is_whole(name) else part > 0.1

        return _signed(mask, [name], {}) if kind == "mask" else None

    def _sides(self, name: str) -> dict[str, Any]:
        """The rules of a field by axis; the lower end of the first one is of the kind chosen."""
        kind, steady = self.chosen["boundary"], self.chosen["steps"] > 1
        others = ["keep", "fixed"] + ["mirror", "extrapolate", "custom", "function"] * (not steady)
        # those that exchange names have the same rules, and an axis is a ring for all
        alike = random.Random(f"{self.extent} {self.leaders[name]}")
        found: dict[str, Any] = {}
        for number, (axis, length) in enumerate(zip(self.grid.axes, self.extent)):
            ring = kind == "periodic" if number == 0 else self.extent[number] % 3 == 0
            rules = [alike.choice(others), alike.choice(others)]
            if number == 0:
                rules[0] = kind
            found[axis] = tuple(self._rule(one, name, axis, length, alike) for one in rules)
            if ring:
                found[axis] = "periodic"
        return found

    def _rule(self, kind: str, name: str, axis: str, length: int, rng: random.Random) -> Any:
        whole = self.is_whole(name)
        value = rng.choice([0, 3, 7] if whole else [0.0, 0.1, -1.5])
        unsigned = "uint8" in [self.dtypes[field] for field in self.fields(name)]
        order, own = rng.randrange(min(3, length)), whole_half if whole else half
        if kind == "function" and not whole:
            return self._moving(axis, rng.random())
        return {
            "keep": ct.keep(), "fixed": ct.fixed(value), "function": ct.fixed(value),
            "mirror": ct.mirror(1 if unsigned else rng.choice([1, -1])),
            "extrapolate": ct.extrapolate(order), "custom": ct.custom(own),
        }.get(kind)  # fmt: skip

    def _moving(self, axis: str, phase: float) -> Any:
        """A wall that depends on where and when."""

        def wall(where: Any, t: Any) -> Any:
            return np.sin(3 * t + phase) * where

        return ct.fixed(_signed(wall, [axis, "t"], {}))


PAIR = [("a", "f8"), ("b", "f8")]


def _met(formula: Formula, extra: Formula, dtype: str) -> Formula:
    """Both together; of floats at most 1 where both are."""
    if dtype in INTEGERS:
        return dtype, ("+", formula, (dtype, extra))
    return "+", ("/", formula, 2), ("/", extra, 4)


def _value(formula: Formula, given: Mapping[str, Any]) -> Any:
    """What a step computes; `given` has its fields, structs by component, and the scalar."""
    if not isinstance(formula, tuple):
        return formula
    head, first, *others = formula
    if head == "scalar":
        return given[head]
    if is_read(formula):
        return given[head][first]
    value = _value(first, given)
    if head == "stored":
        return ct.stored(value)
    if head == "at":
        return value[others[0]]
    if head in DTYPES:
        return value.astype(head)
    return FUNCTIONS[head](value, *(_value(part, given) for part in others))


def _signed(function: Any, positional: Sequence[str], keywords: Mapping[str, Any]) -> Any:
    """The function, with parameters by name, which is how steps say what they use."""
    kinds = inspect.Parameter
    parameters = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in positional]
    parameters += [
        kinds(name, kinds.KEYWORD_ONLY, default=default) for name, default in keywords.items()
    ]

    def named_step(*values: Any, **named: Any) -> Any:
        inner = [*values, *(named.pop(name) for name in positional[len(values) :])]
        return function(*inner, **named)

    step: Any = named_step
    step.__signature__ = inspect.Signature(parameters)
    return step
