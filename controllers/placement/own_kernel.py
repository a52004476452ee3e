# SPDX-License-Identifier: MIT
"""What a kernel of the user's own asks of a plan: steps per launch, boxes that it can compute."""
from __future__ import annotations

from collections.abc import Collection, Mapping

from controllers import kgt
from controllers.executor.executor import Executor
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.variant import Kernel
from controllers.plan import Overlap, Plan
from controllers.program.fusion import fused
from controllers.program.program import Program
from controllers.program.storing import FLOPS_PER_BYTE, TOGETHER, with_temporaries
from controllers.program.undivided import undivided
from controllers.settings.execution import Execution
from hitmap.agreement import raise_together
from hitmap.argument import short
from hitmap.comm import Communicator

IN_PLACE = ("cpu", "reference")     # kinds of devices that compute each cell of a launch once


def as_planned(
    program: Program, kernel: KernelChoice, execution: Execution, kinds: Collection[str]
) -> Program:
    """The program with fused stages, and temporary fields for stored values, where that pays.

    It does on devices of all kinds.  A kernel of the user's own, and one that takes patterns as
    data, computes a stage as it is described; several steps at once are those of a single stage.
    """
    is_whole = isinstance(kernel, Kernel) or execution.most_steps > 1
    is_wide = execution.halo_width not in (None, 1)     # temporary fields have halos of a launch
    flops = max(FLOPS_PER_BYTE.get(kind, FLOPS_PER_BYTE["gpu"]) for kind in kinds)
    together = max(TOGETHER.get(kind, 1) for kind in kinds)
    program = undivided(program)
    if not is_whole and kernel == SPECIALISED:
        program = fused(program, execution.fuse)
    storing = "never" if is_whole or is_wide else execution.stored
    return with_temporaries(program, storing, flops, together)


def in_place(kernel: KernelChoice, kinds: Collection[str]) -> bool:
    """Whether sweeps may write over what they read, with these kernels on devices of all kinds.

    Kernels of the user's own have parameters for two buffers.  GPUs march through a box, and ends
    of it are computed twice.
    """
    if isinstance(kernel, Kernel) or {*kinds} - {*IN_PLACE}:
        return False
    return kernel == SPECIALISED or kgt.strategy_named(kernel).in_place


def declared_steps(
    kernel: Kernel, wanted: int | None, watched: bool, width: int | None = None
) -> int:
    """The steps per launch of a user's kernel: the most that it declares, one where it is watched.

    watched: by the checked mode, which looks at every step.  width: steps between two exchanges,
    which are some launches.  ValueError where it has no variant of `wanted` steps.
    """
    fitting = [n for n in kernel.steps if not (width or n) % n]
    usual = 1 if watched or not fitting else max(fitting)
    n_steps = usual if wanted is None else wanted
    if (watched and n_steps > 1) or n_steps not in kernel.steps:
        why = "; the checked mode looks at every step" if watched else ""
        raise ValueError(
            f"kernel {kernel.name!r} computes {', '.join(map(str, kernel.steps))} steps per "
            f"launch, got launches of {short(n_steps)}{why}; add a variant with steps_per_launch="
            f"{1 if watched else n_steps}, or leave one of the two out"
        )
    return n_steps


def check_launches(kernel: Kernel, plan: Plan) -> Plan:
    """The plan; ValueError where launches of several steps would have to do more than its own do.

    That is to copy cells outside, or to write what a step renames.
    """
    for sweep in plan.sweeps:
        for new, old in sweep.stage.follows.items():
            raise ValueError(
                f"kernel {kernel.name!r} would compute {sweep.count} steps per launch, but the "
                f"program renames {old!r} to {new!r} after each; add a variant with "
                f"steps_per_launch=1"
            )
        if sweep.mirrors:
            raise ValueError(
                f"kernel {kernel.name!r} would compute {sweep.count} steps per launch, but what "
                f"lies behind a mirror of {sweep.writes[0]!r} is filled once per launch; add a "
                f"variant with steps_per_launch=1, or take another boundary"
            )
    return plan


def check_boxes(
    kernel: KernelChoice, plan: Plan, executors: Mapping[int, Executor], comm: Communicator
) -> None:
    """ValueError on all ranks where a user's kernel cannot compute a box of the plan.

    Collective.
    """
    if not isinstance(kernel, Kernel):
        return
    problem = None
    try:
        for place in plan.places:
            for sweep in plan.sweeps:
                boxes = plan.launched(sweep, place)
                executors[place].configurations(plan.program, sweep, boxes)
    except ValueError as error:
        problem = str(error)
    raise_together(comm, problem)


def check_rest(kernel: KernelChoice, n_steps: int, per_launch: int) -> None:
    """ValueError where a user's kernel has no variant for the last launch of `n_steps` steps."""
    rest = n_steps % per_launch
    if isinstance(kernel, Kernel) and rest and rest not in kernel.steps:
        raise ValueError(
            f"kernel {kernel.name!r} computes {', '.join(map(str, kernel.steps))} steps per "
            f"launch, and {n_steps} steps end with a launch of {rest}; run a multiple of "
            f"{per_launch}, or add a variant with steps_per_launch={rest}"
        )


def overlap_for(overlap: Overlap, kernel: KernelChoice) -> Overlap:
    """Of `auto`: off for a kernel that does not compute boxes of every extent, as borders are."""
    picky = isinstance(kernel, Kernel) and not all(v.form.takes_any_box for v in kernel.variants)
    return "off" if overlap == "auto" and picky else overlap
