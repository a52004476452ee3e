# SPDX-License-Identifier: MIT
"""What an item of the strategy "marching" hands on from step to step, beside the cells of fields.

A cell may compute at a neighbour what that neighbour computes, too, as the flux through the face
between both.  Along the marching axis the item was there a step before: it keeps the value then,
the same operations on the same numbers, and computes each but once.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from controllers.kgt.strategies.marching.parameters import MarchingParameters
from controllers.kgt.text.analysis import in_vectors
from controllers.program.expression import Expression, Read, Scalar
from controllers.program.neighbour import shifted
from controllers.program.node import ordered
from controllers.program.program import Program, Stage
from controllers.program.stored_values import cost_of, replaced

KEPT, NEXT = "item_kept_", "item_next_"
LEAST = 16      # operations that a value takes which is handed on: it has a register


@dataclass(frozen=True)
class Handing:
    """A stage whose values are handed on.

    first: makes them for the first step.  stage: computes a step, reads those of the step before
    as if they were fields, and makes those of the next one.
    """

    dtypes: dict[str, str]
    first: Stage
    stage: Stage

    @classmethod
    def of(cls, program: Program, stage: Stage, config: MarchingParameters) -> Handing | None:
        """What is handed on in the steps of an item; None: nothing."""
        several = config.steps > 1 and config.rows == 1
        if not config.hands or not several or not _is_plain(program, stage):
            return None
        back = tuple(-(axis == config.axis) for axis in range(program.n_axes))
        before = [*_shared(stage, back)]
        if not before:
            return None
        names = tuple(f"{KEPT}{number}" for number in range(1, len(before) + 1))
        kept = {node: Read(name, (0,) * len(back)) for node, name in zip(before, names)}
        ahead = tuple(-step for step in back)
        following = [shifted(node, ahead) for node in before]
        values = replaced([*stage.updates.values(), *following], kept)
        ends = tuple((min(low, 0), max(high, 0)) for low, high in stage.offsets)
        return cls(
            dict.fromkeys(names, program.dtype_of(stage)),
            Stage(stage.name, dict(zip(names, before)), ends),
            Stage(stage.name, dict(zip([*stage.updates, *names], values)), ends),
        )  # fmt: skip

    def reads(self, stage: Stage) -> tuple[Read, ...]:
        """Those of fields."""
        return tuple(read for read in stage.reads if read.field not in self.dtypes)

    def variables(self, stage: Stage) -> dict[str, str]:
        """What the values of a step that are handed on are called in it."""
        return {name: name.replace(KEPT, NEXT) for name in self.dtypes if name in stage.updates}

    def hand_on(self, lanes: int) -> list[str]:
        """C lines: at the end of a step."""
        cells = [""] if lanes == 1 else [f"[{lane}]" for lane in range(lanes)]
        return [
            f"{name}{cell} = {name.replace(KEPT, NEXT)}{cell};"
            for name in self.dtypes for cell in cells
        ]  # fmt: skip


def _is_plain(program: Program, stage: Stage) -> bool:
    """Whether all that it computes is of one dtype of real numbers, cell by cell."""
    dtypes = {program.dtypes[field] for field in (*stage.updates, *stage.fields_read)}
    return (
        not stage.folds and not stage.elements and not in_vectors(stage, program.dtypes)
        and dtypes in ({"float32"}, {"float64"})
        and all(isinstance(node, Scalar) for node in stage.given)
    )  # fmt: skip


def _shared(stage: Stage, back: tuple[int, ...]) -> Iterator[Expression]:
    """The largest values of the cell before that the cell itself has, too, from there."""
    values = [*stage.updates.values()]
    ahead = tuple(-step for step in back)
    known, seen, todo = {*ordered(*values)}, {*values}, values[::-1]
    while todo:
        node = todo.pop()
        is_large = not node.is_condition and cost_of([node]) >= LEAST
        if is_large and shifted(node, ahead) in known:
            yield node
            continue
        for operand in reversed(node.operands):
            if operand not in seen:
                seen.add(operand)
                todo.append(operand)
