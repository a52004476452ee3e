# SPDX-License-Identifier: MIT
"""Steps, divided: each repeat, and what is between, as a program of its own; or before each use of
what the stages before it fold, too.

What other segments fold, and what is made of that alone, are parameters of a segment.  What a
renamed field was as the step began later segments read by the name that this has by then; what has
none is a *former*, a field that segments alone know.
"""
# docs/decisions/0108-formers-are-fields-of-parts.md
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeAlias

from controllers.program.expression import Scalar
from controllers.program.extension import scalars_of
from controllers.program.field import Field
from controllers.program.names import under_names
from controllers.program.program import Program
from controllers.program.repeat import Repeat
from controllers.program.scalars import Folded, Parameter, ScalarRule, ScalarRules, scalars_in
from controllers.program.stage import Stage

Cut: TypeAlias = "tuple[int, int, Repeat | None]"   # the stages from the first to before the end


def segments(
    program: Program, *, at_folds: bool = False
) -> Iterator[tuple[Program, Repeat | None]]:
    """Some stages in a row, and what repeats them: one after another they are the step.

    at_folds: no stage uses what is folded in its segment; of a program `with_formers`.  Fields that
    are renamed get their new versions in the segment that first writes over one of these; later
    ones read what they were by the names under which it lies then.
    """
    cuts, called = _cuts(program, at_folds), dict[str, str]()
    for number, (first, end, repeat) in enumerate(cuts):
        stages = tuple(under_names(stage, called) for stage in program.stages[first:end])
        renames = {
            new: old
            for new, old in program.renames.items()
            if _renaming(program, cuts, new) == number
        }
        yield _segment(program, stages, renames), repeat
        called |= {old: new for new, old in renames.items() if old in renames}


def with_formers(program: Program) -> Program:
    """The same program, with fields for versions that its segments read but nobody has any more.

    Each is a temporary field, to which that is renamed whose version gets no other name.
    """
    cuts, free = _cuts(program, at_folds=True), _free_names(program)
    added, renames = [], dict(program.renames)
    for new in program.renames:
        end = cuts[_renaming(program, cuts, new)][1]
        is_read = any(new in stage.fields_read for stage in program.stages[end:])
        if is_read and new not in program.renames.values():
            added.append(replace(program.field(new), name=next(free)))
            renames[added[-1].name] = new
    if not added:
        return program
    return replace(program, temporaries=(*program.temporaries, *added), renames=renames)


def formers(program: Program) -> tuple[Field, ...]:
    """Those fields of a program `with_formers`."""
    return tuple(field for field in program.temporaries if field.name in program.renames)


def leaves(program: Program) -> Iterator[Program]:
    """The segments at folds, and those of turns that use what they fold in place of these."""
    for one, repeat in segments(program, at_folds=True):
        if repeat is not None and has_parts(program, repeat):
            yield from leaves(one)
        else:
            yield one


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


def _renaming(program: Program, cuts: Sequence[Cut], new: str) -> int:
    """The number of the segment in which a field gets another version.

    It first writes the field whose version goes on under other names, one after another; of fields
    that exchange versions alone, the last one.
    """
    source = program.renames[new]
    while source in program.renames and source != new:
        source = program.renames[source]
    for number, (first, end, _) in enumerate(cuts):
        if any(source in stage.updates for stage in program.stages[first:end]):
            return number
    return len(cuts) - 1


def _between_folds(program: Program, first: int, end: int) -> list[tuple[int, int]]:
    """These stages in segments, none of which uses what it folds."""
    cuts, folded = [first], set[str]()
    for low, high in _with_stored(program, first, end):
        stages = program.stages[low:high]
        if folded & program.rules.needs(_scalars_of(program, stages)):
            cuts.append(low)
            folded = set()
        folded |= {name for stage in stages for name in stage.folds}
    return [*zip(cuts, [*cuts[1:], end])]


def _with_stored(program: Program, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Each of these stages, with those before it that compute what is stored for it."""
    low = first
    for number in range(first, end):
        if not program.stages[number].rim:
            yield low, number + 1
            low = number + 1


def _scalars_of(program: Program, stages: Sequence[Stage]) -> set[str]:
    """The scalars that these stages, and cells outside of what they read, are made of."""
    found = {one.name for stage in stages for one in stage.given if isinstance(one, Scalar)}
    for field in {field for stage in stages for field in stage.fields_read}:
        found |= scalars_of(program.field(field).boundary, field, program.n_axes)
    return found


def _free_names(program: Program) -> Iterator[str]:
    """Names for fields beside those of a program."""
    taken = {*program.dtypes, *program.scalars, *(f"s_{one}" for one in program.scalars)}
    return (name for number in count(1) if (name := f"former_{number}") not in taken)


def _segment(program: Program, stages: tuple[Stage, ...], renames: Mapping[str, str]) -> Program:
    """These stages, on the fields that they use."""
    kept = formers(program)
    used = {name for s in stages for name in (*s.fields_read, *s.updates, s.home)}
    used |= {*renames, *renames.values()}
    return replace(
        program,
        stages=stages,
        fields=tuple(field for field in (*program.fields, *kept) if field.name in used),
        temporaries=tuple(
            field for field in program.temporaries if field.name in used and field not in kept
        ),
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
