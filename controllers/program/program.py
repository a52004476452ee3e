# SPDX-License-Identifier: MIT
"""Programs: the fields, and the stages of one step, with no word on where they run.

Reach, offsets and cost are derived from the expressions.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import cached_property, reduce
from typing import get_args

import numpy as np

from controllers.program.boundary import Boundary, check_rings
from controllers.program.coordinates import Coordinates
from controllers.program.expression import Scalar, flops
from controllers.program.extension import check_boundary, scalars_of
from controllers.program.field import Field as Field
from controllers.program.fold import Fold
from controllers.program.fold_use import check_folds, checked_results, with_folds
from controllers.program.functions import DTYPES as DTYPES
from controllers.program.functions import FLOATS as FLOATS
from controllers.program.functions import INTEGERS as INTEGERS
from controllers.program.given_use import check_given
from controllers.program.hoisting import hoisted_with
from controllers.program.identifier import check_identifier
from controllers.program.location import by_location
from controllers.program.offsets import Offsets
from controllers.program.renames import check_renames
from controllers.program.repeat import Repeat, check_repeats
from controllers.program.scalars import TIME, ScalarRule, ScalarRules
from controllers.program.stage import Stage as Stage
from controllers.program.stage_check import Math as Math
from controllers.program.stage_check import check_outside, check_stage
from hitmap.shape import Shape


@dataclass(frozen=True)
class Program:
    """The stages of one step and the fields they use; all of one number of axes.

    The stages run in order, each sees what the ones before it wrote; cells that a stage does not
    compute keep their value.  `renames` ends the step: {"old": "u"} gives the field old the version
    that u had when the step began, whole, boundary cells included, while u goes on with what the
    stages wrote; {"a": "b", "b": "a"} swaps.  Nothing is copied, so a version gets one name at
    most; the one that old had is dropped.
    scalars: what each number is that is the same in all cells and changes while a program is used:
    a `Parameter`, or an expression of other scalars and constants.  What stages compute of scalars
    alone is one, too, and what they fold, which the stages after it may use.  `dt` may be made of
    folds; then it is computed in each step.  grid: where the cells lie, for coordinates.
    temporaries: fields that hold values within a step alone, which nobody sees; each stage that
    reads one comes after one that writes it (`controllers.program.storing`).
    choices: what was decided of fused stages and of stored values, for people.
    results: the scalars, made of folds, that the host sees after a step; by default all folds.
    repeats: stages that are done again and again within a step.
    math: "strict", which is evaluated as written, or "fast", for floats: generated kernels may
    divide constants beforehand and contract a product and a sum.  The reference is always strict.
    """

    name: str
    fields: tuple[Field, ...]
    stages: tuple[Stage, ...]
    math: Math = "strict"
    renames: Mapping[str, str] = dataclass_field(default_factory=dict, hash=False)
    scalars: Mapping[str, ScalarRule] = dataclass_field(default_factory=dict, hash=False)
    grid: Coordinates | None = None
    temporaries: tuple[Field, ...] = ()
    choices: tuple[str, ...] = dataclass_field(default=(), compare=False)
    results: tuple[str, ...] = None  # type: ignore[assignment]     # never, once it is made
    repeats: tuple[Repeat, ...] = ()

    def __post_init__(self) -> None:
        check_identifier(self.name, "program")
        object.__setattr__(self, "renames", dict(self.renames))     # the caller's may change
        names = [field.name for field in (*self.fields, *self.temporaries)]
        if not self.fields or not self.stages:
            raise ValueError(f"program {self.name!r} needs at least one field and one stage")
        if len(set(names)) < len(names):
            raise ValueError(
                f"program {self.name!r} has two fields of one name: {', '.join(names)}"
            )
        if len({len(stage.offsets) for stage in self.stages}) > 1:
            raise ValueError(f"program {self.name!r} mixes stages of unlike numbers of axes")
        self._check_math()
        self._take_scalars()
        for stage in self.stages:
            self._check_fields(
                f"stage {stage.name!r} uses", (*stage.updates, *stage.fields_read, stage.home)
            )
            self._check_stage(stage)
        check_folds(self.stages, self.rules, self._scalars_outside)
        object.__setattr__(self, "results", checked_results(self.results, self.rules))
        check_repeats(self.repeats, len(self.stages), [*self.renames])
        self._check_boundaries()
        self._check_renames()

    def _check_stage(self, stage: Stage) -> None:
        used = {self.dtypes[name] for name in (*stage.fields_read, *stage.updates)}
        check_given(stage, used <= {*FLOATS}, self.grid)
        check_stage(stage, self.dtypes, self.math)

    def _check_boundaries(self) -> None:
        for field in self.fields:
            stages = check_boundary(field.boundary, field.name, self.n_axes, field.dtype)
            for stage in stages:
                self._check_stage(stage)
            check_outside(stages, field.name, field.dtype)
        check_rings(self.boundaries, self.n_axes, self.name)

    def _take_scalars(self) -> None:
        rules = with_folds(self.scalars, self.stages)
        stages, boundaries, rules = hoisted_with(self.stages, self.boundaries, rules)
        fields = (replace(field, boundary=boundaries[field.name]) for field in self.fields)
        object.__setattr__(self, "stages", stages)
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "scalars", rules)
        for name in self.dtypes:
            for scalar in (*rules, TIME) if rules else ():
                if name in (scalar, f"s_{scalar}"):
                    raise ValueError(
                        f"program {self.name!r} has a field {name!r} and a scalar {scalar!r}, "
                        f"which kernels could not tell apart; rename one of them"
                    )

    def _check_math(self) -> None:
        if self.math not in get_args(Math):
            raise ValueError(f"math is one of {', '.join(get_args(Math))}, got {self.math!r}")
        if self.math == "fast" and {*self.dtypes.values()} <= {*INTEGERS}:
            raise ValueError(
                f"math='fast' is for {' and '.join(FLOATS)}, the fields of program {self.name!r} "
                f"are {self.dtype_text}; leave it out"
            )

    def _check_fields(self, user: str, used: Iterable[str]) -> None:
        for name in used:
            if name not in self.dtypes:
                known = ", ".join(self.dtypes)
                raise ValueError(f"{user} the field {name!r}, the program has {known}")

    def _check_renames(self) -> None:
        """Each field has one version when a step ends, and no version has two names."""
        self._check_fields("a rename uses", (*self.renames, *self.renames.values()))
        check_renames(
            self.name, self.renames, (*self.fields, *self.temporaries), self.written
        )

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name} {field.dtype}" for field in self.fields)
        stages = ", ".join(stage.summary for stage in self.stages)
        return f"<Program {self.name}: {fields}; {stages}; {self.n_axes} axes, math {self.math}>"

    def with_math(self, math: Math) -> Program:
        """The same in another arithmetic; ValueError for "fast" on integers."""
        return replace(self, math=math)

    def with_boundaries(self, boundaries: Mapping[str, Boundary]) -> Program:
        """The same with other boundaries of some fields."""
        self._check_fields("boundaries are given for", boundaries)
        fields = (
            replace(field, boundary=boundaries.get(field.name, field.boundary))
            for field in self.fields
        )
        return replace(self, fields=tuple(fields))

    @property
    def n_axes(self) -> int:
        """Axes of the domain, 1 to 4."""
        return len(self.stages[0].offsets)

    @property
    def dtype(self) -> str:
        """The dtype of all fields; ValueError where they have unlike ones."""
        if len({*self.dtypes.values()}) > 1:
            raise ValueError(f"program {self.name!r} has unlike dtypes: {self.dtype_text}")
        return self.fields[0].dtype

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Which axes are rings, as all fields say."""
        return tuple(self.fields[0].boundary.periodic(axis) for axis in range(self.n_axes))

    @property
    def boundaries(self) -> dict[str, Boundary]:
        """The rules of each field."""
        return {field.name: field.boundary for field in self.fields}

    @cached_property
    def by_location(self) -> tuple[tuple[Stage, ...], ...]:
        """Each stage as stages of fields that lie at one location; see `by_location`."""
        return tuple(by_location(stage, self.boundaries) for stage in self.stages)

    @property
    def rules(self) -> ScalarRules:
        """`scalars`, with all that can be asked of them."""
        assert isinstance(self.scalars, ScalarRules), "it was made of what was given"
        return self.scalars

    @cached_property
    def folds(self) -> dict[str, tuple[Stage, Fold]]:
        """What its stages fold, by name, in order, and which stage does."""
        return {name: (stage, fold) for stage in self.stages for name, fold in stage.folds.items()}

    @property
    def _scalars_outside(self) -> set[str]:
        """The scalars that boundaries use."""
        each = (scalars_of(field.boundary, field.name, self.n_axes) for field in self.fields)
        return set().union(*each)

    @cached_property
    def changing(self) -> tuple[str, ...]:
        """The scalars that stages and boundaries use and that change from step to step."""
        used = {one.name for stage in self.stages for one in stage.given if isinstance(one, Scalar)}
        return self.rules.changing(sorted(used | self._scalars_outside))

    @cached_property
    def dtypes(self) -> Mapping[str, str]:
        """The dtype of each field, by name, temporary ones too."""
        return {field.name: field.dtype for field in (*self.fields, *self.temporaries)}

    def dtype_of(self, stage: Stage) -> str:
        """The dtype of the fields that a stage updates, or else of that which lies where it does.

        ValueError where they have unlike ones.
        """
        found = {self.dtypes[field] for field in stage.updates or (stage.home,)}
        if len(found) > 1:
            raise ValueError(f"stage {stage.name!r} updates fields of {', '.join(sorted(found))}")
        return found.pop()

    @property
    def dtype_text(self) -> str:
        """For people: the dtype of all fields, or that of each."""
        if len({*self.dtypes.values()}) == 1:
            return self.fields[0].dtype
        return ", ".join(f"{name} {dtype}" for name, dtype in self.dtypes.items())

    def itemsize(self, field: str) -> int:
        """Bytes of a value of a field."""
        return np.dtype(self.dtypes[field]).itemsize

    @property
    def largest_itemsize(self) -> int:
        """The most bytes that a value of a field has."""
        return max(self.itemsize(field.name) for field in self.fields)

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The fields that stages write, in order of first writing; each once."""
        return tuple(dict.fromkeys(name for stage in self.stages for name in stage.updates))

    def field(self, name: str) -> Field:
        """The field called `name`; KeyError where there is none."""
        for field in (*self.fields, *self.temporaries):
            if field.name == name:
                return field
        raise KeyError(f"program {self.name!r} has no field {name!r}")

    def offsets(self, field: str) -> tuple[tuple[int, ...], ...]:
        """The distinct offsets at which stages read `field`, the zero one too, by first use."""
        every = (read for stage in self.stages for read in stage.reads)
        return tuple(dict.fromkeys(read.offset for read in every if read.field == field))

    @property
    def reach(self) -> Offsets:
        """Per axis, the cells read below and above a computed cell (>= 0), from the reads alone."""
        every = [offset for field in self.dtypes for offset in self.offsets(field)]
        return tuple(
            (max([0, *(-step for step in steps)]), max([0, *steps]))
            for steps in ([offset[axis] for offset in every] for axis in range(self.n_axes))
        )

    @property
    def flops_per_cell(self) -> int:
        """Arithmetic operations that one step does for one cell."""
        return sum(flops(stage.operations) for stage in self.stages)

    @property
    def bytes_per_cell(self) -> int:
        """Bytes one step must move for one cell: every field is read once and written once."""
        read = {name for stage in self.stages for name in stage.fields_read}
        return sum(self.itemsize(name) for name in (*read, *self.written))

    def updated(self, domain: Shape, periodic: tuple[bool, ...]) -> Shape:
        """The cells of `domain` that a step computes; the others keep their values.

        On a periodic axis all of them; at an end where what is read beyond is given by rules, up
        to it; elsewhere those whose declared offsets stay in the domain.  Empty where the domain is
        smaller than the offsets.  With several stages, the hull of theirs; stages of folds alone
        count where there are no others.
        """
        lasting = [apart for apart in self.by_location if not apart[0].rim]
        if self.written:
            lasting = [apart for apart in lasting if apart[0].updates]
        boxes = (
            stage.updated(domain, periodic, self.boundaries) for apart in lasting for stage in apart
        )
        return reduce(Shape.hull, boxes)
