# SPDX-License-Identifier: MIT
"""What is explained: formulas, sizes that agree with the operations, and the text as a whole."""
from __future__ import annotations

import ast
import random

import numpy as np
import pytest
from mpi_jobs import run_ranks
from sample import cases

from controllers import Computation, Plan, Stencil
from controllers.kernel.configuration import KernelUse, LaunchSize, planned_configurations
from controllers.kernel.variant import Kernel
from controllers.plan import Location, Overlap, StagingKey
from controllers.plan.size import place_sizes
from controllers.program.expression import Application, Constant, Expression, Read, evaluate
from controllers.program.formula import MAX_OPERATIONS, WIDTH, cell, expression_text, formula
from controllers.program.program import Field, Program, Stage
from controllers.report.explain import MAX_LINES, explain
from controllers.report.memories import numbers
from hitmap import Layout, SerialCommunicator, Shape

HEAT = Stencil.of("heat", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
LOPSIDED = Stencil.of("lopsided", [(-2, 1), (0, 1)], [1, 0, 0, 0.5, 0, -1, 0, 2], 3)
BOX = Stencil.of("box", [(-1, 1), (-1, 1)], [1] * 9, 9)


def random_tree(rng: random.Random, n_operations: int) -> Expression:
    if n_operations == 0:
        leaf = rng.choice([2, 0.5, -3, None])
        offset = (rng.randint(-1, 1), rng.randint(-1, 1))
        return Read("u", offset) if leaf is None else Constant(leaf)
    n_left = rng.randrange(n_operations)
    left, right = random_tree(rng, n_left), random_tree(rng, n_operations - 1 - n_left)
    return Application(rng.choice(["+", "-", "*", "/"]), left, right)


def parsed(node: ast.expr) -> object:
    """What Python makes of a formula, as nested pairs; it orders operations as trees are built."""
    if not isinstance(node, ast.BinOp):
        return ast.unparse(node)
    sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(node.op)]
    return sign, parsed(node.left), parsed(node.right)


@pytest.mark.parametrize("seed", range(40))
def test_a_formula_means_the_tree_that_it_was_made_of(seed: int) -> None:
    tree = random_tree(random.Random(seed), 7)

    def leaf(text: str) -> object:
        return ast.unparse(ast.parse(text, mode="eval").body)

    expected = evaluate(
        tree, lambda read: leaf(cell(read)), lambda value: leaf(str(value)), lambda *all_: all_
    )
    assert parsed(ast.parse(expression_text(tree), mode="eval").body) == expected


def test_a_stage_of_several_updates_has_a_formula_for_each_and_what_one_cell_takes() -> None:
    u, v = Read("u", (0, 0)), Read("v", (0, 0))
    both = {"u": u - u * v, "v": v + u * v - Read("v", (0, 1))}
    stage = Stage("flow", both, ((0, 0), (0, 1)))
    assert formula(stage).splitlines() == [
        "u[i, j] = u[i, j] - u[i, j] * v[i, j]",
        "v[i, j] = v[i, j] + u[i, j] * v[i, j] - v[i, j+1]",
    ]
    program = Program("flow", (Field("u", "float32"), Field("v", "float32")), (stage,))
    layout = Layout.bands(Shape.of_extent((12, 9)), 1)
    text = explain(Plan(program, layout, (False, False), [Location(0)]), [])
    assert text.count("  stage flow\n") == 1
    assert (
        "Per cell: 4 flops (1 addition, 2 subtractions, 1 product); 16 bytes, each field read once"
    ) in text


def test_long_formulas_are_broken_and_very_long_ones_are_cut() -> None:
    wide = Stencil.of("wide", [(-2, 2), (-2, 2)], np.arange(1, 26), 7).program("float32")
    lines = formula(wide.stages[0]).splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= WIDTH
    huge = Stencil.of("huge", [(-4, 4), (-4, 4)], np.arange(1, 82), 7).program("float32")
    n_operations = 81 - 1 + 80 + 1      # sums, products but for the weight 1, the quotient
    assert n_operations > MAX_OPERATIONS
    assert formula(huge.stages[0]) == f"u[i, j] = ... ({n_operations} operations)"


def random_plan(rng: random.Random) -> Plan:
    n_places = rng.randint(1, 9)
    stencil = rng.choice([HEAT, LOPSIDED, BOX])
    extent = Shape.of_extent((rng.randint(3, 30), rng.randint(3, 30)))
    layout = rng.choice([Layout.bands, Layout.blocks])(extent, n_places)
    where = [Location(p // 3, rng.randrange(2), rng.random() < 0.5) for p in range(n_places)]
    where = [Location(w.rank, w.controller, w.controller == 0) for w in where]
    overlaps: list[Overlap] = ["on", "off", "auto"]
    periodic = (rng.random() < 0.5, rng.random() < 0.5)
    program = stencil.program(rng.choice(["float32", "float64"]))
    return Plan(program, layout, periodic, where, overlap=rng.choice(overlaps))


@pytest.mark.parametrize("seed", cases(8, 40))
def test_sizes_are_those_of_the_operations_that_a_plan_records(seed: int) -> None:
    plan = random_plan(random.Random(seed))
    sizes = place_sizes(plan)
    itemsize = np.dtype(plan.program.dtype).itemsize
    step = [operation for operation in plan.operations if operation.phase == 0]
    memories = {
        access.memory for o in plan.operations for access in (*o.reads, *o.writes)
    }
    for size in sizes:
        mine = [operation for operation in step if operation.place == size.place]
        computed = sum(o.writes[0].cells[0].n_cells for o in mine if o.verb == "launch")
        assert size.border + size.inner == computed
        staging = {True: 0, False: 0}
        for key in memories:
            if isinstance(key, StagingKey):
                (transfer,) = plan.bundles[key.bundle].transfers
                message = transfer.message
                if size.place == (message.source if key.end == "border" else message.target):
                    n = message.n_cells
                    staging[key.on_device] += (-(-n // 8) * 8 if key.on_device else n) * itemsize
        memory = size.memory
        assert (memory.device_staging, memory.host_staging) == (staging[True], staging[False])
        if size.owned:
            geometry = plan.geometry("u", size.place)
            full = plan.full("u", size.place)
            assert size.owned + size.halo == full.n_cells
            assert geometry.box & full == full
            assert memory.tiles == 2 * geometry.n_elements * itemsize
    assert sum(s.bytes_sent for s in sizes) == sum(s.bytes_received for s in sizes)
    assert sum(s.sends + s.copies for s in sizes) == len(plan.bundles)
    ranks = [operation for operation in step if operation.verb == "send"]
    between_ranks = sum(
        plan.locations[t.message.source].rank != plan.locations[t.message.target].rank
        for t in plan.transfers
    )
    assert len(ranks) == between_ranks <= sum(s.sends for s in sizes)


def test_border_and_inner_cells_are_counted_where_they_are_launched_apart() -> None:
    layout = Layout.bands(Shape.of_extent((30, 20)), 3)
    where = [Location(rank) for rank in range(3)]
    program = HEAT.program("float32")
    split = place_sizes(Plan(program, layout, (False, False), where, overlap="on"))
    assert [(size.border, size.inner) for size in split] == [(18, 144), (36, 144), (18, 144)]
    whole = place_sizes(Plan(program, layout, (False, False), where, overlap="off"))
    assert [(size.border, size.inner) for size in whole] == [(0, 162), (0, 180), (0, 162)]


def test_a_plan_of_one_rank_is_a_part_of_the_plan_of_all() -> None:
    layout = Layout.bands(Shape.of_extent((30, 20)), 3)
    where = [Location(rank) for rank in range(3)]
    program = HEAT.program("float32")
    whole = Plan(program, layout, (False, False), where)
    assert len(whole.operations) > 0
    part = whole.of_rank(1)
    alone = Plan(program, layout, (False, False), where, only_rank=1)
    assert (part.operations, part.places) == (alone.operations, (1,))
    assert part.of_rank(None).operations == whole.operations
    assert whole.places == (0, 1, 2)


def test_lists_that_are_too_long_say_how_much_is_left_out() -> None:
    layout = Layout.bands(Shape.of_extent((1000, 5)), 200)
    plan = Plan(HEAT.program("float32"), layout, (False, False), [Location(r) for r in range(200)])
    text = explain(plan, [])
    assert f"{200 - MAX_LINES} more" in text and f"... {2 * 199 - MAX_LINES} more" in text
    assert "rank 1, as one of all" in text
    assert max(map(len, text.splitlines())) < 160
    assert len(text.splitlines()) < 130


def test_numbers_are_ranges_and_few() -> None:
    assert numbers(range(5)) == "0-4"
    assert numbers(range(0, 400, 2)).endswith(", ... (200)")
    assert len(numbers(range(0, 4000, 2))) < 50


def test_alike_kernels_are_printed_once() -> None:
    layout = Layout.bands(Shape.of_extent((30, 20)), 3)
    plan = Plan(HEAT.program("float32"), layout, (False, False), [Location(r) for r in range(3)])
    launches = (LaunchSize((9, 2), (8,), (4,)),)
    one = KernelUse("X1", "heat", "kgt_heat", "generated", ("-a",), launches)
    text = explain(plan, [one, one])
    assert text.count("X1: stage heat by kernel kgt_heat (generated), build options: -a") == 1
    assert text.count("9 x 2 cells: 8 work-items in groups of 4") == 1


def test_a_computation_explains_what_its_devices_have_built() -> None:
    mine = Kernel.of("mine", "NEW(u) = NEAR(u, -1) + NEAR(u, 1);")
    mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 3)
    generic = "(kernels_cl/generic_stencil.cl, with 2 terms as data)"
    origins = {None: "(generated, strategy 'cell')", "generic": generic}
    for kernel in (None, "generic", mine):
        with Computation(
            mean.program("float32"), 64, devices=["cpu/1,1"], kernel=kernel,
            comm=SerialCommunicator(), steps_per_launch=1,
        ) as computation:  # fmt: skip
            text = computation.explain()
            computation.run(2)      # goes on as if nothing had been asked
        origin = origins.get(kernel) if not isinstance(kernel, Kernel) else "(a text of"
        assert origin is not None and origin in text
        assert "30 x 1" not in text and "31 cells" in text
        assert "1 of" in text and "work-items in groups of" in text
        if kernel is None:
            assert "-cl-fp32-correctly-rounded-divide-sqrt" in text     # it divides by 3
        for section in ("program mean", "layout: 64 cells", "messages of", "plan of", "kernels"):
            assert f"\n{section}" in f"\n{text}"


def test_boxes_that_get_other_kernels_are_listed_under_these() -> None:
    with Computation(
        HEAT.program("float32"), (9, 300), devices=["cpu/1,1"], comm=SerialCommunicator(),
        partition="blocks", steps_per_launch=1,
    ) as computation:  # fmt: skip
        text = computation.explain()
    wide = text.split("(generated, strategy 'rows', lanes 16, ")[1].splitlines()[1]
    assert wide.startswith("    7 x 149 cells: ")
    halves = Shape((0, 0), (200, 300)), Shape((0, 300), (200, 600))
    two = Layout(Shape.of_extent((200, 600)), halves)
    plan = Plan(
        HEAT.program("float32"), two,
        (False, False), [Location(0, n, False) for n in range(2)], overlap="on",
    )  # fmt: skip
    (sweep,) = plan.sweeps
    boxes = [box for place in plan.places for box in plan.launched(sweep, place)]
    cell, marching = planned_configurations(plan.program, sweep, "specialised", boxes, "gpu")
    assert marching.origin.startswith("generated, strategy 'marching', lanes 4, ")
    assert [launch.extent for launch in marching.launches] == [(198, 298)]
    assert cell.origin == "generated, strategy 'cell'"
    assert [launch.extent for launch in cell.launches] == [(198, 1)]


def test_the_reference_has_nothing_to_configure() -> None:
    with Computation(
        HEAT.program("float32"), (9, 9), devices="reference", comm=SerialCommunicator()
    ) as computation:
        text = computation.explain()
    assert "by kernel reference (NumPy), build options: none\n    7 x 7 cells\n" in text


EXPLAINED = """
from controllers import Computation, Stencil
from hitmap import default_communicator
comm = default_communicator()
mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
with Computation(mean.program("float32"), 64, devices="reference") as c:
    texts = comm.allgather(c.explain())
    assert texts[0] == texts[1]
    assert all(f"place {n}\\n" in texts[0] for n in range(2)), texts[0]
    print("alike")
"""


@pytest.mark.whole
def test_all_ranks_get_the_same_explanation_of_all_places() -> None:
    job = run_ranks(2, EXPLAINED)
    assert (job.returncode, job.stdout.count("alike")) == (0, 2), job.stderr


def test_stages_with_several_fields_are_explained_too() -> None:
    stage = Stage("sum", {"w": Read("u", (0,)) + Read("v", (1,))}, ((0, 1),))
    assert formula(stage) == "w[i] = u[i] + v[i+1]"
