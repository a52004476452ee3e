# SPDX-License-Identifier: MIT
"""What is explained of programs of several fields: accesses, exchanges, buffers, memories."""
from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from controllers import Plan, Stencil
from controllers.plan import Location
from controllers.program.expression import Read
from controllers.program.program import Field, Program
from controllers.program.stage import Stage
from controllers.report.explain import explain
from controllers.report.memories import MAX_LINES, memory_table
from hitmap import Layout, Shape

U, V = (lambda *offset: Read("u", offset)), (lambda *offset: Read("v", offset))
STAR = ((-1, 1), (-1, 1))
PUSH = Stage("push", {"v": V(0, 0) + (U(-1, 0) + U(0, 1)) * Read("k", (0, 0))}, STAR)
MOVE = Stage("move", {"u": U(0, 0) + V(0, 0) - Read("old", (0, -1))}, STAR)
FIELDS = tuple(Field(name, "float32") for name in ("u", "v", "k", "old"))
WAVE = Program("wave", FIELDS, (PUSH, MOVE), renames={"old": "u"})
NINE = Stencil.of("wide", [(-2, 2), (-2, 2)], [*range(1, 26)], 25).program("float32")


def plan_of(program: Program, n_places: int = 3, on_host: Sequence[bool] = (True,)) -> Plan:
    layout = Layout.bands(Shape.of_extent((30, 12)), n_places)
    homes = [Location(n, 0, on_host[n % len(on_host)]) for n in range(n_places)]
    return Plan(program, layout, (False, False), homes)


def test_stages_say_what_they_read_and_write_and_exchanges_why_they_happen() -> None:
    text = explain(plan_of(WAVE), [])
    for line in (
        "    reads v at its own cell, u at (-1, 0), (0, 1), k at its own cell; writes v; "
        "reach -1..1 x -1..1",
        "    reads u at its own cell, v at its own cell, old at (0, -1); writes u; "
        "reach -1..1 x -1..1",
        "  move makes the halo stale, read by push in the next step, move in the next step as old",
        "  no stage writes it, so that its halo stays as it is filled; read by move",
        "messages of field k: none, no stage reads a neighbour of k",
        "  a launch computes one step: the program has several stages",
        "  u, old: 3 buffers that change roles from step to step; old is renamed from u, without "
        "a copy; 80 cells that no stage computes are copied along in each step",
        "  k: 1 buffer, only read",
        "  v: 1 buffer, written in place",
    ):
        assert f"\n{line}\n" in text, text
    assert "reads u at 25 offsets within -2..2 x -2..2; writes u" in explain(plan_of(NINE), [])


def test_stages_and_exchanges_that_are_alike_are_said_once() -> None:
    relax = Stage("relax", {"u": (U(-1, 0) + U(1, 0) + V(0, 0)) / 3}, STAR)
    text = explain(plan_of(Program("p", FIELDS[:2], (relax,) * 9)), [])
    assert text.count("stage relax") == text.count("\n  stage relax, 9 times in a row\n") == 1
    assert "\nmessages of field u, 8 times per step: " in text
    assert "\nmessages of field u per step: " in text and text.count("relax makes the halo") == 2


def test_what_is_read_in_the_same_step_is_told_apart_from_later() -> None:
    after = Stage("after", {"v": U(-1, 0) - U(0, 0)}, ((-1, 0), (0, 0)))
    before = Stage("before", {"u": U(0, 0) + V(0, 0)}, ((-1, 0), (0, 0)))
    text = explain(plan_of(Program("p", FIELDS[:2], (before, after))), [])
    assert "  before makes the halo stale, read by after\n" in text
    assert "  v: 1 buffer, written in place\n" in text


@pytest.mark.parametrize("on_host", [(True,), (False,), (True, False)])
def test_the_table_of_memories_holds_all_that_the_plan_allocates(on_host: Sequence[bool]) -> None:
    plan = plan_of(WAVE, 3, on_host)
    head, *rows, last = memory_table(plan).splitlines()[1:]
    counts = [re.split(r"  +", row.strip())[-3:] for row in rows]
    total = sum(memory.nbytes + memory.slack for memory in plan.memories)
    assert last.split() == ["all", str(len(plan.memories)), str(total)]
    assert sum(int(number) for number, _, _ in counts) == len(plan.memories)
    assert sum(int(nbytes) for _, _, nbytes in counts) == total
    assert total == sum(plan.memory(place).nbytes for place in range(3))
    assert head.split()[:3] == ["memory", "kind", "cells"]
    names = {re.split(r"  +", row.strip())[0] for row in rows}
    assert ({"k.0, v.0", "u.0, u.1, u.2"} <= names) == (True in on_host)
    assert ("k.0, u.0, u.1, u.2, v.0" in names) == (False in on_host)   # which lie alike there
    assert any("borders of u" in name for name in names) == (False in on_host)


def test_borders_and_halos_of_several_sizes_share_a_line() -> None:
    layout = Layout.blocks(Shape.of_extent((31, 14)), 6)
    homes = [Location(n, 0, shares_host=False) for n in range(6)]
    text = memory_table(Plan(NINE, layout, (False, False), homes))
    (line,) = (line for line in text.splitlines() if "staging" in line and " device " in line)
    assert re.split(r"  +", line.strip()) == [
        "borders of u, halos of u", "staging", "4 to 22", "float32", "device", "0-5", "step", "44",
        "32 to 96", "2688",
    ]  # fmt: skip


def test_of_very_many_places_a_page_of_memories_is_shown() -> None:
    domain = Shape.of_extent((200_000, 5))
    uneven = Layout.weighted(domain, [*range(1, 301)])
    plan = Plan(WAVE, uneven, (False, False), [Location(n) for n in range(300)])
    lines = memory_table(plan).splitlines()
    assert len(lines) == MAX_LINES + 4 and "kinds more" in lines[-2]
    assert lines[-1].split()[:2] == ["all", str(len(plan.memories))]
    assert max(map(len, lines)) < 140


def test_the_plan_of_one_step_on_three_places_fits_a_page() -> None:
    assert len(str(plan_of(WAVE)).splitlines()) < 40
