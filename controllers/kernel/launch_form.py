# SPDX-License-Identifier: MIT
"""How a kernel of the user's own is launched: work-groups, cells per work-item, steps per launch.

A kernel that declares nothing computes one cell per work-item, in work-groups of the device's
choice.  Extents are in C order, one per axis.  OpenCL has three dimensions: of four axes the first
two share the last one, of which a work-group holds one item.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, TypedDict

from controllers import kgt
from controllers.kernel.space import combinations
from controllers.kgt.launch_line import launched_like
from controllers.kgt.strategies.cell.config import work_sizes
from controllers.language.source import KernelSource
from controllers.program.offsets import MAX_AXES
from controllers.program.program import Program, Stage
from hitmap.argument import short, sizes_of, whole, wrong

if TYPE_CHECKING:
    from controllers.kgt.kernel import WorkSizes

MOST = 1 << 20      # of any number in a declaration
DIMENSIONS = 3      # of OpenCL
_REQUIRED = re.compile(r"\breqd_work_group_size\b")


class FormKeywords(TypedDict, total=False):
    """How a kernel is launched; a text is a name of the space (`controllers.kernel.space`)."""

    work_group: int | str | Sequence[int | str] | None
    cells_per_item: int | str | Sequence[int | str] | None
    steps_per_launch: int | str
    local: Mapping[str, int | str]
    like: kgt.Config | None
    space: Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class LaunchForm:
    """What a kernel declares of its launches.

    work_group: items of a work-group per axis.  None: what the kernel is compiled for
        (`reqd_work_group_size`), else what suits the device.
    cells_per_item: cells that an item computes, per axis.  A box gets as many items as cover it,
        in whole work-groups: items beyond the box are for the kernel to leave out.
    steps_per_launch: time steps that a launch computes.
    local: the `__local` parameters, and how many elements each has.
    like: a configuration of kgt, in place of the first three: launched as the kernel that is
        generated with it, on the boxes that this one suits.
    macros: names of the space that are defined in its text, each with a value.
    """

    work_group: tuple[int, ...] | None = None
    cells_per_item: tuple[int, ...] | None = None
    steps_per_launch: int = 1
    local: tuple[tuple[str, int], ...] = ()
    like: kgt.Config | None = None
    macros: tuple[tuple[str, int], ...] = ()

    @classmethod
    def each_of(
        cls, what: str, source: KernelSource, **given: object
    ) -> Iterator[LaunchForm]:
        """What is declared, for each combination of values of the space; by default the text's."""
        space = given.pop("space", {})
        for macros, declared in combinations(what, source, given, space):
            form = cls.of(what, **declared) if declared else cls.of_source(source)
            yield replace(form, macros=macros)

    @classmethod
    def of(cls, what: str, **given: object) -> LaunchForm:
        """The declared values, checked; `what` names the kernel in errors."""
        known = FormKeywords.__annotations__
        unknown = [name for name in given if name not in known]
        if unknown:
            raise TypeError(
                f"{what}: {unknown[0]!r} says nothing of its launches; there are "
                f"{', '.join(known)}"
            )
        form = cls(
            _extents(given.get("work_group"), f"{what}: work_group"),
            _extents(given.get("cells_per_item"), f"{what}: cells_per_item"),
            _count(given.get("steps_per_launch", 1), f"{what}: steps_per_launch"),
            _local(given.get("local"), what),
            _configuration(given.get("like"), what),
        )
        if form.like is not None:
            if (form.work_group, form.cells_per_item, form.steps_per_launch) != (None, None, 1):
                raise ValueError(
                    f"{what}: like says how it is launched; leave out work_group, cells_per_item "
                    f"and steps_per_launch"
                )
            object.__setattr__(form, "steps_per_launch", form.like.steps_per_launch)
        return form

    @classmethod
    def of_source(cls, source: KernelSource) -> LaunchForm:
        """What a text says of itself, in the line that kgt writes at its head.

        >>> LaunchForm.of_source(KernelSource('// launch: {"strategy": "rows"}')).like.strategy
        'rows'
        """
        made = launched_like(source.text, source.file or "the source")
        return cls() if made is None else cls.of("the source", like=made)

    def check(self, what: str, n_axes: int) -> None:
        """ValueError where this is no way to launch over boxes of so many axes."""
        for name in ("work_group", "cells_per_item"):
            given = getattr(self, name)
            if given is not None and len(given) != n_axes:
                raise ValueError(
                    f"{what}: {name} has one extent for each of {n_axes} axes, got {given}; give "
                    f"as many"
                )
        if n_axes > DIMENSIONS and prod((self.work_group or (1,))[: n_axes - 2]) > 1:
            raise ValueError(
                f"{what}: of {n_axes} axes, a work-group holds one cell along the first two, got "
                f"{self.work_group}; begin with 1, 1"
            )

    def sizes(self, group: tuple[int, ...]) -> WorkSizes:
        """Global and local size, in OpenCL's order, by the extent of a box.

        group: the work-group that the kernel is compiled for, in C order; () where there is none.

        >>> LaunchForm((16, 16), (1, 4)).sizes(())((100, 130), False)
        ((48, 112), (16, 16))
        """
        chosen = self.work_group or group

        def sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
            cells = self.cells_per_item or (1,) * len(extent)
            items = tuple(-(-n // each) for n, each in zip(extent, cells))
            if not chosen:
                return work_sizes(items, is_cpu)
            whole = [-(-n // each) * each for n, each in zip(items, chosen)]
            whole[:-2] = [prod(whole[:-2])] if whole[:-2] else []
            return tuple(whole[::-1]), tuple(chosen[::-1][:DIMENSIONS])

        return sizes

    def planned_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        """Global and local size by the extent of a box, as far as the declaration tells."""
        return self.sizes(()) if self.like is None else self.like.work_sizes(program, stage)

    def is_grouped(self, source: KernelSource) -> bool:
        """Whether its work-groups are fixed, so that a box may end within one."""
        return self.work_group is not None or bool(_REQUIRED.search(source.code))

    @property
    def definitions(self) -> dict[str, str]:
        """The macros, as their text."""
        return {name: str(value) for name, value in self.macros}

    def parameters(self) -> dict[str, object]:
        """All that differs among forms, as numbers by name, in order."""
        found: dict[str, object] = {**dict(self.macros), "steps_per_launch": self.steps_per_launch}
        for name in ("work_group", "cells_per_item"):
            extents = getattr(self, name)
            if extents is not None:
                found[name] = extents
        if self.like is not None:
            found |= {f"like {name}": n for name, n in self.like.parameters().items()}
        return found

    def described(self) -> str:
        """The same for people; "" where nothing is declared.

        >>> LaunchForm((16, 16), macros=(("EDGE", 16),)).described()
        'EDGE 16, work_group 16 x 16'
        """
        parts = [f"{name} {value}" for name, value in self.macros]
        for name in ("work_group", "cells_per_item"):
            if getattr(self, name) is not None:
                parts.append(f"{name} {' x '.join(map(str, getattr(self, name)))}")
        if self.like is not None:
            parts.append(f"like {self.like.described()}")
        elif self.steps_per_launch > 1:
            parts.append(f"steps_per_launch {self.steps_per_launch}")
        return ", ".join(parts)

    @property
    def local_elements(self) -> dict[str, int]:
        """The elements of each `__local` parameter."""
        return dict(self.local)

    @property
    def takes_any_box(self) -> bool:
        """Whether it computes boxes of all extents, wherever they lie."""
        return self.like is None


def _extents(given: object, what: str) -> tuple[int, ...] | None:
    if given is None:
        return None
    extents = sizes_of(given, what)
    if not 1 <= len(extents) <= MAX_AXES or not all(1 <= n <= MOST for n in extents):
        raise ValueError(
            f"{what}: one extent per axis, of 1 to {MOST}, got {short(given)}; write (16, 16)"
        )
    return extents


def _count(given: object, what: str) -> int:
    count = whole(given, what)
    if not 1 <= count <= MOST:
        raise ValueError(f"{what} is a number of 1 to {MOST}, got {short(given)}; use 1")
    return count


def _local(given: object, what: str) -> tuple[tuple[str, int], ...]:
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise wrong(f"{what}: local", "a dict", given, "write {name: elements}")
    return tuple(
        (str(name), _count(n, f"{what}: the elements of {name!r}")) for name, n in given.items()
    )


def _configuration(given: object, what: str) -> kgt.Config | None:
    if given is not None and not isinstance(getattr(given, "strategy", None), str):
        raise wrong(f"{what}: like", "a configuration of kgt", given, "take one of its strategies")
    config: kgt.Config | None = given   # type: ignore[assignment]
    # without parameters it computes one cell per work-item, as what declares nothing
    return config if config is not None and config.parameters() else None
