# SPDX-License-Identifier: MIT
"""Requests: a program, its field's extents and cells, and how it is to be divided and executed."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, TypeVar

from controllers.language.fields_alone import FieldsAlone
from controllers.language.half_points import Locations
from controllers.language.kinds import DTypes as DTypes
from controllers.program.program import Program
from controllers.settings.division import AUTO, Division, DivisionKeywords
from controllers.settings.domain import Boundaries
from controllers.settings.execution import Execution, ExecutionKeywords
from controllers.settings.initial import Given, Initial, is_named
from controllers.settings.overrides import overrides
from controllers.settings.subject import Described as Described
from controllers.settings.subject import Sizes as Sizes
from controllers.settings.subject import Subject, names_of
from hitmap.argument import instance, wrong

_Group = TypeVar("_Group", Division, Execution)


class Keywords(DivisionKeywords, ExecutionKeywords, total=False):
    """The fields of both groups, as keywords of calls."""


# What `Computation` takes by these names is no field.
OWN_KEYWORDS = ("program", "sizes", "dtype", "boundary", "location", "dt", "init", "comm",
                "division", "execution")  # fmt: skip
GROUP_KEYWORDS = (*DivisionKeywords.__annotations__, *ExecutionKeywords.__annotations__)


@dataclass(frozen=True)
class Request:
    """What is to be computed, and how: as the user says it on this rank.

    initial: what fields begin with; the others are 0.
    scalars: values of parameters other than their defaults.
    alike: the temporary fields of methods, and which field each begins as.
    """

    program: Program
    sizes: tuple[int, ...]
    division: Division
    execution: Execution
    initial: tuple[Initial, ...] = field(default=(), repr=False)
    scalars: Mapping[str, float] = field(default_factory=dict)
    alike: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        program: Described,
        sizes: Sizes,
        *,
        dtype: DTypes = None,
        boundary: Boundaries = None,
        location: Locations = None,
        dt: float | None = None,
        init: Mapping[str, Given] | None = None,
        division: Division | None = None,
        execution: Execution | None = None,
        keywords: Mapping[str, Any] | None = None,
        complete: bool = False,
    ) -> Request:
        """TypeError or ValueError where an argument is wrong by itself.

        An array with as many axes as the program is the initial field.  `keywords` are fields of
        the two groups, and change what these say; or values of fields and parameters.
        complete: none may be missing.
        """
        if isinstance(program, (list, tuple)) and not program:
            named = [n for n in keywords or {} if n not in GROUP_KEYWORDS]
            program = FieldsAlone((*(init or {}), *named))
        own = {"dtype": dtype, "boundary": boundary, "location": location, "dt": dt}
        taken = {name for name, value in own.items() if value is not None}
        names = [name for group in names_of(program) for name in group]
        options, given = _given(names, keywords or {}, init, taken)
        cut, run = grouped(division, execution, options, names)
        said = overrides()
        cut, run = said.divided(cut), said.executed(run)
        sizes = said.resized(sizes)
        subject = Subject.of(program, sizes, dtype, boundary, location, dt, given, run.math)
        check_balance(cut, run)
        check_choice(cut, run)
        if complete and subject.missing:
            raise ValueError(
                f"no initial values were given for {', '.join(subject.missing)}; give them as "
                f"keywords, such as {subject.missing[0]}=0"
            )
        return cls(
            subject.program, subject.sizes, cut, run, subject.initial, subject.scalars,
            subject.alike,
        )  # fmt: skip

    @property
    def facts(self) -> dict[str, object]:
        """What all ranks must say alike, but for the program."""
        return {
            "sizes": self.sizes,
            "boundary": {f.name: str(f.boundary) for f in self.program.fields},
            "initial": [*self.initial] or None,
            "scalars": dict(self.scalars),
            **self.division.facts, **self.execution.facts,
        }  # fmt: skip


def _given(
    names: Sequence[str],
    keywords: Mapping[str, Any],
    init: Mapping[str, Given] | None,
    taken: set[str],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keywords of the groups, and what is given for fields and parameters by `names`.

    taken: what else was given by name.
    """
    if init is not None and not isinstance(init, Mapping):
        raise wrong("init", "a mapping of fields to values", init, "write init={'u': ...}")
    given = dict(init or {})
    for name in names:
        if name in taken.union(keywords).intersection(OWN_KEYWORDS + GROUP_KEYWORDS):
            if name not in given and name != "dt":
                raise ValueError(
                    f"{name!r} is a keyword of Computation, and what the program calls one of its "
                    f"fields or parameters; give its values by init={{{name!r}: ...}}"
                )
    options = dict(keywords)
    for name in keywords:
        if name not in GROUP_KEYWORDS and is_named(name, names):
            if name in given:
                raise ValueError(f"{name}: init gives it, too; leave one of them out")
            given[name] = options.pop(name)
    return options, given


def grouped(
    division: Division | None,
    execution: Execution | None,
    keywords: Mapping[str, Any],
    others: Sequence[str] = (),
) -> tuple[Division, Execution]:
    """The two groups, changed as the keywords say, each of which is a field of one of them.

    others: the keywords that there are beside them.
    """
    for name in keywords:
        if name not in GROUP_KEYWORDS:
            known = [*others, *GROUP_KEYWORDS]
            close = get_close_matches(name, known, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise TypeError(f"there is no keyword {name!r}{meant} (there are {', '.join(known)})")
    return (
        merged(Division, division, "division", keywords),
        merged(Execution, execution, "execution", keywords),
    )


def divided_anew(
    before: Division, given: Division | None, keywords: Mapping[str, Any]
) -> Division:
    """What is asked for in place of an earlier division, whose places per controller it keeps."""
    usual = Division(places_per_controller=before.places_per_controller)
    unknown = [name for name in keywords if name not in DivisionKeywords.__annotations__]
    if unknown:
        known = ", ".join(DivisionKeywords.__annotations__)
        raise TypeError(f"there is no keyword {unknown[0]!r}; a division has {known}")
    return merged(Division, usual if given is None else given, "division", keywords)


def merged(
    kind: type[_Group], given: _Group | None, what: str, keywords: Mapping[str, Any]
) -> _Group:
    """A group, `given` or the default one, changed by those of the keywords that are its fields."""
    group = kind() if given is None else instance(given, kind, what, f"write {kind.__name__}(...)")
    names = {one.name for one in fields(kind)}
    return replace(group, **{name: keywords[name] for name in keywords if name in names})


def check_choice(division: Division, execution: Execution) -> None:
    """ValueError where a run chooses its devices, and how many there are is said."""
    fixed = division.weights not in (None, AUTO)
    if execution.chooses and (division.is_exact or fixed):
        raise ValueError(
            f"devices='auto' chooses how many devices compute, got "
            f"{'weights' if fixed else division.kind}, which says how many places there are; leave "
            f"one of them out, or use weights='auto'"
        )


def check_balance(division: Division, execution: Execution) -> None:
    """ValueError where cuts cannot move, or nobody could tell by how much."""
    if execution.balance in (None, "off"):
        return
    what = f"balance={execution.balance!r} moves the cuts between devices by the times of launches"
    if division.is_exact:
        raise ValueError(
            f"{what}, got {division.kind}, which says where they are; leave one of them out"
        )
    if execution.tune:
        raise ValueError(
            f"{what}, which tune= changes in the same steps; tune in a run of its own: what is "
            f"found is kept"
        )
    if execution.checked != "off":
        raise ValueError(f"{what}, and under check= they mean nothing; leave one of them out")
