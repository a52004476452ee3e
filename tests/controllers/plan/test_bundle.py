# SPDX-License-Identifier: MIT
"""What goes to a neighbour in one message: all that one sweep is the first to read, and no more."""
from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from plan_simulation import Simulation
from random_programs import random_program
from sample import sample

from controllers.plan import Bundle, Location, Plan, StagingKey
from controllers.plan.overlap import LATE_NBYTES
from controllers.program.expression import Expression, Read
from controllers.program.program import Field, Program
from controllers.program.stage import Stage
from controllers.report.explain import explain
from hitmap import Layout, Shape

FIXED = (False, False)
RANKS = [Location(0), Location(1)]
DEVICES = [Location(0, shares_host=False), Location(1, shares_host=False)]
N_PROGRAMS = 100


def at(field: str, row: int = 0) -> Read:
    return Read(field, (row, 0))


def stage(name: str, **updates: Expression) -> Stage:
    return Stage(name, updates, ((-1, 1), (0, 0)))


# a and b live within a step; p is read later in the step, u and v in the next one, k never changes
PREDICT = stage("predict", a=at("u", -1) + at("k", 1) * at("u", 1), b=at("v", -1) + at("v", 1))
PRESS = stage("press", p=at("p") + at("a", 1) - at("a", -1) + at("b", 1) - at("b", -1))
CORRECT = stage("correct", u=at("a") + at("p", 1) - at("p", -1), v=at("b") - at("p", -1))
PROJECTION = "projection", (PREDICT, PRESS, CORRECT)


STEP_OF_PLACE_0 = """\
  place 0
      0 launch   predict: a.0@0 [14:15, 0:20], b.0@0 [14:15, 0:20] from u.0@0 [13:16, 0:20], \
k.0@0 [15:16, 0:20], v.0@0 [13:16, 0:20] after 8', 30'
      2 launch   predict: a.0@0 [1:14, 0:20], b.0@0 [1:14, 0:20] from u.0@0 [0:15, 0:20], k.0@0 \
[2:15, 0:20], v.0@0 [0:15, 0:20]
      4 receive  halo staging [0:20] [20:40] from place 1                after 10'
      8 pack     a.0@0 [14:15, 0:20], b.0@0 [14:15, 0:20] -> border staging [0:20] [20:40] after \
9', 0
      9 send     border staging [0:20] [20:40] to place 1                after 8
     10 unpack   halo staging [0:20] [20:40] -> a.0@0 [15:16, 0:20], b.0@0 [15:16, 0:20] after \
12', 4
     12 launch   press: p.0@0 [14:15, 0:20] from p.0@0 [14:15, 0:20], a.0@0 [13:16, 0:20], b.0@0 \
[13:16, 0:20] after 19', 10
     14 launch   press: p.0@0 [1:14, 0:20] from p.0@0 [1:14, 0:20], a.0@0 [0:15, 0:20], b.0@0 \
[0:15, 0:20]
     16 receive  p.0@0 [15:16, 0:20] from place 1                        after 20'
     19 send     p.0@0 [14:15, 0:20] to place 1                          after 12
     20 launch   correct: u.0@0 [14:15, 0:20], v.0@0 [14:15, 0:20] from a.0@0 [14:15, 0:20], \
p.0@0 [13:16, 0:20], b.0@0 [14:15, 0:20] after 28', 16
     22 launch   correct: u.0@0 [1:14, 0:20], v.0@0 [1:14, 0:20] from a.0@0 [1:14, 0:20], p.0@0 \
[0:15, 0:20], b.0@0 [1:14, 0:20]
     24 receive  halo staging [0:20] [20:40] from place 1                after 30'
     28 pack     u.0@0 [14:15, 0:20], v.0@0 [14:15, 0:20] -> border staging [0:20] [20:40] after \
29', 20
     29 send     border staging [0:20] [20:40] to place 1                after 28
     30 unpack   halo staging [0:20] [20:40] -> u.0@0 [15:16, 0:20], v.0@0 [15:16, 0:20] after \
0, 24"""


def program(name: str, stages: tuple[Stage, ...], **dtypes: str) -> Program:
    names = {field: None for one in stages for field in (*one.fields_read, *one.updates)}
    fields = tuple(Field(field, dtypes.get(field, "float32")) for field in names)
    return Program(name, fields, stages)


def plan_of(what: Program, where: list[Location] = RANKS, n_columns: int = 20) -> Plan:
    layout = Layout.bands(Shape.of_extent((30, n_columns)), len(where))
    return Plan(what, layout, FIXED, where, overlap="on")


def fields(bundle: Bundle) -> str:
    return " ".join(transfer.field for transfer in bundle.transfers)


def test_stages_of_five_fields_exchange_what_the_next_ones_need_in_one_message_each() -> None:
    plan = plan_of(program(*PROJECTION))
    assert "\n".join(str(plan).splitlines()[4:21]) == STEP_OF_PLACE_0
    leaving = [bundle for bundle in plan.bundles if bundle.source == 0]
    assert {fields(bundle): bundle.after for bundle in leaving} == {"a b": 0, "p": 1, "u v": 2}
    assert [fields(bundle) for bundle in plan.bundles if bundle.after < 0] == ["k"]
    assert "  in one message with b where these go to the same neighbour\n" in explain(plan, [])


def test_on_devices_a_message_of_several_fields_is_one_download_and_one_upload() -> None:
    plan = plan_of(program(*PROJECTION), DEVICES)
    verbs = Counter(o.verb for o in plan.operations if o.phase == 0 and o.place == 0)
    assert verbs == {
        "launch": 6, "pack": 2, "download": 3, "send": 3, "receive": 3, "upload": 3, "unpack": 2,
    }  # fmt: skip


def test_places_between_which_cells_are_copied_have_no_bundles() -> None:
    plan = plan_of(program(*PROJECTION), [Location(0, 0), Location(0, 1)])
    assert {len(bundle.transfers) for bundle in plan.bundles} == {1}
    copies = [o for o in plan.operations if o.verb == "copy" and o.phase == 0]
    assert len(copies) == 10 and not any(o.verb in ("pack", "unpack") for o in plan.operations)


MAKE = stage("make", a=at("u") * 2)
ALSO = stage("also", b=at("a") + 1)
USE = stage("use", u=at("a", 1) + at("b", -1) + at("b", 1))


def test_what_is_made_earlier_waits_for_what_goes_with_it() -> None:
    plan = plan_of(program("wait", (MAKE, ALSO, USE)))
    assert [fields(bundle) for bundle in plan.bundles if bundle.source == 1] == ["a b"]
    mine = [o for o in plan.operations if o.place == 1]
    packs = [o.number for o in mine if o.verb == "pack"]
    (send,) = [o.number for o in mine if o.verb == "send"]
    launches = {o.number: o.sweep for o in mine if o.verb == "launch"}
    # each is packed beside the kernel of the inner cells of its own stage
    assert [launches[max(n for n in launches if n < pack)] for pack in packs] == [0, 1]
    assert max(packs) < send < min(n for n, sweep in launches.items() if sweep == 2)


def test_much_that_is_made_earlier_leaves_at_once() -> None:
    row = LATE_NBYTES // 4
    stages = MAKE, ALSO, USE
    few, many = (plan_of(program("size", stages), n_columns=n) for n in (row, row + 1))
    assert [fields(bundle) for bundle in few.bundles if bundle.source == 1] == ["a b"]
    assert [fields(bundle) for bundle in many.bundles if bundle.source == 1] == ["a", "b"]
    assert [bundle.after for bundle in many.bundles if bundle.source == 1] == [0, 1]


def test_unlike_dtypes_are_packed_by_bytes_without_gaps() -> None:
    plan = plan_of(program(*PROJECTION, b="float64"), n_columns=5)
    both = next(bundle for bundle in plan.bundles if {"a", "b"} == {*fields(bundle).split()})
    assert fields(both) == "b a" and both.dtype == "uint8"
    assert [str(part) for part in both.parts.values()] == ["[0:40]", "[40:60]"]
    (memory,) = {m.nbytes for m in plan.memories
                 if isinstance(m.key, StagingKey) and m.key.bundle == both.number}  # fmt: skip
    assert memory == both.nbytes == 60


def test_a_step_is_opened_by_the_part_of_a_message_that_lives_on() -> None:
    # u is read around a cell by press, too: there it travels with a, which is of the step alone
    make = stage("make", a=at("u", 1), u=at("u") + 1)
    use = stage("use", p=at("a", 1) + at("u", 1) - at("p"))
    what = program("part", (make, use), u="float32", a="float64")
    plan = plan_of(what, DEVICES)
    (bundle,) = plan.bundles
    assert fields(bundle) == "a u"
    opened = [o for o in plan.opening[0] if o.verb in ("send", "receive")]
    assert [[t.field for t in o.transfers] for o in opened] == [["u"], ["u"]]
    assert [[str(c) for a in (*o.reads, *o.writes) for c in a.cells] for o in opened] == [
        ["[0:80]"], ["[0:80]"]
    ]  # fmt: skip
    rng = np.random.default_rng(5)
    arrays = {name: rng.random((30, 20)).astype(dtype) for name, dtype in what.dtypes.items()}
    one = plan_of(what, [Location()])
    results = [Simulation(p, arrays, random.Random(3)).run(3) for p in (plan, one)]
    assert all(results[0][name].tobytes() == results[1][name].tobytes() for name in arrays)


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 30))
def test_a_neighbour_gets_one_message_for_each_sweep_that_reads_what_is_sent(number: int) -> None:
    case, rng = random_program(number), random.Random(number)
    for n_places in (2, 3, 5):
        domain = Shape.of_extent(case.extent)
        layout = rng.choice([Layout.bands, Layout.blocks])(domain, n_places)
        where = [Location(rank, shares_host=rng.random() < 0.5) for rank in range(n_places)]
        plan = Plan(case.program, layout, case.periodic, where)
        live = plan.liveness
        neighbours: Counter[object] = Counter()
        for bundle in plan.bundles:
            first = {t.version.number and live.first_near(t.version) for t in bundle.transfers}
            if bundle.source != bundle.target:  # copies to itself go together wherever they lie
                (ends,) = {(t.message.source, t.message.target, t.message.shift)
                           for t in bundle.transfers}  # fmt: skip
                neighbours[ends, bundle.after < 0, min(first), max(first)] += 1
            # after the last of them is made, before the first one is read
            assert bundle.after == max(live.maker(t.version) for t in bundle.transfers)
            assert bundle.after < min(first) or bundle.after < 0
        assert {*neighbours.values()} <= {1}
        together = [t for bundle in plan.bundles for t in bundle.transfers]
        assert sorted(t.number for t in together) == [t.number for t in plan.transfers]
        leaving = [t for t in plan.transfers
                   if t.version.number and t.message.source != t.message.target]  # fmt: skip
        n_messages = sum(not opens for _, opens, *_ in neighbours)
        assert sent(plan) == (n_messages, sum(t.nbytes for t in leaving))


def sent(plan: Plan) -> tuple[int, int]:
    """Messages and bytes that all places send in a step, by the operations."""
    sends = [o for o in plan.operations if o.verb == "send" and o.phase == 0]
    nbytes = 0
    for operation in sends:
        (access,) = operation.reads
        if isinstance(access.memory, StagingKey):
            itemsize = np.dtype(plan.bundles[access.memory.bundle].dtype).itemsize
        else:
            itemsize = plan.program.itemsize(access.memory.field)
        nbytes += sum(box.n_cells for box in access.cells) * itemsize
    return len(sends), nbytes
