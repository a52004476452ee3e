# SPDX-License-Identifier: MIT
"""Whether a plan fits in the memory of its devices: decided by all ranks, before any allocates."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.kgt.text.given import tables_nbytes
from controllers.memory.ledger import MemoryCapError, sizes
from controllers.placement.turns import fit_in_turns
from controllers.plan import Operation, PartedChunks, Plan
from controllers.plan.fill import fills_of
from controllers.plan.folding import folds_at_times
from controllers.program.dtypes import given_dtype
from hitmap.comm import Communicator

_NARROW = {"float64": "float32", "int64": "int32"}


def check_capacity(
    plan: Plan, executors: Mapping[int, Executor], comm: Communicator, old: Engine | None = None
) -> bool:
    """`MemoryCapError` on all ranks where a device of any of them has not enough memory left.

    plan: of this rank.  What is in use already stays in use, but for the tiles of `old`, which
    holds the fields so far.  Returns whether all fits beside it, too.  Collective.
    """
    told = comm.allgather((_problems(plan, executors, old), not _problems(plan, executors)))
    everyone = [problem for problems, _ in told for problem in problems]
    if everyone:
        more = len(everyone) - 1
        also = f", and {more} more {'devices lack' if more > 1 else 'device lacks'} memory"
        found = {_NARROW.get(dtype, "") for dtype in plan.program.dtypes.values()} - {""}
        narrower = f", {' and '.join(sorted(found))}," if found else ""
        raise MemoryCapError(
            f"{everyone[0]}{also if more else ''}; use more devices{narrower} or a larger "
            f"--memory-cap"
        )
    return all(beside for _, beside in told)


def fits(
    plan: Plan, executors: Mapping[int, Executor], largest_bytes: int, comm: Communicator,
    old: Engine | None = None, on_same_tiles: Sequence[Plan] = (), part: float = 1.0,
) -> bool:  # fmt: skip
    """Whether it does, on all ranks, with no tile of over `largest_bytes`.  Collective.

    on_same_tiles: plans whose engines there are beside its own.  part: of the caps.
    """
    tiles = (memory for memory in plan.memories if memory.kind == "tile")
    small = all(memory.nbytes <= largest_bytes for memory in tiles)
    return all(comm.allgather(small and not _problems(plan, executors, old, on_same_tiles, part)))


def fit_on_tiles(
    plans: Sequence[Plan], executors: Mapping[int, Executor], comm: Communicator
) -> bool:
    """Whether engines of some plans fit beside what is there, on tiles of that.  Collective."""
    fit = True
    for executor in dict.fromkeys(executors[place] for place in plans[0].places):
        places = [place for place in plans[0].places if executors[place] is executor]
        needed = sum(nbytes_beside_tiles(one, executor, places) for one in plans)
        fit = fit and executor.ledger.on_device + needed <= executor.ledger.cap_bytes
    return all(comm.allgather(fit))


def _problems(
    plan: Plan, executors: Mapping[int, Executor], old: Engine | None = None,
    on_same_tiles: Sequence[Plan] = (), part: float = 1.0,
) -> list[str]:  # fmt: skip
    """What this rank's devices have not enough memory for; fields of `old` may move in turns."""
    problems = []
    for executor in dict.fromkeys(executors[place] for place in plan.places):
        places = [place for place in plan.places if executors[place] is executor]
        needed = nbytes_needed(plan, executor, places)
        needed += sum(nbytes_beside_tiles(one, executor, places) for one in on_same_tiles)
        beside = executor.ledger.on_device + needed <= part * executor.ledger.cap_bytes
        if not beside and (old is None or not fit_in_turns(plan, places, needed, old, executor)):
            problems.append(_problem(plan, executor, places, needed))
    return problems


def nbytes_needed(plan: Plan, executor: Executor, places: Sequence[int]) -> int:
    """What the engine allocates on the device of `executor` for `places`, which live there."""
    here = frozenset(places)
    tiles = (one for one in plan.memories if one.kind == "tile" and one.home in here)
    nbytes = sum(one.nbytes + one.slack for one in tiles if one.on_device)
    return nbytes + nbytes_beside_tiles(plan, executor, places)


def nbytes_beside_tiles(plan: Plan, executor: Executor, places: Sequence[int]) -> int:
    """The same of an engine on tiles that are there."""
    if isinstance(plan, PartedChunks):      # each part with either image of what changes
        each = (nbytes_beside_tiles(one, executor, places) for one in plan.passes)
        return plan.n_phases * sum(each)
    tables = [executor.constants_nbytes(plan.program, sweep) for sweep in plan.sweeps]
    here = frozenset(places)
    memories = (
        one for one in plan.memories if one.kind != "tile" and one.home in here and one.on_device
    )
    launches = sum(     # those that fold at times are two commands
        (tables[one.sweep] + _given_nbytes(plan, executor, one)) * (1 + folds_at_times(plan, one))
        for one in plan.computed_operations
        if one.sweep is not None and one.place in here
    )
    folds = sum(folds_nbytes(plan, executor, place) for place in places)
    every = {one.number: one for one in chain(plan.computed_operations, *plan.opening)}
    fills = sum(
        executor.fill_nbytes([*fills_of(plan, one).values()])
        for one in every.values()
        if one.verb == "fill" and one.place in here
    )
    return sum(one.nbytes + one.slack for one in memories) + launches + folds + fills


def folds_nbytes(plan: Plan, executor: Executor, place: int) -> int:
    """Bytes that the folds of the launches at a place take on its device."""
    folding = ((sweep, [*plan.folded(sweep, place)]) for sweep in plan.sweeps if sweep.folds)
    return sum(
        executor.folding_nbytes(plan.program, plan.shortened(sweep, 1), boxes)
        for sweep, boxes in folding if boxes
    )


def _given_nbytes(plan: Plan, executor: Executor, operation: Operation) -> int:
    """Bytes of the tables of coordinates and indices that a launch takes."""
    if executor.device.kind == "reference":
        return 0    # NumPy makes them when it computes
    assert operation.sweep is not None, "a launch"
    stage = plan.sweeps[operation.sweep].stage
    itemsize = np.dtype(given_dtype(stage, plan.program.dtypes)).itemsize
    return tables_nbytes(stage, operation.launched.extent, itemsize)


def _problem(plan: Plan, executor: Executor, places: Sequence[int], needed: int) -> str:
    ledger = executor.ledger
    need, used, cap = sizes(needed, ledger.on_device, ledger.cap_bytes)
    fields = " and ".join(f'field "{field.name}"' for field in plan.program.fields)
    verb = "needs" if len(plan.program.fields) == 1 else "need"
    where = f"place {places[0]}" if len(places) == 1 else f"places {', '.join(map(str, places))}"
    beside = f", where {used} are in use" if ledger.on_device else ""
    return f'{fields} {verb} {need} on "{ledger.device}" ({where}){beside}, the cap is {cap}'
