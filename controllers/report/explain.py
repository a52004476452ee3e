# SPDX-License-Identifier: MIT
"""What a program, a layout and a plan amount to, as text: before a run, or without any device.

All of it follows from a `Plan`, its kernels' configurations and the sizes of its places.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from controllers.kernel.configuration import KernelUse
from controllers.kgt.text.comment import cost
from controllers.plan import ChunkPlan, PartedChunks, Plan
from controllers.plan.chunks.needed import cells_needed
from controllers.plan.folding import needed
from controllers.plan.size import PlaceSize, place_sizes
from controllers.plan.text import steps
from controllers.program.formula import expression_text, formula
from controllers.program.program import Program
from controllers.program.scalars import Folded, Parameter
from controllers.program.steps import why_single
from controllers.program.sweep import Sweep, Version
from controllers.report.chunks import chunks_text
from controllers.report.locations import beyond, divisions, points
from controllers.report.memories import memory_table, numbers
from controllers.report.table import format_table
from controllers.report.versions import accesses, company, pools, staleness
from hitmap.shape import Shape

MAX_LINES = 40          # of a list
MAX_BUNDLES = 120       # of a plan that is printed whole

_T = TypeVar("_T")


def explain(
    plan: Plan,
    configurations: Sequence[KernelUse],
    sizes: Sequence[PlaceSize] | None = None,
    why: str = "",
) -> str:
    """Program, layout, messages, plan, kernels, memories, and bytes per place.

    why: the places are where they are, if there is something to say of it.
    Long lists are cut; of a plan with very many messages the operations of one rank are shown.
    """
    apart = plan.passes if isinstance(plan, PartedChunks) else [plan]
    sections: list[str] = [
        _program(plan),
        _layout(plan) + f"\n{why}" * bool(why),
        *map(_messages, apart),
        *([chunks_text(plan)] if isinstance(plan, ChunkPlan) else []),
        *map(_plan, apart),
        _kernels(configurations),
        memory_table(plan),
        size_table(plan, place_sizes(plan) if sizes is None else sizes),
    ]
    return "\n\n".join(filter(None, sections))


def _repeats(program: Program) -> Iterator[str]:
    """What is done again and again within a step; the plan shows each of it once."""
    for one in program.repeats:
        stages = program.stages[one.first : one.end]
        names = ", ".join(dict.fromkeys(stage.name for stage in stages))
        asked = f", until its results say so, asked every {one.check_every}" if one.until else ""
        yield f"repeats {names} up to {one.at_most} times within a step{asked}"


def _program(plan: Plan) -> str:
    program = plan.program
    names = ", ".join(field.name for field in program.fields)
    fields = f"field{'s' if len(program.fields) > 1 else ''} {names}"
    math = "" if program.math == "strict" else f", math {program.math}"
    lines = [f"program {program.name}: {program.dtype_text}{math}, {_axes(program)}, {fields}"]
    lines += [f"  {text}" for text in points(plan)]
    groups = ([plan.sweeps[number] for number in numbers] for numbers in plan.liveness.groups)
    for (stage, *_), alike in groupby(groups, key=lambda group: [one.whole for one in group]):
        (sweep, *rest), *more = alike
        domain = plan.layout_of(stage.home).domain
        updated = plan.shortened(sweep, 1).cells & domain
        count = 1 + len(more)
        lines.append(f"  stage {sweep.name}" + f", {count} times in a row" * (count > 1))
        lines += [f"    {line}" for line in formula(stage).splitlines()]
        lines.append(f"    {cost(program, stage)}")
        lines.append(f"    {accesses(sweep)}")
        lines.append(f"    computes {_cells(sweep, updated, domain, rest)}")
    lines += [f"  {text}" for text in (*_repeats(program), *program.choices, *divisions(plan))]
    lines += [f"  scalar {text}" for text in _scalars(program)]
    for axis, ((low, high), wraps) in enumerate(zip(program.reach, plan.periodic)):
        boundary = _boundary(program, axis, wraps)
        lines.append(f"  axis {axis}: reach {low} below and {high} above, {boundary}")
    lines += [f"  {line}" for line in pools(plan)]
    reason = why_single(program, domain)
    if reason:
        lines.append(f"  a launch computes one step: {reason}")
    return "\n".join(lines)


def _cells(sweep: Sweep, updated: Shape, domain: Shape, rest: Sequence[Sweep]) -> str:
    """Those that a sweep computes, of a domain, and those that `rest` computes of its versions."""
    if sweep.is_temporary:
        rim = " x ".join(f"{low}..{high}" for low, high in sweep.stage.rim)
        return f"what others read of it, {rim} around the cells of each place"
    if rest:
        return f"{updated}, and by launches more {beyond(rest)}"
    if updated == domain:
        return "all cells"
    cells = f"{updated.n_cells} of {domain.n_cells} cells"
    return f"{updated}, {cells}; the others keep their values"


def _boundary(program: Program, axis: int, wraps: bool) -> str:
    """What lies beyond the ends of an axis; field by field where they differ."""
    if wraps:
        return "periodic boundary"
    texts: dict[str, list[str]] = {}
    for field in program.fields:
        low, high = field.boundary.side(axis)
        text = str(low) if low == high else f"{low} below and {high} above"
        texts.setdefault("fixed" if text == "keep" else text, []).append(field.name)
    if len(texts) == 1:
        return f"{next(iter(texts))} boundary"
    return "; ".join(f"{', '.join(names)}: {text} boundary" for text, names in texts.items())


def _scalars(program: Program) -> Iterator[str]:
    """What each scalar is, and how often it is computed."""
    rules = program.rules
    changing = rules.changing(rules)
    for name, rule in rules.items():
        if isinstance(rule, Parameter):
            usual = "" if rule.default is None else f", {rule.default:g} by default"
            yield f"{name}: a parameter{usual}"
        elif isinstance(rule, Folded):
            when = "in each step" if name in needed(program) else "when looked at"
            yield f"{name}: a fold, {when}"
        else:
            when = "in each step" if name in changing else "once per run"
            yield f"{name} = {expression_text(rule)}, {when}"


def _axes(program: Program) -> str:
    return "1 axis" if program.n_axes == 1 else f"{program.n_axes} axes"


def _layout(plan: Plan) -> str:
    """Who owns what; places that own boxes of one extent on one kind of device are alike."""
    layout = plan.layout
    extent = " x ".join(map(str, layout.domain.extent))
    rows = []
    for place, (where, owned) in enumerate(zip(plan.locations, layout.owned)):
        rows.append(
            (
                str(place),
                str(where.rank),
                str(where.controller),
                where.device or ("CPU" if where.shares_host else "GPU"),
                "host" if where.shares_host else "device",
                str(owned),
                str(owned.n_cells),
                f"{owned.n_cells / layout.domain.n_cells:.1%}",
            )
        )
    head = ("place", "rank", "controller", "device", "memory", "owns", "cells", "share")
    table = format_table(head, _cut(rows, _row_left_out), left=("device", "memory", "owns"))
    title = f"layout: {extent} cells over {_counted(layout.n_places, 'place')}"
    return "\n".join([title, *_indented(table)])


def _row_left_out(count: int) -> tuple[str, ...]:
    return ("...", "", "", f"{count} more", "", "", "", "")


def _messages(plan: Plan) -> str:
    """What is sent of each field, when and why; versions that are exchanged alike are one."""
    found = Counter((plan.begun_as(v).field, _exchanged(plan, v)) for v in plan.exchanges)
    lines = []
    for (field, (when, *listed)), count in found.items():
        times = f", {count} times" if count > 1 else ""
        lines += [f"messages of field {field}{times} {when}", *listed]
    exchanged = {plan.begun_as(version).field for version in plan.exchanges}
    exchanged |= {field.name for field in plan.program.temporaries}     # of which nothing is sent
    for field in () if isinstance(plan, ChunkPlan) else plan.patterns:
        if field not in exchanged:
            lines.append(f"messages of field {field}: none, {staleness(plan, Version(field, 1))}")
    return "\n".join(lines)


def _exchanged(plan: Plan, version: Version) -> tuple[str, ...]:
    """When and what is sent of a version, but for the field, and why; then the messages."""
    pattern, needed = plan.exchanges[version], cells_needed(plan, version)
    excess = pattern.n_cells - needed
    more = f", {excess / needed:.1%}" if excess and needed else ""
    when = f"per {plan.round_name}" if plan.sent_after(version) >= 0 else "once it is set"
    listed = _cut([str(m) for m in pattern.messages], lambda n: f"... {n} more")
    return (
        f"{when}: {_counted(pattern.n_cells, 'cell')} in "
        f"{_counted(len(pattern.messages), 'message')}, {excess} more than the least possible"
        f"{more}",
        f"  {staleness(plan, version)}",
        *(f"  {line}" for line in company(plan, version)),
        *(f"  {line}" for line in listed),
    )


def _plan(plan: Plan) -> str:
    if len(plan.bundles) <= MAX_BUNDLES:
        return str(plan)
    rank = _busiest_rank(plan)
    title = f"plan of {plan.program.name}: too long to be printed whole; rank {rank}, as one of all"
    part = plan.of_rank(rank)
    return "\n".join([title, *steps(part, part.operations)])


def _kernels(configurations: Sequence[KernelUse]) -> str:
    lines = ["kernels"]
    for configuration in dict.fromkeys(configurations):
        built = configuration
        options = "chosen on the device" if built.options is None else " ".join(built.options)
        lines.append(
            f"  {built.device}: stage {built.stage} by kernel {built.kernel} ({built.origin}), "
            f"build options: {options or 'none'}"
        )
        for launch in built.launches:
            cells = " x ".join(map(str, launch.extent))
            sizes = (
                f": {' x '.join(map(str, launch.global_size))} work-items in groups of "
                f"{' x '.join(map(str, launch.local_size))}"
                if launch.global_size
                else ""
            )
            lines.append(f"    {cells} cells{sizes}")
    return "\n".join(lines)


def size_table(plan: Plan, sizes: Sequence[PlaceSize]) -> str:
    """Per place, cells, what it moves in a step, and bytes; places with the same figures share
    a line."""
    folds = any(size.folds for size in sizes)
    head = ("places", "cells", "halo", "border", "inner", "sends", "bytes out", "receives",
            "bytes in", "copies", "tiles", "staging", *["folds"] * folds, "memory")  # fmt: skip
    alike: dict[tuple[int, ...], list[int]] = {}
    for size in sizes:
        alike.setdefault(_figures(size, folds), []).append(size.place)
    rows = _cut(
        [(numbers(places), *map(str, figures)) for figures, places in alike.items()],
        lambda n: (f"... {n} kinds more", *[""] * (len(head) - 1)),
    )
    totals = [sum(column) for column in zip(*(_figures(size, folds) for size in sizes))]
    rows.append(("all", *map(str, totals)))
    title = f"per place and {plan.round_name}: cells, messages and bytes; bytes of memory"
    nbytes = [size.nbytes for size in sizes]
    least, most = min(nbytes), max(nbytes)
    last = f"  {f'{least} to {most}' if least < most else most} bytes of memory per place"
    table = format_table(head, rows, left=("places",))
    return "\n".join([title, *_indented(table), last])


def _figures(size: PlaceSize, folds: bool) -> tuple[int, ...]:
    """The columns of a place; with `folds` there is one of what it folds into."""
    memory = size.memory
    staging = memory.device_staging + memory.host_staging
    return (
        size.owned, size.halo, size.border, size.inner, size.sends, size.bytes_sent,
        size.receives, size.bytes_received, size.copies, memory.tiles, staging,
        *([size.folds] if folds else ()), size.nbytes,
    )  # fmt: skip


def _busiest_rank(plan: Plan) -> int:
    """The rank of the place with the most messages."""
    counts = [0] * plan.layout.n_places
    for bundle in plan.bundles:
        counts[bundle.source] += 1
        counts[bundle.target] += 1
    return plan.locations[counts.index(max(counts))].rank


def _cut(items: Sequence[_T], left_out: Callable[[int], _T]) -> list[_T]:
    """`items`, of many the first and the last ones, and what says how many are left out."""
    if len(items) <= MAX_LINES:
        return [*items]
    n_last = MAX_LINES // 4
    n_first = MAX_LINES - n_last
    return [*items[:n_first], left_out(len(items) - n_first - n_last), *items[-n_last:]]


def _indented(text: str) -> Iterable[str]:
    return (f"  {line}" for line in text.splitlines())


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
