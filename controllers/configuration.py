# SPDX-License-Identifier: MIT
"""How the kernel of a stage is built and launched: what a device has chosen, or would.

A value for people to read; it needs no OpenCL.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controllers.kgt import DEFAULT_STRATEGY, generate
from controllers.kgt.kernel import WorkSizes
from controllers.program import Program, Stage
from controllers.registry import GENERIC, KernelChoice
from controllers.variant import Kernel
from hitmap.shape import Shape


@dataclass(frozen=True)
class Launch:
    """A box of `extent` cells; the sizes are in OpenCL's order, () where there are none."""

    extent: tuple[int, ...]
    global_size: tuple[int, ...] = ()
    local_size: tuple[int, ...] = ()

    @classmethod
    def of_boxes(
        cls, boxes: Iterable[Shape], work_sizes: WorkSizes | None, is_cpu: bool
    ) -> tuple[Launch, ...]:
        """The distinct launches for some boxes, empty ones left out."""
        extents = dict.fromkeys(box.extent for box in boxes if not box.empty)
        if work_sizes is None:
            return tuple(cls(extent) for extent in extents)
        return tuple(cls(extent, *work_sizes(extent, is_cpu)) for extent in extents)


@dataclass(frozen=True)
class Configuration:
    """The kernel of one stage on one device.

    origin: where its text comes from.  options: of the build, None where a device chooses them.
    """

    device: str
    stage: str
    kernel: str
    origin: str
    options: tuple[str, ...] | None
    launches: tuple[Launch, ...]


def planned_configuration(
    program: Program, stage: Stage, choice: KernelChoice, boxes: Iterable[Shape], is_cpu: bool
) -> Configuration:
    """What a device would choose, as far as it is known without one."""
    generated = generate(program, stage)
    name = generated.name
    if isinstance(choice, Kernel):
        name = choice.name
    elif choice == GENERIC:
        name = "generic_stencil"
    return Configuration(
        "CPU" if is_cpu else "GPU",
        stage.name,
        name,
        origin_of(choice),
        None,
        Launch.of_boxes(boxes, generated.work_sizes, is_cpu),
    )


def origin_of(choice: KernelChoice, file: str = "") -> str:
    """Where the text of a kernel comes from; `file` is the one of the variant that is used."""
    if isinstance(choice, Kernel):
        files = [file] if file else [variant.source.file for variant in choice.variants]
        return ", ".join(filter(None, files)) or "a text of the program's"
    if choice == GENERIC:
        return "kernels_cl/generic_stencil.cl"
    return f"generated, strategy {DEFAULT_STRATEGY!r}"
