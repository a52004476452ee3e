# SPDX-License-Identifier: MIT
"""An offer: what there is to choose from for the launches of one stage on one device.

Configurations of kgt for a kernel that is generated, variants for one of the user's own.
"""
from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from controllers import kgt
from controllers.device.device import Device
from controllers.kernel.candidate import Candidate, OwnCandidate, digest
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.variant import Kernel
from controllers.program.program import Program, Stage
from controllers.program.structure import structure


class Offer(Protocol):
    """What is offered; all candidates for a launch give the same bits."""

    @property
    def of(self) -> Hashable:
        """What is equal for offers of the same kernels; quick to make."""
        ...

    def digest(self) -> str:
        """A text that differs where other kernels are offered, whatever they are called."""
        ...

    def default(self, launch: kgt.Launch | None) -> Candidate:
        """What is good in general; without `launch` for a large box.

        ValueError where nothing computes the box.
        """
        ...

    def candidates(self, launch: kgt.Launch) -> tuple[Candidate, ...]:
        """The default for `launch`, then all others; empty where nothing can be chosen."""
        ...

    def can_vary(self, launch: kgt.Launch) -> bool:
        """Whether there is anything to try in place of the default."""
        ...

    def usual_steps(self) -> int:
        """How many steps of a large box are best computed by one launch."""
        ...


@dataclass(frozen=True)
class Generated:
    """Kernels that kgt generates."""

    program: Program
    stage: Stage
    device: Device

    @property
    def kind(self) -> str:
        """Of the device."""
        return self.device.kind

    @property
    def of(self) -> Hashable:
        return self.stage, self.program.fields, self.program.temporaries, self.program.math

    def digest(self) -> str:
        return structure(self.program, self.stage)

    def default(self, launch: kgt.Launch | None) -> Candidate:
        return kgt.choose(self.program, self.stage, self.kind, launch)

    def candidates(self, launch: kgt.Launch) -> tuple[Candidate, ...]:
        return kgt.candidates(self.program, self.stage, self.kind, launch)

    def can_vary(self, launch: kgt.Launch) -> bool:
        default = kgt.choose(self.program, self.stage, self.kind, launch)
        return kgt.can_vary(self.program, default)

    def usual_steps(self) -> int:
        return kgt.usual_steps(self.program, self.stage, self.kind)


@dataclass(frozen=True)
class Own:
    """The variants of a user's kernel, the most specific one first."""

    kernel: Kernel
    program: Program
    stage: Stage
    device: Device

    @property
    def of(self) -> Hashable:
        return self.stage, self.program.fields, self.kernel.variants

    def digest(self) -> str:
        kept = (candidate.kept.digest for candidate in self._fitting(None))
        return digest(structure(self.program, self.stage), *kept)

    def default(self, launch: kgt.Launch | None) -> Candidate:
        found = self._fitting(launch)
        if launch is None:
            return found[0]
        for candidate in found:
            if candidate.suits(launch.fields.values()):
                return candidate
        limits = "; ".join(self._limits(candidate) for candidate in found)
        raise ValueError(
            f"kernel {self.kernel.name!r} cannot compute a box of "
            f"{' x '.join(map(str, launch.extent))} "
            f"cells on {self.device.name}: it is made for {limits}; add a variant for such boxes "
            f"(device=\"\" is the least specific one), use fewer places, or zero_copy=False, which "
            f"pads tiles"
        )

    def candidates(self, launch: kgt.Launch) -> tuple[Candidate, ...]:
        return tuple(dict.fromkeys((self.default(launch), *self._fitting(launch))))

    def can_vary(self, launch: kgt.Launch) -> bool:
        return len(self._fitting(launch)) > 1

    def usual_steps(self) -> int:
        return max(self.kernel.steps)

    @property
    def has_single_steps(self) -> bool:
        """Whether there are variants of one step, by which others are judged."""
        return 1 in self.kernel.steps

    def _fitting(self, launch: kgt.Launch | None) -> list[OwnCandidate]:
        n_steps = None if launch is None else launch.n_steps
        return [*map(OwnCandidate, self.kernel.fitting(self.device, n_steps))]

    def _limits(self, candidate: OwnCandidate) -> str:
        """Which boxes a candidate computes that does not compute all."""
        like = candidate.variant.form.like
        assert like is not None, "others compute all boxes"
        least = f"{' x '.join(map(str, like.least(self.program.n_axes)))} cells or more"
        pitches = f", with pitches that are multiples of {like.multiple}"
        return least + pitches * (like.multiple > 1)


@dataclass(frozen=True)
class Fixed:
    """The one configuration of a strategy that was asked for by its name."""

    strategy: str
    program: Program
    stage: Stage

    @property
    def of(self) -> Hashable:
        return self.stage, self.program.fields, self.program.temporaries, self.strategy

    def digest(self) -> str:
        return digest(structure(self.program, self.stage), self.strategy)

    def default(self, launch: kgt.Launch | None) -> Candidate:
        return kgt.config_of(self.strategy, self.program, self.stage)

    def candidates(self, launch: kgt.Launch) -> tuple[Candidate, ...]:
        return ()

    def can_vary(self, launch: kgt.Launch) -> bool:
        return False

    def usual_steps(self) -> int:
        return 1


def offer(choice: KernelChoice, program: Program, stage: Stage, device: Device) -> Offer:
    """What `choice` offers for `stage`, of which a kernel of the user's own may be another's."""
    if isinstance(choice, Kernel) and choice.computes(program, stage):
        return Own(choice, program, stage, device)
    if isinstance(choice, str) and choice != SPECIALISED:
        return Fixed(choice, program, stage)
    return Generated(program, stage, device)


def check_choice(choice: KernelChoice, program: Program) -> None:
    """ValueError where tuning has nothing to choose from, whatever the device."""
    if choice == SPECIALISED:
        return
    if not isinstance(choice, Kernel):
        raise ValueError(f"the kernel {choice!r} has no configurations to tune; leave it out")
    if len(choice.variants) < 2 and len(program.stages) < 2:
        raise ValueError(
            f"tuning searches among variants, and kernel {choice.name!r} has one; add others with "
            f"with_variant(..., beside=True), or a space of values, or leave out the tuning"
        )
