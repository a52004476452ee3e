# SPDX-License-Identifier: MIT
"""Steps, divided: each repeat, and what is between, as a program of its own; or before each use of
what the stages before it fold, too.

What other segments fold, and what is made of that alone, are parameters of a segment.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from controllers.program.expression import Scalar
from controllers.program.extension import scalars_of
from controllers.program.program import Program
from controllers.program.repeat import Repeat
from controllers.program.scalars import Folded, Parameter, ScalarRule, ScalarRules, scalars_in
from controllers.program.stage import Stage

Cut: TypeAlias = "tuple[int, int, Repeat | None]"   # the stages from the first to before the end


def segments(
    program: Program, *, at_folds: bool = False
) -> Iterator[tuple[Program, Repeat | None]]:
    """Some stages in a row, and what repeats them: one after another they are the step.

    at_folds: no stage uses what is folded in its segment.
    """
    cuts = _cuts(program, at_folds)
    renaming = _renaming(program, cuts)
    for one in cuts:
        first, end, repeat = one
        renames = program.renames if one == renaming else {}
        yield _segment(program, first, end, renames), repeat


def why_not_divided(program: Program) -> str:
    """Why a program has no segments at folds, with nothing in common but fields; "" if it has."""
    every = _cuts(program, at_folds=True)
    for first, end, _ in every[every.index(_renaming(program, every)) + 1 :]:
        for stage in program.stages[first:end]:
            for name in program.renames:
                if name in stage.fields_read:
                    return f"{name!r}, which is renamed, is read after a fold that comes later"
    pieces = [piece for first, end, _ in every for piece in _between_folds(program, first, end)]
    for field in program.temporaries:
        made = [n for n, (first, end) in enumerate(pieces)
                if any(field.name in (*s.fields_read, *s.updates)
                       for s in program.stages[first:end])]  # fmt: skip
        if len(made) > 1:
            return f"{field.name!r} is stored before a fold is used, and read after that"
    return ""


def has_parts(program: Program, repeat: Repeat) -> bool:
    """Whether a turn of a repeat uses what the same turn folds."""
    return len(_between_folds(program, repeat.first, repeat.end)) > 1


def _cuts(program: Program, at_folds: bool) -> list[Cut]:
    """Where segments begin and end."""
    found: list[Cut] = []
    repeats = {repeat.first: repeat for repeat in program.repeats}
    end = 0
    for first in (*repeats, len(program.stages)):
        between = _between_folds(program, end, first) if at_folds else [(end, first)]
        found += [(low, high, None) for low, high in between if low < high]
        if first in repeats:
            end = repeats[first].end
            found.append((first, end, repeats[first]))
    return found


def _renaming(program: Program, cuts: Sequence[Cut]) -> Cut:
    """The segment that renames: where a field that gets another name is first written, or last."""
    for first, end, repeat in cuts:
        written = {name for stage in program.stages[first:end] for name in stage.updates}
        if not written.isdisjoint(program.renames.values()):
            return first, end, repeat
    return cuts[-1]


def _between_folds(program: Program, first: int, end: int) -> list[tuple[int, int]]:
    """These stages in segments, none of which uses what it folds."""
    cuts, folded = [first], set[str]()
    for number in range(first, end):
        stage = program.stages[number]
        if folded & program.rules.needs(_scalars_of(program, [stage])):
            cuts.append(number)
            folded = set()
        folded |= {*stage.folds}
    return [*zip(cuts, [*cuts[1:], end])]


def _scalars_of(program: Program, stages: Sequence[Stage]) -> set[str]:
    """The scalars that these stages, and cells outside of what they read, are made of."""
    found = {one.name for stage in stages for one in stage.given if isinstance(one, Scalar)}
    for field in {field for stage in stages for field in stage.fields_read}:
        found |= scalars_of(program.field(field).boundary, field, program.n_axes)
    return found


def _segment(program: Program, first: int, end: int, renames: Mapping[str, str]) -> Program:
    """These stages, on the fields that they use."""
    stages = program.stages[first:end]
    used = {name for s in stages for name in (*s.fields_read, *s.updates, s.home)}
    used |= {*renames, *renames.values()}
    return replace(
        program,
        stages=stages,
        fields=tuple(field for field in program.fields if field.name in used),
        temporaries=tuple(field for field in program.temporaries if field.name in used),
        scalars=_scalars(program, stages),
        renames=renames,
        repeats=(),
        results=(),
    )


def _scalars(program: Program, stages: Sequence[Stage]) -> dict[str, ScalarRule]:
    """What a segment knows: of what is made of its own folds it has what it uses alone."""
    rules, mine = program.rules, {name for stage in stages for name in stage.folds}
    used = _all_of(rules, _scalars_of(program, stages))

    def is_given(name: str, rule: ScalarRule) -> bool:
        if isinstance(rule, Folded):
            return name not in mine
        needs = rules.needs([name])
        return bool(needs) and not needs & mine

    return {
        n: Parameter(1.0) if is_given(n, rule) else rule for n, rule in rules.items()
        if isinstance(rule, Folded) or n in used or not rules.needs([n]) & mine
    }  # fmt: skip


def _all_of(rules: ScalarRules, names: set[str]) -> set[str]:
    """These scalars, and those that they are made of."""
    found, todo = set[str](), [*names]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += scalars_in(rules.derived[name]) if name in rules.derived else ()
    return found
