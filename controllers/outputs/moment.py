# SPDX-License-Identifier: MIT
"""Moments of a run, and what all files of them have in common."""
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import controllers
from controllers.outputs.variable import Part, Variable
from hitmap.argument import short
from hitmap.shape import Shape

FORMAT, _SAME = "controllers_format", "controllers_facts"      # attributes


class Moment(NamedTuple):
    """A step, and its time."""

    step: int
    time: float


@dataclass(frozen=True)
class Facts:
    """Of what a run is: `same` is what moments of one series share, the rest is for readers."""

    program: str
    same: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)

    def attributes(self, layout: int) -> dict[str, Any]:
        """In files, whose layout has this number."""
        return {
            "program": self.program,
            "parameters": ", ".join(f"{name} = {n!r}" for name, n in self.parameters.items()),
            "controllers_version": controllers.__version__,
            FORMAT: layout,
            _SAME: json.dumps({**self.same}),
        }

    def check(self, attributes: Mapping[str, Any], path: object) -> None:
        """ValueError where what is there is of another program, grid or selection."""
        then, now = json.loads(attributes[_SAME]), self.same
        for name in (*now, *(one for one in then if one not in now)):
            if then.get(name) != now.get(name):
                raise ValueError(
                    f"{path}: {name} was {short(then.get(name))} and is {short(now.get(name))}, so "
                    f"that the run cannot go on in it; name another output, or remove it"
                )


class Store(Protocol):
    """Files of moments.  `begin`, `show` and `moments` are for rank 0, `write` is for all."""

    @property
    def takes_slabs(self) -> bool:
        """Whether the cells of a place may come in several parts."""

    def moments(self) -> list[Moment]:
        """Those that are listed, in order."""

    def begin(self, step: int, facts: Facts) -> list[Moment]:
        """Make the files ready; which moments up to this step are there and stay, in order.

        OSError where they cannot be made, ValueError where they are of something else.
        """

    def write(
        self, number: int, moment: Moment, boxes: Sequence[Shape], parts: Iterable[Part]
    ) -> None:
        """Cells of the moment of this number, from 0; they are on the disk when it returns.

        boxes: those that places of all ranks have of the first variable.
        """

    def show(self, moments: Sequence[Moment], facts: Facts) -> None:
        """All ranks have written these moments, or there are no others: readers may see them."""


def same_of(variables: Sequence[Variable]) -> dict[str, str]:
    """What moments of one series share, of the variables."""
    return {
        one.field: f"{one.dtype} {dict(zip([a.name for a in one.axes], one.shape))} "
                   f"from {[r.start for r in one.section.ranges]} "
                   f"by {[r.step for r in one.section.ranges]}"
        for one in variables
    }  # fmt: skip
