# SPDX-License-Identifier: MIT
"""Temporal blocking: how many time steps a launch computes, at all places or at each of them.

Halos are as many times the reach, and are exchanged once per launch, or where places have unlike
launches once per round of them.  The result has the same bits whatever the numbers are; all ranks
choose the same ones, from what all of them hold.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from controllers import kgt
from controllers.device.device import WITHOUT_OPENCL
from controllers.executor.executor import Executor
from controllers.kernel.configuration import Placed, launch_of
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.variant import Kernel
from controllers.placement.own_kernel import check_launches, declared_steps
from controllers.plan import Plan
from controllers.plan.rounds.paces import Steps
from controllers.program.program import Program
from controllers.program.steps import can_combine, without_folds
from controllers.program.sweep import Sweep
from controllers.settings.division import Division
from controllers.settings.launches import check_steps
from hitmap.argument import short
from hitmap.comm import Communicator
from hitmap.layout import Layout

THICK = 4       # a halo is at most one part in so many of what a place owns, on any axis


def plan_with_steps(
    make: Callable[[Steps], Plan],
    choice: KernelChoice,
    wanted: Steps | None = None,
    *,
    watched: bool = False,
    usual: Callable[[Plan], Steps] | None = None,
    fits: Callable[[Plan], bool] = lambda plan: True,
    width: int | None = None,
) -> Plan:
    """A plan of `wanted` steps per launch, or by default of as many as promise to be fast.

    make: gives the plan of a number of steps per launch.  watched: by the checked mode, which
    looks at every step.  usual: how many are fast, given the plan of single steps; by default
    what the kinds of the devices say.  fits: whether there is memory for a plan.  width: steps
    between two exchanges, of which those of a launch are a divisor where all places have as many.
    ValueError where `wanted` steps cannot be computed at once.
    """
    if isinstance(choice, Kernel):
        if not isinstance(wanted, (int, type(None))):
            raise ValueError(
                f"steps per launch of each place are for generated kernels, got {short(wanted)} "
                f"with kernel {choice.name!r}; give one number for all"
            )
        return _plan_of_own(make, choice, wanted, watched, usual, width)
    if wanted is not None:
        _check(wanted, choice, watched)
        plan = make(wanted)
        if plan.steps_per_launch > 1:
            for kind, sweep, placed in _boxes(plan):
                _kernel(plan, kind, sweep, placed)
        return plan
    single = make(1)
    if choice != SPECIALISED or watched or not _combines(single):
        return single
    n_usual = usual(single) if usual is not None else _usual_steps(single)
    for n_steps in _candidates(single, n_usual, width):
        plan = make(n_steps)
        if fits(plan) and suits(plan):
            return plan
    return single


def _plan_of_own(
    make: Callable[[Steps], Plan],
    kernel: Kernel,
    wanted: int | None,
    watched: bool,
    usual: Callable[[Plan], Steps] | None,
    width: int | None,
) -> Plan:
    """A plan of as many steps as the user's kernel declares, or as tuning has found for it."""
    n_steps = declared_steps(kernel, wanted, watched, width)
    plan = check_launches(kernel, make(n_steps))
    if wanted is None and not watched and usual is not None and len(kernel.steps) > 1:
        found = fewest(usual(plan))
        if found != n_steps and found in kernel.steps and not (width or found) % found:
            return check_launches(kernel, make(found))
    return plan


def _combines(single: Plan) -> bool:
    return can_combine(single.program, single.layout.domain)


def agreed_steps(plan: Plan, executors: Mapping[int, Executor], comm: Communicator) -> Steps:
    """How many steps are fast at each place of all ranks; one number where that is the same.

    `plan` is of single steps.  Collective: what was found by tuning is in the cache of each rank's
    host.
    """
    mine = {
        place: min(found)
        for place in plan.places
        for found in [[
            executors[place].usual_steps(plan.program, sweep, placed)
            for sweep in plan.sweeps
            for placed in plan.launched(sweep, place)
        ]]
        if found
    }  # fmt: skip
    known = {place: steps for rank in comm.allgather(mine) for place, steps in rank.items()}
    least = min(known.values(), default=1)
    return alike([known.get(place, least) for place in range(plan.layout.n_places)])


def fewest(steps: Steps) -> int:
    """What suits all places."""
    return steps if isinstance(steps, int) else min(steps)


def alike(steps: Sequence[int]) -> Steps:
    """One number where that is the same for all places."""
    return steps[0] if len({*steps}) == 1 else tuple(steps)


def _check(wanted: Steps, choice: KernelChoice, watched: bool) -> None:
    most = wanted if isinstance(wanted, int) else max(wanted)
    check_steps(most)
    if most > 1 and choice != SPECIALISED:
        raise ValueError(
            f"launches of {most} steps need kernels that are generated for the program; leave "
            f"out the kernel, or the steps per launch"
        )
    if most > 1 and watched:
        raise ValueError(
            f"the checked mode looks at every step, got launches of {most} steps; leave out one "
            f"of the two"
        )


def _usual_steps(single: Plan) -> Steps:
    stage = without_folds(single.sweeps[0].stage)
    by_kind = {
        kind: kgt.usual_steps(single.program, stage, kind)
        for kind in {where.kind for where in single.locations}
    }
    return alike([by_kind[where.kind] for where in single.locations])


def _candidates(single: Plan, steps: Steps, width: int | None) -> Iterator[Steps]:
    """Numbers of steps over 1, the best ones first, with halos that are not too thick."""
    if isinstance(steps, int) and width is not None:    # it says how thick halos are
        yield from (n for n in range(min(steps, width), 1, -1) if not width % n)
        return
    most = thickest(single.program, single.layout, single.periodic)
    each = [steps] * single.layout.n_places if isinstance(steps, int) else [*steps]
    if width is not None:
        each, most = [min(n, width) for n in each], width
    while max(each) > 1:
        if max(each) <= most:
            yield alike(each)
        each = [max(1, n // 2) for n in each]


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


def thinnest(plan: Plan) -> tuple[int, ...]:
    """Cells that a place has along each axis that is cut, at least, for halos not to be thick."""
    reach = (low + high for low, high in plan.program.reach)
    return tuple(max(1, THICK * along * plan.steps_per_launch) for along in reach)


def is_thick(layout: Layout, plan: Plan) -> bool:
    """Whether all places have as many cells along each axis that is cut."""
    axes = [*zip(thinnest(plan), layout.domain.extent)]
    return all(
        n >= least or n == whole
        for box in layout.owned if not box.empty
        for n, (least, whole) in zip(box.extent, axes)
    )  # fmt: skip


def least_cells(plan: Plan, division: Division) -> float:
    """Cells that a device keeps for its bands to be thick enough; blocks may need more."""
    domain = plan.layout.domain
    rows = thinnest(plan)[0] * division.places_per_controller
    return rows * domain.n_cells / max(1, domain.extent[0])


def suits(plan: Plan) -> bool:
    """Whether all devices have kernels for the launches of several steps of a plan."""
    return all(_suits(plan, *launched) for launched in _boxes(plan))


def _boxes(plan: Plan) -> Iterator[tuple[str, Sweep, Placed]]:
    """The kinds of devices with what is launched there, but for boxes that are alike."""
    seen: set[object] = set()
    for place, where in enumerate(plan.locations):
        for sweep in plan.sweeps_of([place]):
            for box, geometries in plan.launched(sweep, place):
                lie = [geometry.strided(box) for geometry in geometries.values()]
                how = ((a.first % 16, a.pitches) for a in lie)
                key = where.kind, sweep.count, box.extent, *how
                if key not in seen:
                    seen.add(key)
                    yield where.kind, sweep, (box, geometries)


def _kernel(plan: Plan, kind: str, sweep: Sweep, placed: Placed) -> None:
    """ValueError where a device of this kind has no kernel that computes the box."""
    if kind not in WITHOUT_OPENCL and sweep.count > 1:
        launch = launch_of(plan.program, sweep, placed)
        kgt.choose(plan.program, sweep.stage, kind, launch)


def _suits(plan: Plan, kind: str, sweep: Sweep, placed: Placed) -> bool:
    try:
        _kernel(plan, kind, sweep, placed)
    except ValueError:
        return False
    return True
