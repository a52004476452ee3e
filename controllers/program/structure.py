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


def _rule(rule: ScalarRule) -> str:
    if isinstance(rule, (Parameter, Folded)):
        return repr(rule)
    (value,) = evaluate_all((rule,), repr, repr, _digest, given=repr)
    return value


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
