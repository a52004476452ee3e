# SPDX-License-Identifier: MIT
"""Versions of fields as text: who reads and writes them, which halos are stale, what turns."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from controllers.plan import Plan
from controllers.program.liveness import is_near
from controllers.program.sweep import Sweep, Version

MOST_OFFSETS = 9        # of a field that are listed one by one


def accesses(sweep: Sweep) -> str:
    """What a sweep reads, where around a cell, what it writes, and its declared reach per axis.

    >>> from controllers.language.weights import Stencil
    >>> from controllers.program.schedule import sweeps_of
    >>> mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
    >>> accesses(*sweeps_of(mean))
    'reads u at (-1), (1); writes u; reach -1..1'
    """
    offsets: dict[str, list[tuple[int, ...]]] = {}
    for read in sweep.stage.reads:
        offsets.setdefault(read.field, []).append(read.offset)
    listed = (f"{field} at {_where(sorted(around))}" for field, around in offsets.items())
    reach = " x ".join(f"{low}..{high}" for low, high in sweep.stage.offsets)
    reads, writes = ", ".join(listed) or "nothing", ", ".join(sweep.writes) or "nothing"
    said = "as declared, " if sweep.stage.elements else ""
    return f"{said}reads {reads}; writes {writes}; reach {reach}"


def _where(offsets: Sequence[tuple[int, ...]]) -> str:
    if not any(map(any, offsets)):
        return "its own cell"
    if len(offsets) <= MOST_OFFSETS:
        return ", ".join(f"({', '.join(map(str, offset))})" for offset in offsets)
    ends = (f"{min(along)}..{max(along)}" for along in zip(*offsets))
    return f"{len(offsets)} offsets within {' x '.join(ends)}"


def staleness(plan: Plan, version: Version) -> str:
    """Why a version is exchanged: who made its halo stale, and who reads that."""
    if version not in plan.exchanges:
        return f"no stage reads a neighbour of {version.field}"
    uses = [(sweep, use) for sweep, use in plan.liveness.uses(version) if is_near([(sweep, use)])]
    uses = [(sweep, use) for sweep, use in uses if not sweep.completes] or uses
    readers = []
    for sweep, use in uses:
        name = "" if use.version.field == version.field else f" as {use.version.field}"
        later = " in the next step" if use.version.number == 0 < version.number else ""
        readers.append(f"{sweep.name}{later}{name}")
    who = f"read by {', '.join(dict.fromkeys(readers))}"
    made = [sweep.name for sweep in plan.sweeps for u in sweep.updates if u.version == version]
    if made:
        return f"{made[0]} makes the halo stale, {who}"
    if plan.sent_after(version) >= 0:
        return f"each step gives it another name, {who}"
    return f"no stage writes it, so that its halo stays as it is filled; {who}"


def company(plan: Plan, version: Version) -> Iterator[str]:
    """With what a version goes to a neighbour, in one message; nothing where it goes alone."""
    others = {
        transfer.field: None
        for bundle in plan.bundles
        if any(transfer.version == version for transfer in bundle.transfers)
        for transfer in bundle.transfers
        if transfer.version != version
    }
    if others:
        yield f"in one message with {', '.join(others)} where these go to the same neighbour"


def pools(plan: Plan) -> Iterator[str]:
    """The fields that share buffers, a line for each: how many, whether they turn, renames."""
    program, live = plan.program, plan.liveness
    for pool, count in live.n_buffers.items():
        fields = [field for field, name in live.pools.items() if name == pool]
        temporary = any(field.name == pool for field in program.temporaries)
        turns = any(plan.newest(f, 1, 0) != plan.newest(f, 0, 0) for f in fields)
        what = f"{count} buffer{'s' * (count > 1)}"
        if turns:
            what += " that change roles from step to step"
        elif temporary:
            what += ", for values within a step"
        elif not any(field in program.written for field in fields):
            what += ", only read"
        elif count == 1:
            what += ", written in place"
        for new, old in program.renames.items():
            if new in fields:
                what += f"; {new} is renamed from {old}, without a copy"
        for sweep in (one for one in plan.sweeps if not one.completes):
            for new, old in sweep.stage.overwrites.items():
                what += f"; {sweep.name} writes {new} over {old}" * (new in fields and new != old)
        for new, old in live.follows.items():
            if new in fields:
                what += f"; {new} gets what {old} was as the last step of a launch began"
        made = {u.version for sweep in plan.sweeps for u in sweep.updates}
        carried = sum(live.carried(one, 0).n_cells for one in made if one.field in fields)
        if carried:
            what += f"; {carried} cells that no stage computes are copied along in each step"
        yield f"{', '.join(fields)}: {what}"
