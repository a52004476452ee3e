# SPDX-License-Identifier: MIT
"""A kernel of the user's own, in one or several variants, of which each device gets one.

A variant says for which devices it is written:

    ""          any device: the generic one
    gpu         a kind: gpu, cpu or accelerator
    nvidia      a vendor: a word of the vendor's or the platform's name
    *H200*      a pattern of the device's name, with * ? [...]

The most specific one that fits is taken: a name before a vendor, a vendor before a kind.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, Union, cast, get_args

import numpy as np

from controllers.device.device import Device, Kind
from controllers.kernel.source import KernelSource, SourceLike
from controllers.kgt.parameter import ROLE_WORDS, TILE_ROLES, Role
from hitmap.argument import instance, number, one_of, wrong

ANY = ""
RoleWord: TypeAlias = Union[Literal["reading", "writing", "updating"], Role]
_GENERIC, _KIND, _VENDOR, _NAME = range(1, 5)


@dataclass(frozen=True)
class Variant:
    """One implementation, for the devices that `device` fits."""

    device: str
    source: KernelSource

    def fit(self, device: Device) -> tuple[int, int]:
        """How specific this variant is for `device`; (0, 0) where it does not fit.

        Of two patterns of names, the longer one is the more specific.
        """
        word = self.device.lower()
        if word == ANY:
            return _GENERIC, 0
        if word in get_args(Kind):
            return (_KIND, 0) if device.kind == word else (0, 0)
        if any(sign in word for sign in "*?["):
            return (_NAME, len(word)) if fnmatchcase(device.name.lower(), word) else (0, 0)
        vendor = f"{device.vendor} {device.platform}".lower()
        return (_VENDOR, len(word)) if word in vendor else (0, 0)


@dataclass(frozen=True)
class Kernel:
    """Variants of one kernel, values for scalar parameters of its own, and declared roles.

    Roles are "reading", "writing" or "updating", or as we call them "in", "out" and "inout", which
    `roles` holds; those not declared are read from `const` (`controllers.kgt.parameter`).
    """

    name: str
    variants: tuple[Variant, ...]
    scalars: Mapping[str, float] = field(default_factory=dict)
    roles: Mapping[str, Role] = field(default_factory=dict)

    def __post_init__(self) -> None:
        what = f"kernel {self.name!r}"
        instance(self.name, str, "the name of a kernel", "write it in quotes")
        roles: dict[str, Role] = {}
        for given, called in ((self.roles, "roles"), (self.scalars, "scalars")):
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
    ) -> Kernel:
        """A kernel of one variant; `source` is OpenCL C or the path of a file.

        >>> Kernel.of("twice", "NEW(u) = 2 * HERE(u);").with_variant("...", "gpu").devices
        ('', 'gpu')
        """
        kernel = cls(name, (), scalars or {}, cast("Mapping[str, Role]", roles or {}))
        return replace(
            kernel, scalars=dict(kernel.scalars), roles=dict(kernel.roles)
        ).with_variant(source, device)

    @property
    def devices(self) -> tuple[str, ...]:
        """What the variants are for."""
        return tuple(variant.device for variant in self.variants)

    def with_variant(self, source: SourceLike, device: str = ANY) -> Kernel:
        """The same with one more variant, which replaces one for the same devices."""
        word = instance(device, str, "device", 'write a kind or name, such as "gpu"').strip()
        variant = Variant(word, KernelSource.of(source))
        unknown = [name for name in self.roles if not variant.source.may_name(name)]
        if unknown:
            raise ValueError(
                f"kernel {self.name!r}: the role of {unknown[0]!r} is declared, and the text names "
                f"no {unknown[0]!r}; write the name of a parameter"
            )
        others = (one for one in self.variants if one.device.lower() != word.lower())
        return replace(self, variants=(*others, variant))

    def with_scalars(self, values: Mapping[str, float]) -> Kernel:
        """The same with more values for scalar parameters."""
        return replace(self, scalars={**self.scalars, **values})

    def variant(self, device: Device) -> Variant:
        """The most specific variant for `device`; ValueError where none fits."""
        best = max(self.variants, key=lambda variant: variant.fit(device))
        if best.fit(device) == (0, 0):
            raise ValueError(
                f"kernel {self.name!r} has variants for {', '.join(self.devices)}, and none for "
                f"{device.name} ({device.kind}, {device.vendor}); add one for any device"
            )
        return best
