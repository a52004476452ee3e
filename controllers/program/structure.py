# SPDX-License-Identifier: MIT
"""Short texts that differ where programs compute differently, for keys and comparisons."""
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from controllers.program.expression import Outcome, evaluate_all
from controllers.program.extension import check_boundary
from controllers.program.program import Program, Stage
from controllers.program.scalars import Folded, Parameter, ScalarRule


def structure(program: Program, stage: Stage) -> str:
    """A text that is the same for stages that compute the same, whatever they are called.

    >>> from controllers.language.weights import Stencil
    >>> one, same = (Stencil.of(name, [(0, 1)], [1, 2], 3).program("float32") for name in "ab")
    >>> structure(one, one.stages[0]) == structure(same, same.stages[0])
    True
    """
    values = evaluate_all(
        stage.expressions, lambda read: f"{read.field}{read.offset}", repr, _digest,
        given=repr, outcome=_outcome,
    )  # fmt: skip
    used = (*stage.fields_read, *stage.updates) or (stage.home,)
    fields = {field: program.dtypes[field] for field in used}
    over = [repr(stage.overwrites)] if stage.overwrites else []
    unlike = repr(fields) if len({*fields.values()}) > 1 else next(iter(fields.values()))
    folds = [f"{name} {fold.kind} {fold.over is None}" for name, fold in stage.folds.items()]
    offsets = repr(stage.offsets)
    return _digest(unlike, program.math, offsets, *over, *stage.updates, *folds, *values)


def _outcome(node: Outcome, operands: Sequence[str]) -> str:
    one = node.element
    return _digest(one.text, repr(one.fields), repr(one.writes), repr(one.arguments),
                   node.name, *operands)  # fmt: skip


def described(program: Program) -> str:
    """A short text that differs where programs compute differently."""
    outside = (
        rule
        for field in program.fields
        for rule in check_boundary(field.boundary, field.name, program.n_axes, field.dtype)
    )
    stages = (structure(program, stage) for stage in (*program.stages, *outside))
    rules = [f"{name} {_rule(rule)}" for name, rule in program.scalars.items()]
    digest = _digest(
        repr(program.fields), repr(program.renames), repr(program.grid), repr(program.results),
        repr([replace(one, until=None) for one in program.repeats]), *stages, *rules,
    )  # fmt: skip
    return f"{program.name} in {program.dtype_text}, {digest[:16]}"


def parts(program: Program) -> dict[str, str]:
    """What makes a program compute what it does, by words that people know, each a short text.

    Programs that have them all alike compute the same; with which values of parameters is not said.

    >>> from controllers.language.weights import Stencil
    >>> found = parts(Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32"))
    >>> found["the program"], found["the fields"], found["the results"]
    ('mean', 'u', '')
    """
    found = {
        "the program": program.name, "the fields": ", ".join(program.dtypes),
        "the grid": repr(program.grid), "the arithmetic": program.math,
        "the results": ", ".join(program.results),
        "the renames": ", ".join(f"{new}={old}" for new, old in program.renames.items()),
        "the repeats": repr([replace(one, until=None) for one in program.repeats]),
    }  # fmt: skip
    for field in program.fields:
        outside = check_boundary(field.boundary, field.name, program.n_axes, field.dtype)
        digests = [structure(program, stage) for stage in outside]
        found[f"the dtype of {field.name}"] = field.dtype
        found[f"what is outside of {field.name}"] = _cut(repr(field.boundary), *digests)
    for number, stage in enumerate(program.stages, 1):
        found[f"stage {number} ({stage.name})"] = _digest(structure(program, stage))[:16]
    for name, rule in program.scalars.items():
        is_given = isinstance(rule, Parameter)
        found[f"the rule of {name}"] = "a parameter" if is_given else _cut(_rule(rule))
    return found


def _cut(text: str, *others: str) -> str:
    return f"{text[:80]} [{_digest(text, *others)[:8]}]"


def _rule(rule: ScalarRule) -> str:
    if isinstance(rule, (Parameter, Folded)):
        return repr(rule)
    (value,) = evaluate_all((rule,), repr, repr, _digest, given=repr)
    return value


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
