# SPDX-License-Identifier: MIT
"""The table of functions: kernels have the bits of the reference, on all values; one row is all."""
from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pytest
from kernel_arguments import bound
from kernel_ways import extreme
from sample import sample

from controllers import Computation
from controllers.device.device import ROUNDED_DIVIDE
from controllers.kgt import STRATEGIES, Config, generate
from controllers.kgt.choice import choose, config_of, step_counts, usual_steps
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.kgt.text.analysis import in_vectors
from controllers.kgt.text.comment import cost
from controllers.kgt.text.emitter import assignment
from controllers.kgt.text.fast import stage_of
from controllers.program.expression import Application, Constant, Expression, Read, where
from controllers.program.formula import formula
from controllers.program.functions import FUNCTIONS, QUOTIENT, Function, Integers
from controllers.program.program import DTYPES, INTEGERS, Field, Math, Program, Stage
from controllers.program.reference import reference_run, values_of
from hitmap.shape import Shape
from hitmap.strided import Geometry

ROOT = Path(__file__).parents[3]
Array = npt.NDArray[Any]
A, B, NUMBER, U = (Read(name, (0,)) for name in ("a", "b", "number", "u"))
HERE = ((0, 0),)


def program_of(expression: Expression, dtype: str, math: Math = "strict") -> Program:
    fields = tuple(Field(name, dtype) for name in ("a", "b", "number", "u"))
    return Program("p", fields, (Stage("s", {"u": expression}, HERE),), math)


def launched(
    queue: cl.CommandQueue, program: Program, cells: Mapping[str, Array],
    config: Config | None = None,
) -> Array:  # fmt: skip
    """The field u as a kernel computes it, of the strategy "cell" unless `config` says another."""
    kernel = generate(program, program.stages[0], config)
    options = [ROUNDED_DIVIDE] if kernel.divides else []
    built = cl.Program(queue.context, kernel.source).build(options)
    result = np.empty(cells["a"].shape, program.dtypes["u"])
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    padded = -(-result.size // 16) * 16     # vectors are read whole
    old = {
        name: cl.Buffer(queue.context, flags, hostbuf=np.resize(values, padded))
        for name, values in cells.items()
    }
    new = cl.Buffer(queue.context, flags, hostbuf=np.resize(result, padded))
    domain = Shape.of_extent(result.shape)
    where = dict.fromkeys((*cells, "u"), Geometry.dense(domain).strided(domain))
    given = bound(kernel, where, old, {"u": new}, domain)
    getattr(built, kernel.name)(queue, *kernel.work_sizes(result.shape, True), *given)
    cl.enqueue_copy(queue, result, new)
    return result


def assert_vectors_have_the_bits(
    queue: cl.CommandQueue, program: Program, cells: Mapping[str, Array], names: Any
) -> None:
    """Those of the reference, where memory is read and written in vectors."""
    expected = right(program, cells)
    configs: list[Config] = [MarchingConfig(4, 1, 0, (64, 1, 1)), MarchingConfig(1, 1)]
    if queue.device.type & cl.device_type.CPU:
        configs += [RowsConfig(8, 1, band=1, streaming=True)]
    for config in configs:
        assert_same_bits(launched(queue, program, cells, config), expected, cells, names)


def right(program: Program, cells: Mapping[str, Array]) -> Array:
    expression = program.stages[0].expression
    return values_of(expression, lambda read: cells[read.field], program.dtypes["u"])


def assert_same_bits(got: Array, expected: Array, cells: Mapping[str, Array], names: Any) -> None:
    """NaNs count as equal whatever their payload."""
    bits = f"u{got.itemsize}"
    wrong = got.view(bits) != expected.view(bits)
    if got.dtype.kind == "f":
        wrong &= ~(np.isnan(got) & np.isnan(expected))
    listed = [
        (names[int(cells["number"][at])], cells["a"][at], cells["b"][at], got[at], expected[at])
        for at in np.flatnonzero(wrong)[:5]
    ]
    assert not listed, f"function, a, b, kernel, reference: {listed}"


def applied(name: str) -> Application:
    """A function on A and B; where it takes conditions, on what compares them."""
    takes = FUNCTIONS[name].takes
    values = (B, A, B)[-len(takes) :]
    conditions = (A < B, A == 0, B > A)
    operands = (conditions[at] if takes[at] else values[at] for at in range(len(takes)))
    made = Application(name, *operands)
    return where(made, 1, 0) if made.is_condition else made


def each_of(names: list[str]) -> Expression:
    """Function number n where the field `number` is n."""
    tree: Expression = A
    for at, name in enumerate(names):
        tree = where(at == NUMBER, applied(name), tree)
    return tree


def spread(names: list[str], a: Array, b: Array) -> dict[str, Array]:
    """All pairs for all functions."""
    numbers = np.repeat(np.arange(len(names), dtype=a.dtype), a.size)
    return {"a": np.tile(a, len(names)), "b": np.tile(b, len(names)), "number": numbers}


def special(dtype: str) -> tuple[Array, Array]:
    """All pairs of values that are special, and pairs of random bits."""
    info = np.finfo(dtype)
    some = [0, 1, 0.1, 3, 1 + info.eps, info.tiny, info.tiny / 8, info.smallest_subnormal,
            info.max, math.inf, math.nan, 4 * info.tiny, 2.0**24 + 1]  # fmt: skip
    values = np.array([*some, *(-np.array(some))], dtype)
    a, b = (each.ravel() for each in np.meshgrid(values, values))
    rng = np.random.default_rng(11)
    bits = np.frombuffer(rng.bytes(2 * 4000 * info.dtype.itemsize), dtype)
    return np.concatenate([a, bits[:4000]]), np.concatenate([b, bits[4000:]])


def of_floats() -> list[str]:
    """The functions of floats that give floats of the same dtype or conditions."""
    return [
        name for name, row in FUNCTIONS.items()
        if row.strict and row.floats and row.converts not in (*INTEGERS, "float64")
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_functions_have_the_bits_of_the_reference(queue: cl.CommandQueue, dtype: str) -> None:
    names = of_floats()
    program = program_of(each_of(names), dtype)
    cells = spread(names, *special(dtype))
    expected = right(program, cells)
    assert_same_bits(launched(queue, program, cells), expected, cells, names)
    assert np.isnan(expected).any() and np.signbit(expected[expected == 0]).any()


@pytest.mark.whole
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_functions_have_the_bits_of_the_reference_in_vectors(
    queue: cl.CommandQueue, dtype: str
) -> None:
    names = of_floats()
    program = program_of(each_of(names), dtype)
    assert_vectors_have_the_bits(queue, program, spread(names, *special(dtype)), names)


@pytest.mark.parametrize("dtype", sample(["float32", "float64"], 2))
def test_absolute_values_in_vectors_have_the_bits_of_the_reference(
    queue: cl.CommandQueue, dtype: str
) -> None:
    program = program_of(abs(B - abs(A)) - A, dtype)
    assert in_vectors(program.stages[0], program.dtypes)
    assert_vectors_have_the_bits(queue, program, spread(["abs"], *special(dtype)), ["abs"])
    whole = program_of(abs(A), "int64")     # of integers, a function that C has for one at a time
    assert not in_vectors(whole.stages[0], whole.dtypes)


@pytest.mark.whole
def test_functions_that_order_and_choose_have_the_bits_of_the_reference_in_vectors(
    queue: cl.CommandQueue,
) -> None:
    program = program_of(where(np.isnan(B), np.sqrt(abs(A)), np.maximum(A, B)), "float32")
    cells = spread(["maximum"], *special("float32"))
    assert_vectors_have_the_bits(queue, program, cells, ["maximum"])


def of_integers(dtype: str) -> tuple[list[str], dict[str, Array]]:
    """The functions of integers, and values for them."""
    names = [
        name for name, row in FUNCTIONS.items()
        if row.integers and (dtype == "int64" or not row.of_integers)
    ]  # fmt: skip
    rng = np.random.default_rng(12)
    info = np.iinfo(dtype)
    few = [0, 1, 2, 7, 8, 31, 32, 63, 64, *(() if dtype == "uint8" else (-1, -2, -7, -64))]
    ends = np.concatenate([extreme(rng, (25,), dtype), np.array([*few, info.min], dtype)])
    a, b = (each.ravel() for each in np.meshgrid(ends, ends))
    return names, spread(names, a, b)


@pytest.mark.parametrize("dtype", sample(INTEGERS, 2))
def test_all_functions_of_integers_have_the_bits_of_the_reference(
    queue: cl.CommandQueue, dtype: str
) -> None:
    names, cells = of_integers(dtype)
    program = program_of(each_of(names), dtype)
    assert_same_bits(launched(queue, program, cells), right(program, cells), cells, names)


@pytest.mark.whole
@pytest.mark.parametrize("dtype", INTEGERS)
def test_all_functions_of_integers_have_the_bits_of_the_reference_in_vectors(
    queue: cl.CommandQueue, dtype: str
) -> None:
    names, cells = of_integers(dtype)
    assert_vectors_have_the_bits(queue, program_of(each_of(names), dtype), cells, names)


@pytest.mark.parametrize(
    ("dtype", "target"), sample(product(DTYPES, ("float64", "int64")), 5)
)
def test_conversions_have_the_bits_of_the_reference(
    queue: cl.CommandQueue, dtype: str, target: str
) -> None:
    names = [name for name in DTYPES if (name in INTEGERS) == (target in INTEGERS)]
    tree: Expression = Constant(0)
    for at, name in enumerate(names):
        tree = where(at == NUMBER, A.astype(name).astype(target), tree)
    types = {"a": dtype, "number": "uint8", "u": target}
    fields = tuple(Field(name, each) for name, each in types.items())
    program = Program("p", fields, (Stage("s", {"u": tree}, HERE),))
    a = extreme(np.random.default_rng(2), (400,), dtype) if dtype in INTEGERS else special(dtype)[0]
    if dtype not in INTEGERS:
        ends = [sign * 2.0**n + d for n in (7, 8, 15, 31, 63) for d in (-1, 0) for sign in (1, -1)]
        a = np.concatenate([a, np.array(ends, dtype)])
    cells = spread(names, a, a)
    cells["number"] = np.repeat(np.arange(len(names), dtype="uint8"), a.size)
    assert_same_bits(launched(queue, program, cells), right(program, cells), cells, names)


@pytest.mark.parametrize("dtype", sample(["int16", "int32"], 2))
def test_functions_of_floats_take_integers_as_numpy_does(
    queue: cl.CommandQueue, dtype: str
) -> None:
    names = [name for name, row in FUNCTIONS.items() if row.of_integers and row.strict
             and row.name != QUOTIENT]  # fmt: skip
    rng = np.random.default_rng(3)
    a, b = extreme(rng, (500,), dtype), extreme(rng, (500,), dtype)
    assert {"/", "sqrt", "copysign", "rint"} == {*names}
    for name in names:
        with np.errstate(all="ignore"):
            numbers = FUNCTIONS[name].numpy(*(a, b)[-len(FUNCTIONS[name].takes) :])
        types = {"a": dtype, "b": dtype, "u": numbers.dtype.name}
        fields = tuple(Field(field, each) for field, each in types.items())
        program = Program("p", fields, (Stage("s", {"u": applied(name)}, HERE),))
        cells = {"a": a, "b": b, "number": np.zeros_like(a)}
        assert_same_bits(right(program, cells), numbers, cells, [name])
        assert_same_bits(launched(queue, program, cells), numbers, cells, [name])


def test_integers_that_have_wrapped_keep_their_sign(queue: cl.CommandQueue) -> None:
    total = A + B
    trees: list[Expression] = [
        total / 2, (total * A).astype("int64") / 2, where(total < 0, -1.5, 0.5), total // 3 / 1,
        abs(total).astype("float32"), where(total - 1 > A - 1, 1.0, 2.0), (total >> 1) / 1,
        np.minimum(total, -total) / 1, total.astype("int16") / 1, total.astype("uint8") / 1,
    ]  # fmt: skip
    tree: Expression = Constant(0)
    for at, each in enumerate(trees):
        tree = where(at == NUMBER, each, tree)
    types = {"a": "int32", "b": "int32", "number": "int32", "u": "float64"}
    fields = tuple(Field(name, each) for name, each in types.items())
    program = Program("p", fields, (Stage("s", {"u": tree}, HERE),))
    rng = np.random.default_rng(16)
    names = [str(number) for number in range(len(trees))]
    cells = spread(names, extreme(rng, (300,), "int32"), extreme(rng, (300,), "int32"))
    assert_same_bits(launched(queue, program, cells), right(program, cells), cells, names)


def test_functions_of_the_driver_are_for_fast_arithmetic_alone(queue: cl.CommandQueue) -> None:
    names = [name for name, row in FUNCTIONS.items() if not row.strict]
    assert {"exp", "log", "sin", "power"} <= {*names}
    with pytest.raises(ValueError, match="stage 's': devices round .*math='fast'"):
        program_of(each_of(names), "float64")
    program = program_of(each_of(names), "float64", "fast")
    rng = np.random.default_rng(13)
    cells = spread(names, rng.uniform(0.1, 1.5, 400), rng.uniform(-2, 2, 400))
    got, expected = launched(queue, program, cells), right(program, cells)
    assert np.allclose(got, expected, rtol=1e-13, atol=0, equal_nan=True)


def test_minimum_and_maximum_propagate_nan_and_order_zeros() -> None:
    values = np.array([0.0, -0.0, np.nan, 1.0])
    a, b = (each.ravel() for each in np.meshgrid(values, values))
    for name, order in (("minimum", min), ("maximum", max)):
        got = FUNCTIONS[name].computed(whole=False)(a, b)
        for x, y, z in zip(a, b, got):
            if math.isnan(x) or math.isnan(y):
                assert math.isnan(z)
            else:
                assert str(z) == str(order((x, y), key=lambda v: (v, math.copysign(1, v))))


def test_a_new_function_is_one_row(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def squares(a: Array, b: Array) -> Array:
        return a * a + b * b

    row = Function(
        "squares", squares, "sum of squares", "kgt_squares({0},\n{1})",
        notation="squares({0}, {1})", flops=3,
        integers=Integers(lambda a, b: (-(2**64), 2**64), text="{0} * {0} + {1} * {1}"),
        helper="VALUE kgt_squares(const VALUE a, const VALUE b)\n{\n    return a * a + b * b;\n}\n",
    )  # fmt: skip
    monkeypatch.setitem(FUNCTIONS, "squares", row)
    program = program_of(Application("squares", A - 1, B) + A, "float32")
    stage = program.stages[0]
    rng = np.random.default_rng(14)
    cells = {name: rng.standard_normal(100).astype("float32") for name in ("a", "b", "number")}
    expected = (cells["a"] - 1) * (cells["a"] - 1) + cells["b"] * cells["b"] + cells["a"]
    assert np.array_equal(right(program, cells), expected)
    assert np.array_equal(launched(queue, program, cells), expected)
    assert formula(stage) == "u[i] = squares(a[i] - 1, b[i]) + a[i]"
    assert program.flops_per_cell == 5
    assert "5 flops (1 addition, 1 subtraction, 1 sum of squares)" in cost(program, stage)


# these define functions, or compute with numbers on the host
NOT_OF_EXPRESSIONS = (
    "function.py", "functions.py", "arithmetic.py", "rule.py", "accumulator.py", "exact_sum.py",
    "fold_values.py", "item_node.py", "item_values.py", "items.py",
)  # fmt: skip


def test_only_the_table_names_functions() -> None:
    words = [name for name in FUNCTIONS if name.isalpha()]
    named = re.compile(rf"[\"'](?:{'|'.join(words)})[\"']|\b(?:np|kgt)[._](?:{'|'.join(words)})\(")
    for folder in ("program", "kgt", "report"):
        for path in (ROOT / "controllers" / folder).glob("*.py"):
            if path.name not in NOT_OF_EXPRESSIONS:
                text = re.sub(r"__all__ = \[.*?\]", "", path.read_text(), flags=re.DOTALL)
                assert not named.findall(text), path


def test_what_is_shared_is_computed_once_in_the_order_of_its_first_use() -> None:
    low, high = Read("u", (-1,)), Read("u", (1,))
    total, difference = low + high, high - low
    tree = where(difference < 0, total * difference, total / difference)
    lines = assignment("x", Stage("s", {"u": tree}, ((-1, 1),)), "float32")
    assert lines == [
        "const float t0 = u[c + 1] - u[c - 1];",
        "const float t1 = u[c - 1] + u[c + 1];",
        "x = (t0 < 0.0f) ? t1 * t0 : t1 / t0;",
    ]
    again = (total < 0) & (high < 0)
    stage = Stage("s", {"u": where(again, where(again, 1, 2), 3)}, ((-1, 1),))
    assert assignment("x", stage, "int64")[0] == "const int t0 ="


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_sixty_levels_of_sums_are_handled_in_time_linear_in_their_nodes(
    queue: cl.CommandQueue, dtype: str
) -> None:
    tree: Expression = U
    for _ in range(60):
        tree = tree + tree
    program = Program("p", (Field("u", dtype),), (Stage("s", {"u": tree}, ((-1, 1),)),))
    stage = program.stages[0]
    assert program.flops_per_cell == 60
    text = " ".join(formula(stage).split())
    assert text.startswith("u[i] = t58 + t58 with t0 = u[i] + u[i], t1 = t0 + t0,")
    for strategy in STRATEGIES.keys() - {"generic", "items", "items_on_cpu"}:
        if strategy != "streaming" or dtype not in INTEGERS:
            config = config_of(strategy, program, stage)
            source = generate(program, stage, config).source
            assert len(source) < 10**5 and "60 additions" in source
    if dtype not in INTEGERS:
        assert stage_of(program.with_math("fast"), stage).expression is tree
    field = np.arange(1, 20).astype(dtype)
    expected = reference_run(program, field, 1, (True,))
    assert np.array_equal(expected, field * 2.0**60 if dtype == "float32" else field * 0)
    with Computation(program, field.shape, boundary="periodic", devices="cpu") as run:
        run.scatter(field)
        run.run(1)
        assert np.array_equal(run.gather(), expected)


@pytest.mark.parametrize(
    ("expression", "dtype", "message"),
    [
        (A < B, "float32", "gives 'u' a condition, <Read < Read>.*where"),
        (np.sqrt(A), "int32", "gives the field 'u', which holds int32, values of float64.*astype"),
        (np.sqrt(A), "uint8", "'sqrt' of uint8 is a float16.*astype"),
        (A.astype("int16"), "uint8", "values of int16, which are of another kind"),
        (A + 300, "uint8", "the constant 300 is beyond the range of uint8, 0 to 255"),
        (A & B, "float64", "'bitwise_and' is for integers, got float64"),
        (np.isnan(A), "int32", "gives 'u' a condition"),
        (where(np.isnan(A), 1, 0), "int32", "'isnan' is for float32 and float64, got int32"),
        (Constant(1) / Constant(0), "float64", "'/' of the constants 1, 0 is inf"),
        (Constant(-1), "uint8", "the field 'u' the constant -1 is beyond the range of uint8"),
        (A**-2, "float32", "'power' differently.*1 to 16, 1 / x.*math='fast'"),
        (A**17, "float32", "'power' differently"),
        (np.exp(A), "float64", "round 'exp' differently.*math='fast'"),
    ],
)
def test_what_a_program_cannot_compute_is_refused_when_it_is_made(
    expression: Expression, dtype: str, message: str
) -> None:
    with pytest.raises(ValueError, match=f"stage 's'.*{message}"):
        program_of(expression, dtype)


def test_kernels_of_one_step_compute_all_functions() -> None:
    program = program_of(np.sqrt(A) + U, "float32")
    stage = program.stages[0]
    for kind, strategy in (("cpu", "rows"), ("gpu", "marching"), ("", "cell")):
        assert choose(program, stage, kind) == config_of(strategy, program, stage, True)
        assert usual_steps(program, stage, kind) == 1 and step_counts(program, stage, kind) == (1,)
    for strategy in ("wavefront", "streaming"):
        with pytest.raises(ValueError, match=f"{strategy}.*'cell', which computes all functions"):
            config_of(strategy, program, stage)
    source = generate(program, stage).source
    assert "rounds float square roots loosely" in source and generate(program, stage).divides


@pytest.mark.parametrize(("dtype", "n_places"), [("float64", 3), ("uint8", 1)])
def test_a_run_with_functions_has_the_bits_of_the_reference(dtype: str, n_places: int) -> None:
    left, here, above = Read("u", (0, -1)), Read("u", (0, 0)), Read("u", (-1, 1))
    steep = abs(left - above) > 3
    total = left + here + above
    mean = total / 3 if dtype == "float64" else total // 3
    root = np.sqrt(abs(mean)) if dtype == "float64" else np.maximum(mean, here // 2)
    tree = where(steep & (here != 0), root, np.minimum(mean, here))
    stage = Stage("limited", {"u": tree}, ((-1, 0), (-1, 1)))
    program = Program("p", (Field("u", dtype),), (stage,))
    field = np.random.default_rng(15).integers(0, 90, (23, 31)).astype(dtype)
    boundary = ("fixed", "periodic")
    with Computation(
        program, field.shape, boundary=boundary, devices="cpu", places_per_controller=n_places
    ) as run:
        run.scatter(field)
        run.run(5)
        assert np.array_equal(run.gather(), reference_run(program, field, 5, (False, True)))
