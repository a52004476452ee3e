# SPDX-License-Identifier: MIT
"""What stages compute of scalars alone, taken out of them: the host computes it once per step.

Such a part becomes a scalar with a name of its own and an expression for its rule; so all functions
are allowed there, and kernels take one argument for all of it.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from controllers.program.boundary import Boundary
from controllers.program.expression import (
    Application,
    Constant,
    Expression,
    Outcome,
    Scalar,
    Symbol,
    evaluate_all,
    where,
)
from controllers.program.extension import scalars_of
from controllers.program.scalars import ScalarRule, ScalarRules
from controllers.program.stage import Stage


def hoisted(
    stages: tuple[Stage, ...], scalars: Mapping[str, ScalarRule]
) -> tuple[tuple[Stage, ...], ScalarRules]:
    """Stages whose expressions have scalars as leaves only, next to values of cells; their rules.

    >>> from controllers.program.expression import Read
    >>> from controllers.program.scalars import Parameter
    >>> rate = Scalar("rate")
    >>> grow = Stage("grow", {"u": Read("u", (0,)) * (1 + 2 * rate)}, ((0, 0),))
    >>> (stage,), rules = hoisted((grow,), {"rate": Parameter(0.5)})
    >>> stage.expression.right, sorted(rules)
    (Scalar(name='scalar_0'), ['rate', 'scalar_0'])
    """
    used = {one.name for stage in stages for one in stage.given if isinstance(one, Scalar)}
    rules = ScalarRules(scalars, used)
    if not used:
        return stages, rules
    host = _Host(rules)
    stages = tuple(stage.with_expressions(host.without(stage.expressions)) for stage in stages)
    return stages, ScalarRules(host.rules, used)


def hoisted_with(
    stages: tuple[Stage, ...],
    boundaries: Mapping[str, Boundary],
    scalars: Mapping[str, ScalarRule],
) -> tuple[tuple[Stage, ...], dict[str, Boundary], ScalarRules]:
    """The same with what boundaries compute of scalars alone; their other expressions stay."""
    n_axes = len(stages[0].offsets)
    values = [*dict.fromkeys(value for one in boundaries.values() for value in one.values)]
    if values:
        updates = {f"value_{number}": value for number, value in enumerate(values)}
        found, rules = hoisted((*stages, Stage("outside", updates, ((0, 0),) * n_axes)), scalars)
        new = dict(zip(values, found[-1].updates.values()))
        boundaries = {field: one.with_values(new) for field, one in boundaries.items()}
        stages = found[:-1]
    else:
        stages, rules = hoisted(stages, scalars)
    used = [scalars_of(one, field, n_axes) for field, one in boundaries.items()]
    return stages, {**boundaries}, ScalarRules(rules, set().union(*used))


class _Host:
    """Names for what is computed of scalars alone, the same for the same expression."""

    def __init__(self, rules: ScalarRules) -> None:
        self.rules: dict[str, ScalarRule] = dict(rules)
        self._names = {rule: name for name, rule in rules.derived.items()}
        self._alone: dict[Expression, bool] = {}    # whether it has scalars; of these and constants

    def without(self, expressions: Sequence[Expression]) -> list[Expression]:
        """The same expressions, with scalars for what is computed of scalars alone."""
        values = evaluate_all(
            expressions, self._same, Constant, self._operation,
            given=self._same, outcome=self._outcome,
        )  # fmt: skip
        return [self._taken_out(value) for value in values]

    def _same(self, leaf: Expression) -> Expression:
        return leaf

    def _outcome(self, node: Outcome, operands: Sequence[Expression]) -> Outcome:
        arguments = operands[len(operands) - len(node.arguments) :]
        given = [self._taken_out(argument) for argument in arguments]
        right = node.specification
        if right is not None:
            (right,) = self.without([right])
        return Outcome(node.element, node.name, given, right)

    def _operation(self, symbol: Symbol, *operands: Expression) -> Expression:
        if all(self._is_alone(operand) for operand in operands):
            node = Application(symbol, *operands)
            self._alone[node] = any(self._has_scalars(operand) for operand in operands)
            return node
        return Application(symbol, *map(self._taken_out, operands))

    def _is_alone(self, node: Expression) -> bool:
        return isinstance(node, (Scalar, Constant)) or node in self._alone

    def _has_scalars(self, node: Expression) -> bool:
        return isinstance(node, Scalar) or self._alone.get(node, False)

    def _taken_out(self, node: Expression) -> Expression:
        if not self._alone.get(node, False):
            return node
        if node.is_condition:
            return Application("!=", self._scalar(where(node, 1, 0)), Constant(0))
        return self._scalar(node)

    def _scalar(self, rule: Expression) -> Scalar:
        if rule not in self._names:
            number = next(n for n in count() if f"scalar_{n}" not in self.rules)
            self._names[rule] = f"scalar_{number}"
            self.rules[self._names[rule]] = rule
        return Scalar(self._names[rule])
