# SPDX-License-Identifier: MIT
"""A kernel of the user's own, in one or several variants, of which each device gets one.

A variant says for which devices it is written:

    ""          any device: the generic one
    gpu         a kind: gpu, cpu or accelerator
    nvidia      a vendor: a word of the vendor's or the platform's name
    *H200*      a pattern of the device's name, with * ? [...]

The most specific one that fits is taken: a name before a vendor, a vendor before a kind.  Where
that one is not made for a box, or for so many time steps, the next one is.  Tuning tries all that
fit (docs/tuning.md), and takes the fastest.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, TypeAlias, Union, cast, get_args

import numpy as np

from controllers.device.device import Device, DeviceKind
from controllers.kernel.launch_form import FormKeywords, LaunchForm
from controllers.kgt.parameter import ROLE_WORDS, TILE_ROLES, Role
from controllers.language.source import KernelSource, SourceLike
from controllers.program.program import Program, Stage
from hitmap.argument import instance, number, one_of, wholes, wrong

if TYPE_CHECKING:
    from typing_extensions import Unpack

Reads: TypeAlias = Mapping[str, tuple[tuple[int, ...], ...]]

ANY = ""
RoleWord: TypeAlias = Union[Literal["reading", "writing", "updating"], Role]
_GENERIC, _KIND, _VENDOR, _NAME = range(1, 5)


@dataclass(frozen=True)
class Variant:
    """One implementation, for the devices that `device` fits, and how it is launched."""

    device: str
    source: KernelSource
    form: LaunchForm = field(default_factory=LaunchForm)

    def fit(self, device: Device) -> tuple[int, int]:
        """How specific this variant is for `device`; (0, 0) where it does not fit.

        Of two patterns of names, the longer one is the more specific.
        """
        word = self.device.lower()
        if word == ANY:
            return _GENERIC, 0
        if word in get_args(DeviceKind):
            return (_KIND, 0) if device.kind == word else (0, 0)
        if any(sign in word for sign in "*?["):
            return (_NAME, len(word)) if fnmatchcase(device.name.lower(), word) else (0, 0)
        vendor = f"{device.vendor} {device.platform}".lower()
        return (_VENDOR, len(word)) if word in vendor else (0, 0)


@dataclass(frozen=True)
class Kernel:
    """Variants of one kernel, and what it declares, whatever the device.

    scalars: values for scalar parameters of its own.
    roles: of tiles: "reading", "writing" or "updating", or as we call them "in", "out" and "inout",
        which is what is held; those not declared are read from `const`
        (`controllers.kgt.parameter`).
    reads: the offsets at which it reads each field; by default those of the program's stage.
    stage: the name of the stage that it computes, where the program has several.
    """

    name: str
    variants: tuple[Variant, ...]
    scalars: Mapping[str, float] = field(default_factory=dict)
    roles: Mapping[str, Role] = field(default_factory=dict)
    reads: Reads = field(default_factory=dict)
    stage: str = ""

    def __post_init__(self) -> None:
        what = f"kernel {self.name!r}"
        instance(self.name, str, "the name of a kernel", "write it in quotes")
        instance(self.stage, str, f"{what}: stage", "write the name of one in quotes")
        roles: dict[str, Role] = {}
        for given, called in (
            (self.roles, "roles"), (self.scalars, "scalars"), (self.reads, "reads")
        ):  # fmt: skip
            if not isinstance(given, Mapping):
                raise wrong(f"{what}: {called}", "a dict", given, "write {name: value}")
        for name, word in self.roles.items():
            role = ROLE_WORDS.get(word, word) if isinstance(word, str) else word
            if role not in TILE_ROLES:
                one_of(word, ROLE_WORDS, f"{what}: the role of {name!r}")
            roles[name] = role
        object.__setattr__(self, "roles", roles)
        for name, value in self.scalars.items():
            if not isinstance(value, (bool, np.bool_)):
                number(value, f"{what}: the scalar {name!r}")

    @classmethod
    def of(
        cls,
        name: str,
        source: SourceLike,
        *,
        device: str = ANY,
        scalars: Mapping[str, float] | None = None,
        roles: Mapping[str, RoleWord] | None = None,
        reads: Mapping[str, Sequence[Sequence[int]]] | None = None,
        stage: str = "",
        **form: Unpack[FormKeywords],
    ) -> Kernel:
        """A kernel of one variant; `source` is OpenCL C or the path of a file.

        device: which devices the variant is for (docs/kernels.md).
        scalars, roles, reads, stage: see `Kernel`.

        How it is launched, per axis in C order; by default one cell per work-item, in work-groups
        of the device's choice, or as the line says that kgt writes at the head of a file:

        work_group: work-items of a group; not needed beside `reqd_work_group_size`.
        cells_per_item: cells that a work-item computes; items are rounded up to whole groups.
        steps_per_launch: time steps that a launch computes.
        local: elements of each `__local` parameter, by name.
        like: a configuration of kgt, in place of these: launched as what is generated with it.
        space: names in the text and in these keywords, each with the values that tuning may try,
            the usual one first: `space={"EDGE": (8, 16)}, work_group=("EDGE", "EDGE")`.

        >>> Kernel.of("twice", "NEW(u) = 2 * HERE(u);").with_variant("...", "gpu").devices
        ('', 'gpu')
        >>> Kernel.of("k", "NEW(u) = 0;", work_group=[16, 16]).variants[0].form.work_group
        (16, 16)
        """
        held = cast("Mapping[str, Role]", roles or {})
        kernel = cls(name, (), scalars or {}, held, {}, stage)
        return replace(
            kernel, scalars=dict(kernel.scalars), roles=dict(kernel.roles),
            reads=_offsets(reads or {}, f"kernel {name!r}: reads"),
        ).with_variant(source, device, **form)  # fmt: skip

    @property
    def devices(self) -> tuple[str, ...]:
        """What the variants are for."""
        return tuple(variant.device for variant in self.variants)

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of time steps for which there are variants, in order."""
        return tuple(sorted({variant.form.steps_per_launch for variant in self.variants}))

    def with_variant(
        self,
        source: SourceLike,
        device: str = ANY,
        *,
        beside: bool = False,
        **form: Unpack[FormKeywords],
    ) -> Kernel:
        """The same with one more variant; the last keywords are those of `Kernel.of`.

        beside: it is a further candidate for tuning; otherwise it replaces those for the same
            devices that compute as many steps per launch.
        """
        word = instance(device, str, "device", 'write a kind or name, such as "gpu"').strip()
        text = KernelSource.of(source)
        what = f"kernel {self.name!r}"
        unknown = [name for name in self.roles if not text.may_name(name)]
        if unknown:
            raise ValueError(
                f"{what}: the role of {unknown[0]!r} is declared, and the text names no "
                f"{unknown[0]!r}; write the name of a parameter"
            )
        new = [Variant(word, text, made) for made in LaunchForm.each_of(what, text, **form)]
        taken = [name for made in new for name, _ in made.form.macros if name in self.scalars]
        if taken:
            raise ValueError(f"{what}: {taken[0]!r} is a scalar and in the space; rename one")
        keys = {(word.lower(), one.form.steps_per_launch) for one in new}
        kept = [
            one for one in self.variants
            if beside or (one.device.lower(), one.form.steps_per_launch) not in keys
        ]  # fmt: skip
        return replace(self, variants=tuple(dict.fromkeys((*kept, *new))))

    def with_scalars(self, values: Mapping[str, float]) -> Kernel:
        """The same with more values for scalar parameters."""
        return replace(self, scalars={**self.scalars, **values})

    def variant(self, device: Device) -> Variant:
        """The most specific variant for `device`; ValueError where none fits."""
        return self.fitting(device)[0]

    def fitting(self, device: Device, n_steps: int | None = None) -> list[Variant]:
        """The variants for `device`, of `n_steps` per launch or of any, most specific first.

        ValueError where there is none.
        """
        fitting = [one for one in self.variants if one.fit(device) != (0, 0)]
        found = [one for one in fitting if n_steps in (None, one.form.steps_per_launch)]
        if found:
            return sorted(found, key=lambda variant: variant.fit(device), reverse=True)
        whose = f"{device.name} ({device.kind}, {device.vendor})"
        if fitting:
            listed = ", ".join(str(one.form.steps_per_launch) for one in fitting)
            raise ValueError(
                f"kernel {self.name!r} computes {listed} steps per launch on {whose}, got a launch "
                f"of {n_steps}; add a variant with steps_per_launch={n_steps}"
            )
        raise ValueError(
            f"kernel {self.name!r} has variants for {', '.join(self.devices)}, and none for "
            f"{whose}; add one for any device"
        )

    def planned(self, kind: str, n_steps: int) -> Variant:
        """The variant of so many steps that a device of a kind is likely to get.

        ValueError where none has as many.
        """
        of_steps = [one for one in self.variants if one.form.steps_per_launch == n_steps]
        found = [one for one in of_steps if one.device.lower() == kind] or of_steps
        if not found:
            steps = ", ".join(map(str, self.steps))
            raise ValueError(
                f"kernel {self.name!r} computes {steps} steps per launch, got a launch of "
                f"{n_steps}; add a variant with steps_per_launch={n_steps}"
            )
        return found[0]

    def computes(self, program: Program, stage: Stage) -> bool:
        """Whether it computes `stage`; ValueError where it is not said, or wrongly, which one.

        Folds are computed by generated kernels.
        """
        names = [stage.name for stage in program.stages]
        if (self.stage and self.stage not in names) or (not self.stage and len(names) > 1):
            got = f"is for {self.stage!r}" if self.stage else "does not say which one it computes"
            raise ValueError(
                f"program {program.name!r} has the stages {', '.join(names)}, and the kernel "
                f"{self.name!r} {got}; say stage={names[0]!r}, for example"
            )
        if any(len(parts) > 1 for parts in program.by_location):
            raise ValueError(
                f"program {program.name!r} has a stage that updates fields of unlike locations, "
                f"which no kernel of one's own computes at once; write a stage for each, or leave "
                f"out the kernel {self.name!r}"
            )
        return self.stage in ("", stage.name) and not stage.folds

    def offsets(self, stage: Stage, field: str) -> tuple[tuple[int, ...], ...]:
        """The offsets at which it reads `field`: declared, or else all of the stage's.

        ValueError where it declares more than the stage has, from which halos follow.
        """
        described = tuple(read.offset for read in stage.reads if read.field == field)
        if not self.reads:
            return described
        declared = self.reads.get(field, ())
        beyond = [offset for offset in declared if offset not in described]
        if beyond:
            raise ValueError(
                f"kernel {self.name!r} declares to read {field!r} at {beyond[0]}, which the stage "
                f"{stage.name!r} does not (it has {', '.join(map(str, described))}); give the "
                f"pattern a weight there"
            )
        return declared


def _offsets(reads: Mapping[str, Sequence[Sequence[int]]], what: str) -> Reads:
    if not isinstance(reads, Mapping):
        raise wrong(what, "a dict", reads, "write {field: [(-1, 0), (0, 1)]}")
    return {
        name: tuple(
            (offset,) if isinstance(offset, int) else wholes(offset, f"{what} of {name!r}")
            for offset in offsets
        )
        for name, offsets in reads.items()
    }
