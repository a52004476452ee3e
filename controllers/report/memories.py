# SPDX-License-Identifier: MIT
"""The memories of a plan as a table: what is allocated, where, and how many bytes that are."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from controllers.plan import Plan, PlanMemory, StagingKey
from controllers.report.table import format_table

MAX_LINES = 30          # of the table
MAX_PLACES = 48         # characters for the numbers of alike places
HEAD = ("memory", "kind", "cells", "dtype", "in", "places", "holds for a", "number", "bytes each",
        "bytes")  # fmt: skip


def memory_table(plan: Plan) -> str:
    """All memories of `plan`, those that are alike in one line, and the sum of their bytes.

    Tiles are alike if they have one extent, staging memories of a field whatever their extents.
    """
    alike: dict[tuple[str, ...], list[PlanMemory]] = {}
    for memory in plan.memories:
        alike.setdefault(_kind(plan, memory), []).append(memory)
    together: dict[tuple[str, ...], list[list[str]]] = {}
    for (name, *kind), members in alike.items():    # buffers of one field that are alike
        row = _row(kind, members)
        together.setdefault(row, []).append([name, str(len(members)), str(_nbytes(members))])
    rows = [_joined(row, names) for row, names in together.items()]
    if len(rows) > MAX_LINES:
        left_out = ("...", f"{len(rows) - MAX_LINES} kinds more", *[""] * (len(HEAD) - 2))
        rows = [*rows[:MAX_LINES], left_out]
    number, nbytes = len(plan.memories), _nbytes(plan.memories)
    rows.append(("all", *[""] * (len(HEAD) - 4), str(number), "", str(nbytes)))
    table = format_table(HEAD, rows, left=HEAD[:7])
    return "\n".join(["memories", *(f"  {line}" for line in table.splitlines())])


def _kind(plan: Plan, memory: PlanMemory) -> tuple[str, ...]:
    """What memories have in common that share a line; first what they are called."""
    name, cells = str(memory.key), " x ".join(map(str, memory.geometry.box.extent))
    if isinstance(memory.key, StagingKey):
        fields = (transfer.field for transfer in plan.bundles[memory.key.bundle].transfers)
        name, cells = f"{memory.key.end}s of {' and '.join(fields)}", ""
    where = "device" if memory.on_device and not _is_host(plan, memory) else "host"
    where = "file" if memory.in_file else where
    return name, memory.kind, cells, memory.dtype, where, memory.lifetime


def _row(kind: Sequence[str], members: Sequence[PlanMemory]) -> tuple[str, ...]:
    """The columns of a line but the name and the sums: those of its buffers are equal."""
    what, cells, dtype, where, lifetime = kind
    extents = [memory.geometry.box.n_cells for memory in members]
    each = [memory.nbytes + memory.slack for memory in members]
    places = numbers(sorted({memory.home for memory in members}))
    return what, cells or _range(extents), dtype, where, places, lifetime, _range(each)


def _joined(row: tuple[str, ...], names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    *most, each = row
    number, nbytes = (sum(int(one[at]) for one in names) for at in (1, 2))
    return ", ".join(sorted(one[0] for one in names)), *most, str(number), each, str(nbytes)


def _is_host(plan: Plan, memory: PlanMemory) -> bool:
    return plan.locations[memory.home].shares_host


def _nbytes(memories: Iterable[PlanMemory]) -> int:
    return sum(memory.nbytes + memory.slack for memory in memories)


def _range(values: Sequence[int]) -> str:
    least, most = min(values), max(values)
    return str(least) if least == most else f"{least} to {most}"


def numbers(places: Sequence[int]) -> str:
    """Rising numbers as ranges, cut where there are many.

    >>> numbers([0, 1, 2, 5, 7, 8]), numbers([3])
    ('0-2, 5, 7-8', '3')
    """
    parts = []
    for _, run in groupby(enumerate(places), lambda pair: pair[1] - pair[0]):
        members = [place for _, place in run]
        parts.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    text = ", ".join(parts)
    if len(text) <= MAX_PLACES:
        return text
    return f"{text[: text.rindex(',', 0, MAX_PLACES - 12)]}, ... ({len(places)})"
