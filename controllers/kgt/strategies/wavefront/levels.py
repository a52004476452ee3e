# SPDX-License-Identifier: MIT
"""The functions of a "wavefront" kernel: they compute slices of a level from the level below.

    kgt_first_4     level 1, 4 slices side by side: from the field into a ring
    kgt_second_4    level 2, where a field follows: the same as the next, which reads that elsewhere
    kgt_next_4      a level in between: from one ring into another
    kgt_last_4      the last level: from a ring into the new field
    kgt_last_1 ...  a single slice, where 4 are not needed or not all are computed
    kgt_keep        into a ring, the cells around those that are computed

Cells are counted from the tile's first one.  All is inlined: the pitches of rings are constants,
and vectors that several values need are loaded once.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from controllers.kgt.strategies.wavefront.parameters import WavefrontParameters
from controllers.kgt.strategies.wavefront.rings import Rings
from controllers.kgt.text.analysis import SEVERAL_FIELDS, reads_many
from controllers.kgt.text.c_lines import called
from controllers.kgt.text.c_text import plus
from controllers.kgt.text.emitter import OPENCL_TYPES
from controllers.kgt.text.given import scalars_of
from controllers.program.dtypes import given_dtype
from controllers.program.following import leading
from controllers.program.mirrors import Mirrors
from controllers.program.program import Program, Stage
from controllers.program.steps import own_reach

FIRST, SECOND, NEXT, LAST, STREAM = "first", "second", "next", "last", "stream"


def source_of(kind: str) -> str:
    """Where a level of a kind reads what the one below it has made."""
    return "field" if kind == FIRST else "ring"


def into_of(kind: str) -> str:
    """Where it writes."""
    return "field" if kind in (LAST, STREAM) else "ring"


@dataclass(frozen=True)
class Levels:
    """The functions of one stage."""

    program: Program
    stage: Stage
    parameters: WavefrontParameters
    digests: bool = False       # the digest of the field that is read is taken, too

    @cached_property
    def rings(self) -> Rings:
        """Where the levels in between are kept."""
        return self.parameters.rings(own_reach(self.stage), follows=bool(self.follower))

    @property
    def streaming(self) -> bool:
        """Whether stores bypass the caches."""
        return self.parameters.streaming

    @cached_property
    def lead(self) -> Stage:
        """The stage without what follows."""
        return leading(self.stage)

    @property
    def own(self) -> str:
        """The field that each level computes."""
        return self.lead.writes

    @property
    def follower(self) -> str:
        """The field that has what that one had before the last step; "" where there is none."""
        return next(iter(self.stage.follows), "")

    @property
    def kinds(self) -> list[str]:
        """The kinds of levels that there are."""
        n_between = self.rings.steps - 2
        between = [SECOND, NEXT] if self.follower else [NEXT]
        return [FIRST, *between[:n_between], LAST]

    @property
    def cell(self) -> str:
        """The type of a cell."""
        return OPENCL_TYPES[self.program.dtype_of(self.stage)]

    @property
    def last(self) -> int:
        """The last axis."""
        return self.program.n_axes - 1

    @property
    def slice_axes(self) -> range:
        """The axes of a slice: all but the first, or the only one."""
        return range(min(1, self.last), self.last + 1)

    @property
    def others(self) -> list[str]:
        """The fields that are read and not written."""
        written = self.own, self.follower
        return [field for field in self.stage.fields_read if field not in written]

    @property
    def asks(self) -> bool:
        """Whether the first level asks for what the next front reads of other fields."""
        return reads_many(self.stage, SEVERAL_FIELDS)

    @cached_property
    def mirrors(self) -> Mirrors:
        """Those at the ends of the field that is written."""
        return Mirrors.of(self.program.field(self.own).boundary, self.program.n_axes)

    @property
    def mirrors_slices(self) -> bool:
        """Whether there are mirrors behind which whole slices lie."""
        return self.last > 0 and any(self.mirrors.signs[0])

    @property
    def scalars(self) -> list[str]:
        """What the stage is given next to fields, as the functions get it."""
        return [*scalars_of(self.stage)]

    @property
    def given(self) -> list[str]:
        """The same as parameters of functions."""
        real = OPENCL_TYPES[given_dtype(self.stage, self.program.dtypes)]
        return [f"const {real} {name}" for name in self.scalars]

    @property
    def pitches(self) -> list[str]:
        """The pitches of all fields, as the functions get them."""
        axes = range(self.last)
        fields = [self.own, *([self.follower] if self.follower else []), *self.others]
        return [f"{field}_pitch_{a}" for field in fields for a in axes]

    def call(self, kind: str, count: int) -> list[str]:
        """C lines: a call of the function that computes `count` slices."""
        below = self._field("") if kind == FIRST else self.ring(2)
        arguments = [below, self._field("_new") if kind in (LAST, STREAM) else self.ring(1)]
        arguments += self._behind_arguments(kind) if self.follower else []
        arguments += [f"{other} + start_{other}" for other in self.others]
        arguments += ["item_0"] if self.last else []
        for axis in self.slice_axes:
            arguments += [f"item_start_{axis}", f"item_last_{axis}"]
        arguments += self.scalars
        return called(f"kgt_{kind}_{count}", [*arguments, *self.pitches])

    def behind(self, kind: str) -> str:
        """The field in which a level finds what it reads of that which follows; "" for a ring."""
        if kind == FIRST:
            return self.follower
        return self.own if kind == SECOND or self.rings.steps == 2 else ""

    def _behind_arguments(self, kind: str) -> list[str]:
        """C text of where that is, and of where the last level writes."""
        field = self.behind(kind)
        found = [f"{field} + start_{field}" if field else self.ring(3)]
        written = f"{self.follower}_new + start_{self.follower}"
        return [*found, *([written] if kind in (LAST, STREAM) else [])]

    def keep(self, number: str, shown: str = "", inside: str = "item_inside") -> list[str]:
        """C lines: a call of `kgt_keep` for the slice of this number.

        shown: the slice that it shows behind a mirror, or itself.  inside: whether it is computed.
        """
        arguments = [self._field(""), self.ring(1)]
        arguments += [*([number] if self.last else []), *([shown] if shown else []), inside]
        for axis in self.slice_axes:
            arguments += [f"item_{end}_{axis}" for end in ("kept", "end", "start", "last")]
        return called("kgt_keep", [*arguments, *self.pitches[: self.last]])

    def _field(self, new: str) -> str:
        """C text: where the tile starts in the field that is read or written."""
        return f"{self.own}{new} + start_{self.own}"

    def ring(self, below: int) -> str:
        """C text: the ring of the level, or of one below it."""
        return f"item_ring + (item_level - {below}) * {self.rings.ring}"

    @property
    def shift(self) -> int:
        """A multiple of the slots that makes the number of any slice positive."""
        slices = self.rings.steps * sum(self.rings.reach[0]) + 2 * self.rings.slices
        return -(-slices // self.rings.slots) * self.rings.slots

    @property
    def sources(self) -> list[str]:
        """The names of the slices that one value is computed from."""
        low, high = self.rings.reach[0] if self.last else (0, 0)
        return [f"at_{number}" for number in range(low + high + 1)]

    def value_pitches(self, source: str) -> list[str]:
        """The pitches that a vector of cells needs, from slices of `source`."""
        own = [f"{self.own}_pitch_{axis}" for axis in range(1, self.last)]
        others = [f"{field}_pitch_{axis}" for field in self.others for axis in range(self.last)]
        return [*(own if source == "field" else []), *others]

    def slice(self, name: str, where: str, number: int, field: str = "") -> str:
        """C text: where slice `item_0 + number` of the field or ring `name` is.

        field: whose pitches it has, by default those of the own one.
        """
        if not self.last:
            return name
        at = f"item_0{plus(number)}"
        if where == "ring":
            return f"KGT_SLOT({name}, {at})"
        return f"{name} + {f'({at})' if number else at} * {field or self.own}_pitch_0"

    def in_row(self, at: str, new: str = "") -> str:
        """C text: a slice and the place of the row in it."""
        return f"{at} + item_row{new}" if self.last > 1 else at

    def space(self, where: str) -> str:
        """The address space of a field, or of a ring."""
        return "__global" if where == "field" else "__local"
