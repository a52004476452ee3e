# SPDX-License-Identifier: MIT
"""How the kernels of a stage are built and launched: what a device has chosen, or would.

Values for people to read; they need no OpenCL.  A device may compute some boxes by one kernel and
the others, narrow ones, by another.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import prod
from typing import TypeAlias

from controllers import kgt
from controllers.device.device import WITHOUT_OPENCL
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.variant import Kernel, Variant
from controllers.kgt.kernel import WorkSizes
from controllers.kgt.text.fold_memory import memory_nbytes, n_slots
from controllers.kgt.text.fold_values import values_of, with_values
from controllers.program.program import Program
from controllers.program.sweep import Sweep
from hitmap.shape import Shape
from hitmap.strided import Geometry

# A driver tells of the cache that a processor shares among its cores; a machine that has few of
# them, as virtual ones do, has no use of all of it.
CACHE_OF_UNIT = 16 << 20
# A box of cells, and how the tiles of the fields lie in memory that it is computed in.
Placed: TypeAlias = tuple[Shape, Mapping[str, Geometry]]


@dataclass(frozen=True)
class LaunchSize:
    """A box of `extent` cells; the sizes are in OpenCL's order, () where there are none."""

    extent: tuple[int, ...]
    global_size: tuple[int, ...] = ()
    local_size: tuple[int, ...] = ()

    @property
    def n_cells(self) -> int:
        return prod(self.extent)


@dataclass(frozen=True)
class KernelUse:
    """A kernel of one stage on one device, and the distinct launches of it.

    origin: where its text comes from.  options: of the build, None where a device chooses them.
    text: in OpenCL C, where it was built.
    """

    device: str
    stage: str
    kernel: str
    origin: str
    options: tuple[str, ...] | None
    launches: tuple[LaunchSize, ...] = ()
    text: str = field(default="", repr=False)

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON; without the text."""
        found = asdict(self)
        del found["text"]
        return found


def with_launches(
    boxes: Iterable[Placed],
    kernel_of: Callable[[Placed], tuple[KernelUse, WorkSizes | None]],
    *,
    is_cpu: bool,
) -> list[KernelUse]:
    """The kernels of some boxes, each with what it is launched on; empty boxes are left out."""
    found: dict[KernelUse, dict[LaunchSize, None]] = {}
    for box, geometries in boxes:
        if not box.empty:
            kernel, work_sizes = kernel_of((box, geometries))
            sizes = ((), ()) if work_sizes is None else work_sizes(box.extent, is_cpu)
            found.setdefault(kernel, {})[LaunchSize(box.extent, *sizes)] = None
    return [replace(kernel, launches=tuple(launches)) for kernel, launches in found.items()]


def launch_of(
    program: Program,
    sweep: Sweep,
    placed: Placed,
    *,
    cache_bytes: int = 0,
    local_bytes: int = 0,
    max_items: int = 0,
    units: int = 0,
    nvidia: bool = False,
) -> kgt.Launch:
    """What is known of a launch of a sweep, and of the device (`kgt.Launch`)."""
    box, geometries = placed
    tiles = (*sweep.writes, *(use.version.field for use in sweep.uses))
    nbytes = sum(geometries[field].n_elements * program.itemsize(field) for field in tiles)
    cache_bytes = min(cache_bytes, units * CACHE_OF_UNIT) if units else cache_bytes
    where = {
        field: geometries[field].strided(sweep.where(field, box)) for field in dict.fromkeys(tiles)
    }
    if not where:       # a fold of what no field holds
        where = {sweep.stage.home: Geometry.dense(box).strided(box)}
    return kgt.Launch(
        where, nbytes > cache_bytes, sweep.count, local_bytes, max_items, units, nvidia
    )


def planned_configurations(
    program: Program,
    sweep: Sweep,
    choice: KernelChoice,
    boxes: Iterable[Placed],
    kind: str,
) -> list[KernelUse]:
    """What a device of a kind would choose, as far as it is known without one.

    Fields are taken to exceed its cache.
    """
    if kind in WITHOUT_OPENCL:
        return own_configurations(sweep, boxes, kind, kind)
    stage = sweep.stage

    def kernel_of(placed: Placed) -> tuple[KernelUse, WorkSizes]:
        if isinstance(choice, Kernel) and choice.computes(program, stage):
            name, origin = choice.name, origin_of(choice)
            sizes = choice.planned(kind, sweep.count).form.planned_sizes(program, stage)
            return KernelUse(kind.upper(), stage.name, name, origin, None), sizes
        config = _planned(program, sweep, choice, placed, kind)
        name, origin = config.name(stage), config.origin(stage)
        found = KernelUse(kind.upper(), stage.name, name, origin, None)
        return found, config.work_sizes(program, stage)

    return with_launches(boxes, kernel_of, is_cpu=kind == "cpu")


def planned_folds_nbytes(
    program: Program,
    sweep: Sweep,
    choice: KernelChoice,
    boxes: Iterable[Placed],
    kind: str,
) -> int:
    """Bytes on a device of a kind for what launches of a sweep over boxes of a place fold into."""
    if kind in WITHOUT_OPENCL:
        return 0    # made where the cells are computed
    values, slots, is_cpu = values_of(with_values(program, sweep.stage)[1]), [], kind == "cpu"
    for placed in boxes:
        config = _planned(program, sweep, choice, placed, kind)
        source = kgt.generate(program, sweep.stage, config)
        slots.append(n_slots(source, source.work_sizes(placed[0].extent, is_cpu)))
    return memory_nbytes(values, slots)


def _planned(
    program: Program, sweep: Sweep, choice: KernelChoice, placed: Placed, kind: str
) -> kgt.Config:
    """How a generated kernel is configured, where the device is not there."""
    if isinstance(choice, str) and choice != SPECIALISED:
        return kgt.config_of(choice, program, sweep.stage)
    return kgt.choose(program, sweep.stage, kind, launch_of(program, sweep, placed))


def own_configurations(
    sweep: Sweep, boxes: Iterable[Placed], device: str, kind: str
) -> list[KernelUse]:
    """Of what computes without OpenCL, such as the NumPy reference: nothing is configured."""
    origin = "NumPy" if kind == "reference" else "without OpenCL"
    only = KernelUse(device, sweep.name, kind, origin, ())
    return with_launches(boxes, lambda placed: (only, None), is_cpu=True)


def origin_of(kernel: Kernel, variant: Variant | None = None) -> str:
    """Where the text of a user's kernel comes from, and how the `variant` that is used is launched.
    """
    used = kernel.variants if variant is None else (variant,)
    text = ", ".join(filter(None, (one.source.file for one in used))) or "a text of the program's"
    launched = "" if variant is None else variant.form.described()
    return f"{text}, {launched}" if launched and len(kernel.variants) > 1 else text
