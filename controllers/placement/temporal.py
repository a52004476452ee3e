# SPDX-License-Identifier: MIT
"""Temporal blocking: how many time steps a launch computes, the same at all places.

Halos are as many times the reach, and are exchanged once per launch.  The result has the same bits
whatever the number is; all ranks choose the same one, from what all of them hold.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from controllers import kgt
from controllers.device.device import WITHOUT_OPENCL
from controllers.executor.executor import Executor
from controllers.kernel.configuration import Placed, launch_of
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.variant import Kernel
from controllers.placement.own_kernel import check_mirrors, declared_steps
from controllers.plan import Plan
from controllers.program.program import Program
from controllers.program.steps import can_combine, without_folds
from controllers.settings.execution import check_steps
from hitmap.comm import Communicator
from hitmap.layout import Layout

THICK = 4       # a halo is at most one part in so many of what a place owns, on any axis


def plan_with_steps(
    make: Callable[[int], Plan],
    choice: KernelChoice,
    wanted: int | None = None,
    *,
    watched: bool = False,
    usual: Callable[[Plan], int] | None = None,
    fits: Callable[[Plan], bool] = lambda plan: True,
    width: int | None = None,
) -> Plan:
    """A plan of `wanted` steps per launch, or by default of as many as promise to be fast.

    make: gives the plan of a number of steps per launch.  watched: by the checked mode, which
    looks at every step.  usual: how many are fast, given the plan of single steps; by default
    what the kinds of the devices say.  fits: whether there is memory for a plan.  width: steps
    between two exchanges, of which those of a launch are a divisor.  ValueError where `wanted`
    steps cannot be computed at once.
    """
    if isinstance(choice, Kernel):
        return _plan_of_own(make, choice, wanted, watched, usual, width)
    if wanted is not None:
        _check(wanted, choice, watched)
        plan = make(wanted)
        if wanted > 1:
            for kind, placed in _boxes(plan):
                _kernel(plan, kind, placed)
        return plan
    single = make(1)
    if choice != SPECIALISED or watched or not _combines(single):
        return single
    n_usual = usual(single) if usual is not None else _usual_steps(single)
    for n_steps in _candidates(single, n_usual, width):
        plan = make(n_steps)
        if fits(plan) and all(_suits(plan, kind, placed) for kind, placed in _boxes(plan)):
            return plan
    return single


def _plan_of_own(
    make: Callable[[int], Plan],
    kernel: Kernel,
    wanted: int | None,
    watched: bool,
    usual: Callable[[Plan], int] | None,
    width: int | None,
) -> Plan:
    """A plan of as many steps as the user's kernel declares, or as tuning has found for it."""
    n_steps = declared_steps(kernel, wanted, watched, width)
    plan = check_mirrors(kernel, make(n_steps))
    if wanted is None and not watched and usual is not None and len(kernel.steps) > 1:
        found = usual(plan)
        if found != n_steps and found in kernel.steps and not (width or found) % found:
            return check_mirrors(kernel, make(found))
    return plan


def _combines(single: Plan) -> bool:
    return can_combine(single.program, single.layout.domain)


def agreed_steps(plan: Plan, executors: Mapping[int, Executor], comm: Communicator) -> int:
    """How many steps are fast on the devices of all ranks; `plan` is of single steps.

    Collective: what was found by tuning is in the cache of each rank's host.
    """
    mine = [
        executors[place].usual_steps(plan.program, sweep, placed)
        for place in plan.places
        for sweep in plan.sweeps
        for placed in plan.launched(sweep, place)
    ]
    everyone = [n_steps for rank in comm.allgather(sorted(set(mine))) for n_steps in rank]
    return min(everyone, default=1)


def _check(wanted: int, choice: KernelChoice, watched: bool) -> None:
    check_steps(wanted)
    if wanted > 1 and choice != SPECIALISED:
        raise ValueError(
            f"launches of {wanted} steps need kernels that are generated for the program; leave "
            f"out the kernel, or the steps per launch"
        )
    if wanted > 1 and watched:
        raise ValueError(
            f"the checked mode looks at every step, got launches of {wanted} steps; leave out one "
            f"of the two"
        )


def _usual_steps(single: Plan) -> int:
    stage = without_folds(single.sweeps[0].stage)
    kinds = {where.kind for where in single.locations}
    return min(kgt.usual_steps(single.program, stage, kind) for kind in kinds)


def _candidates(single: Plan, n_steps: int, width: int | None) -> Iterator[int]:
    """Numbers of steps over 1, the best one first, with halos that are not too thick."""
    most = thickest(single.program, single.layout, single.periodic)
    if width is not None:   # it says how thick halos are
        yield from (n for n in range(min(n_steps, width), 1, -1) if not width % n)
        return
    while n_steps > 1:
        if n_steps <= most:
            yield n_steps
        n_steps //= 2


def thickest(program: Program, layout: Layout, periodic: Sequence[bool]) -> int:
    """So many steps have halos of at most a quarter of what any place owns."""
    reach = [low + high for low, high in program.reach]
    limits = [
        n // (THICK * r)
        for owned in layout.owned
        if not owned.empty
        for n, r, whole, wraps in zip(owned.extent, reach, layout.domain.extent, periodic)
        if r and (wraps or n < whole)
    ]
    return min(limits, default=max(layout.domain.extent))


def _boxes(plan: Plan) -> Iterator[tuple[str, Placed]]:
    """The kinds of devices with the boxes launched there, but for boxes that are alike."""
    seen: set[object] = set()
    for place, where in enumerate(plan.locations):
        for sweep in plan.sweeps:
            for box, geometries in plan.launched(sweep, place):
                lie = [geometry.strided(box) for geometry in geometries.values()]
                key = where.kind, box.extent, *((a.first % 16, a.pitches) for a in lie)
                if key not in seen:
                    seen.add(key)
                    yield where.kind, (box, geometries)


def _kernel(plan: Plan, kind: str, placed: Placed) -> None:
    """ValueError where a device of this kind has no kernel that computes the box."""
    (sweep,) = plan.sweeps
    if kind not in WITHOUT_OPENCL:
        launch = launch_of(plan.program, sweep, placed)
        kgt.choose(plan.program, sweep.stage, kind, launch)


def _suits(plan: Plan, kind: str, placed: Placed) -> bool:
    try:
        _kernel(plan, kind, placed)
    except ValueError:
        return False
    return True
