# SPDX-License-Identifier: MIT
"""What a step cannot do is refused as its program is made: the user's line, and what to write.

These are the rows of the table of errors in docs/programs.md.
"""
from __future__ import annotations

import copy
import inspect
import math
import re
import statistics
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import controllers as ct
from controllers.device import find_devices
from controllers.kernel.stage_kernel import options_of
from controllers.language.traced import program_of
from controllers.settings.request import Request
from hitmap import SerialCommunicator

GRID = ct.Grid(y=8, x=9, boundary="periodic")
Gas = np.dtype([("rho", "f8"), ("energy", "f8")])


def refused(function: Any, *words: str, grid: ct.Grid = GRID, line: int = 1, **options: Any) -> str:
    """The message of a step's error; it says the line of the file, `line` lines after its first.

    0 is the decorator or the `def`; None where the error comes before the step is traced.
    """
    step = function if isinstance(function, ct.Step) else ct.step(function)
    with pytest.raises((TypeError, ValueError, AttributeError, IndexError)) as error:
        program_of(step, grid, **options)
    message = str(error.value)
    first = inspect.unwrap(step.function).__code__.co_firstlineno
    assert f"test_step_errors.py:{first + line}" in message, message
    for word in words:
        assert word in message, message
    return message


def test_a_python_if_on_a_value() -> None:
    def absolute(u: Any) -> Any:
        return dict(u=u if u > 0 else -u)

    refused(absolute, "no truth value", "np.where(condition, a, b)")

    def largest(u: Any) -> Any:
        return dict(u=max(u, u[0, 1]))

    refused(largest, "np.minimum(a, b)")


def test_an_index_that_is_not_constant() -> None:
    def pick(u: Any, v: Any) -> Any:
        return dict(u=u[0, v])

    refused(pick, "constant whole number", "value of the step", "np.where")

    def half(u: Any) -> Any:
        return dict(u=u[0, 0.5])

    refused(half, "constant whole number", "0.5", "staggered")

    def sliced(u: Any) -> Any:
        return dict(u=u[0, 1:])

    refused(sliced, "a slice", 'u.at("x", 1)')

    def counted(u: Any) -> Any:
        return dict(u=sum(u[0, i] for i in range(u)))

    refused(counted, "no whole number", "constants")


def test_a_wrong_number_of_axes_or_a_wrong_axis() -> None:
    def one(u: Any) -> Any:
        return dict(u=u[1])

    refused(one, "y, x", "got 1", 'f.at("x", 1)')

    def depth(u: Any) -> Any:
        return dict(u=u.at("z", 1))

    refused(depth, "'z'", "y, x")


def test_names_that_are_no_field() -> None:
    def grow(u: Any) -> Any:
        return dict(w=2 * u)

    refused(grow, "'w'", "fields u", line=0)
    refused(lambda energy: {"energi": energy}, "did you mean 'energy'", line=0)
    with pytest.raises(ValueError, match="initial value.*'w'.*the fields u"):
        program_of(ct.step(lambda u: dict(u=2 * u)), GRID, fields={"w": None})
    with pytest.raises(ValueError, match="dtype.*'w'.*the fields u"):
        program_of(ct.step(lambda u: dict(u=2 * u)), GRID, dtype={"w": "float32"})


@pytest.mark.parametrize("nothing", [None, {}, 3.0])
def test_a_step_that_returns_no_names(nothing: object) -> None:
    refused(lambda u: nothing, "dict(u=...)", line=0)


def test_values_that_no_field_can_have() -> None:
    refused(lambda u: dict(u=u > 0), "condition", "np.where(condition, 1, 0)", line=0)
    refused(lambda u: dict(u="1"), "one value per cell", "'1'", line=0)
    refused(lambda u: dict(u=np.ones((8, 9))), "one value per cell", line=0)
    other = ct.Grid(y=8, x=9, spacing=0.5)
    refused(lambda u: dict(u=ct.point(other, (0, 0))), "another grid", line=0)


def test_what_strict_arithmetic_and_the_dtype_refuse() -> None:
    def grow(u: Any) -> Any:
        return dict(u=np.exp(u))

    refused(grow, "strict arithmetic refuses", "math='fast'", line=0)
    assert program_of(ct.step(grow), GRID, math="fast").program.math == "fast"
    start = {"u": np.ones((8, 9), np.float32)}
    assert Request.of(ct.step(grow), GRID, init=start, keywords={"math": "fast"}).program
    refused(lambda u: dict(u=u * 1e300), "beyond the range of float32", line=0, dtype="float32")


def test_arrays_meet_fields_as_fields() -> None:
    table = np.ones((8, 9))

    def weighted(u: Any) -> Any:
        return dict(u=u * table)

    refused(weighted, "array of shape (8, 9)", "make it a field")


def test_reads_beyond_the_grid_without_a_rule() -> None:
    bare = ct.Grid(y=8, x=9)

    def move(u: Any, c: Any) -> Any:
        return dict(u=c * u.at("x", -1))

    words = "'u'", "(0, -1)", "'x'", "nothing says what is there", "ct.fixed(0)", "ct.keep()"
    refused(move, *words, grid=bare, line=0)
    refused(move, *words, grid=bare, line=0, boundary={"y": "periodic"})
    refused(move, *words, grid=bare, line=0, boundary={"c": ct.keep()})
    program = program_of(ct.step(move), bare, boundary={"u": {"x": ct.keep()}}).program
    assert program.stages[0].offsets == ((0, 0), (-1, 0))


def test_boundaries_that_name_no_field_or_contradict() -> None:
    step = ct.step(lambda u, v: dict(u=u.at("x", 1) + v.at("x", 1)))
    for boundary, words in (
        ({"w": "periodic"}, "'w' is neither a field .u, v. nor an axis .y, x."),
        ({"u": "periodic", "x": "keep"}, "mixes fields and axes"),
        ({"u": {"x": "periodic"}, "v": {"x": "keep"}}, "periodic for u alone"),
        ({"u": {"z": "keep"}}, "no axis 'z'"),
        ("glue", "glue"),
    ):
        with pytest.raises(ValueError, match=words):
            program_of(step, ct.Grid(y=8, x=9), boundary=boundary)


def test_attributes_and_functions_that_values_do_not_have() -> None:
    def total(u: Any) -> Any:
        return dict(u=u / u.std())

    refused(total, "'std'", "u[0, 1]", "np.abs(u)")

    def spread(u: Any) -> Any:
        return dict(u=u / np.std(u))

    refused(spread, "np.std", "these are")

    def angles(u: Any) -> Any:
        return dict(u=np.spacing(u))

    refused(angles, "np.spacing", "these are")

    def rooted(u: Any) -> Any:
        return dict(u=math.sqrt(u))

    refused(rooted, "`math`", "np.sqrt")

    def casted(u: Any) -> Any:
        return dict(u=u + np.asarray(u))

    refused(casted, "cannot become an array")

    def reduced(u: Any) -> Any:
        return dict(u=np.add.reduce(u))

    refused(reduced, "operands alone", "reduce")

    def walked(u: Any) -> Any:
        return dict(u=[one for one in u][0])    # noqa: C416, RUF015

    refused(walked, "looped over")


def test_values_cannot_be_changed() -> None:
    def assigned(u: Any) -> Any:
        u[0, 0] = 1
        return dict(u=u)

    refused(assigned, "assigns to no cell", "dict(u=...)")

    def named(u: Any) -> Any:
        u.rate = 1
        return dict(u=u)

    refused(named, "'rate'")


CLUMSY: list[tuple[Any, str]] = [
    (lambda u: dict(u=np.add(u, 1, out=u)), "operands alone, got out"),
    (lambda u: dict(u=np.add(u, 1, where=u > 0)), "operands alone, got where"),
    (lambda u: dict(u=u[[0, 1]]), "constant whole number, got list"),
    (lambda u: dict(u=u[u > 0]), "choose by np.where"),
    (lambda u: dict(u=u[...]), "constant whole number, got ellipsis"),
    (lambda u: dict(u=u["x"]), 'u.at("x", 1)'),
    (lambda u: dict(u=u(0, 1)), "neighbours are in brackets"),
    (lambda u: dict(u=u.at("x", 0.25)), "constant whole number"),
    (lambda u, v: dict(u=u @ v), "np.matmul is no function"),
    (lambda u: dict(u=ARRAY @ u), "make it a field"),
    (lambda u: dict(u=np.linalg.norm(u, 2)), "takes where= next to operands"),
    (lambda u: dict(u=np.fft.fft(u)), "no function of expressions"),
    (lambda u: dict(u=np.roll(u, 1, axis=0)), "operands alone, got axis"),
    (lambda u: dict(u=int(u)), "no single number"),
    (lambda u: dict(u=round(u, 2)), "no single number"),
    (lambda u: dict(u=math.fsum([u, u])), "no single number"),
    (lambda u: dict(u=len(f"{u:.3f}")), "has no values"),
    (lambda u, v: dict(u=1 if u in [v, v[0, 1]] else 2), "no truth value"),
    (lambda u, v: dict(u=sorted([u, v])[0]), "no truth value"),
    (lambda u: dict(u=np.where(0 < u < 1, 1, 0)), "combine conditions by & | ~"),
    (lambda u, v: dict(u=np.stack([u, v])), "one by one"),
    (lambda u, v: dict(u=np.select([u > 0], [v], 0)), "one by one"),
    (lambda u, v: dict(u=np.array([u, v])[0]), "cannot become an array"),
    (lambda u: dict(u=[1, 2][u]), "no whole number"),
    (lambda u: dict(u=ARRAY[u]), "cannot become an array"),
    (lambda u: dict(u=len(u)), "looped over"),
    (lambda u: dict(u=max(*u)), "looped over"),
    (lambda u: dict(u=u * 1j), "a number, got 1j"),
    (lambda u: dict(u=u + "1"), "a number, got '1'"),
    (lambda u: dict(u=u + None), "a number, got None"),
    (lambda u: dict(u=u + [1, 2]), "a number, got [1, 2]"),
    (lambda u: dict(u=u * math.inf), "a finite number, got inf"),
    (lambda u: dict(u=math.nan), "a finite number, got nan"),
    (lambda u: dict(u=u + (u > 0)), "use where(condition, 1, 0)"),
    (lambda u: dict(u=np.vectorize(abs)(u)), "cannot become an array"),
    (lambda u: dict(u=u.astype("complex64")), "got 'complex64'"),
    (lambda u: dict(u=u[0, 2**40]), "use smaller offsets"),
    (lambda u: dict(u=ct.laplacian(u, accuracy=3)), "use 2, 4, 6 or 8"),
    (lambda u: dict(u=ct.step(lambda u: dict(u=-u))(u)), "one value per cell"),
    (lambda u: dict(u=ct.step(lambda u: dict(u=-u))(ARRAY)["u"]), "one value per cell"),
    (lambda u: (u + 1, u), "the new values by the names"),
    (lambda u: [u + 1], "the new values by the names"),
    (lambda u: (one for one in [u]), "the new values by the names"),
    (lambda u: u + 1, "the new values by the names"),
    (lambda u: {u: u + 1}, "but the steps have the fields u"),
    (lambda: dict(u=1), "the steps have no field at all"),
    (lambda u: dict(u=u), "compute nothing new"),
]
ARRAY = np.ones((8, 9))


@pytest.mark.parametrize(("function", "words"), CLUMSY, ids=[words for _, words in CLUMSY])
def test_what_clumsy_users_write(function: Any, words: str) -> None:
    refused(function, words, line=0)


CLUMSY_WITH_STRUCTS: list[tuple[Any, str]] = [
    (lambda q: dict(q=q + "1"), "ct.struct(dtype, ...)"),
    (lambda q: dict(q=math.sqrt(q)), "a struct is no single number"),
    (lambda q: dict(q=f"{q:.2f}"), "a struct has no values"),
    (lambda q: dict(q=q(0, 1)), "neighbours are in brackets"),
    (lambda q: dict(q=q["rho"]), "constant whole number"),
    (lambda q: dict(q=np.stack([q, q])), "one by one"),
    (lambda q: dict(q=q > 0), "a condition"),
    (lambda q: dict(rho=q.rho), "the fields q"),
    (lambda q: dict(q=ct.struct(Gas, rho=1, energy=ARRAY)), "component 'energy'"),
]


@pytest.mark.parametrize(
    ("function", "words"), CLUMSY_WITH_STRUCTS, ids=[words for _, words in CLUMSY_WITH_STRUCTS]
)
def test_what_clumsy_users_write_of_structs(function: Any, words: str) -> None:
    refused(function, words, line=0, dtype=Gas)


def test_statements_that_change_a_value() -> None:
    def added(u: Any) -> Any:
        u[0, 1] += 1
        return dict(u=u)

    refused(added, "operands alone, got out")

    def deleted(q: Any) -> Any:
        del q[0, 1]
        return dict(q=q)

    refused(deleted, "assigns to no cell", dtype=Gas)

    def asserted(u: Any) -> Any:
        assert u > 0
        return dict(u=u)

    refused(asserted, "no truth value")

    def yielded(u: Any) -> Any:
        yield dict(u=u)

    refused(yielded, "the new values by the names of fields", line=0)


def test_functions_that_call_themselves_without_an_end() -> None:
    def endless(u: Any) -> Any:
        def more(n: int) -> Any:
            return more(n + 1)
        return dict(u=u + more(0))

    with pytest.raises(RecursionError, match=r"test_step_errors.py:\d+, in step 'endless': a func"):
        program_of(ct.step(endless), GRID)


def test_the_line_is_the_users_and_not_that_of_pythons_library() -> None:
    def mean(u: Any) -> Any:
        return dict(u=statistics.fmean([u, u]))

    refused(mean, "no single number")
    copied = program_of(ct.step(lambda u: dict(u=copy.deepcopy(u) + 1)), GRID).program
    assert copied.stages[0].updates["u"] is program_of(
        ct.step(lambda u: dict(u=u + 1)), GRID
    ).program.stages[0].updates["u"]


def test_arrays_of_no_axes_are_numbers() -> None:
    two = np.array(2.0)
    of_array, plain = (
        program_of(ct.step(function), GRID).program.stages[0].updates["u"]
        for function in (lambda u: dict(u=u * two), lambda u: dict(u=u * np.float64(2)))
    )
    assert of_array is plain


def test_initial_arrays_of_another_shape_are_refused() -> None:
    step = ct.step(lambda u, v: dict(u=u + v))
    for wrong in (np.ones((8, 8)), np.ones(9), [1.0, 2.0]):
        with pytest.raises(ValueError, match=r"u: an array for \(8, 9\) cells is needed, got one"):
            ct.Computation(step, GRID, u=wrong, v=0, devices="reference", comm=SerialCommunicator())


def test_a_device_without_double_precision_says_so() -> None:
    program = program_of(ct.step(lambda u: dict(u=u + 1)), GRID).program
    device = replace(find_devices()[0], dtypes=("float32", "int32"))
    with pytest.raises(ValueError, match="does not compute in float64, only in float32.*dtype"):
        options_of(program.stages[0], program.dtypes, "strict", device, False)


def test_loops_that_explode() -> None:
    def endless(u: Any) -> Any:
        while True:
            u = u + 1

    refused(endless, "written out", "more steps", line=2)


@pytest.mark.whole
def test_neighbours_of_neighbours_that_explode() -> None:
    def wide(u: Any) -> Any:
        for _ in range(200):
            u = u + u[1, 3] * u[5, 1]
        return dict(u=u)

    refused(wide, "written out", line=2)


def test_parameters_that_no_step_has() -> None:
    def every(*fields: Any) -> Any: ...
    def keywords(u: Any, **scalars: Any) -> Any: ...
    def positional(u: Any, rate: float = 1.0) -> Any: ...
    def positional_time(u: Any, t: ct.Time) -> Any: ...
    def word(u: Any, *, axis: str = "x") -> Any: ...

    for function, words in (
        (every, "positional"), (keywords, "name each"), (positional, "write a * before"),
        (positional_time, "write a * before"), (word, "no number: 'x'"),
    ):  # fmt: skip
        line = f"test_step_errors.py:{function.__code__.co_firstlineno}"
        with pytest.raises(TypeError, match=f"{line}.*{re.escape(words)}"):
            ct.step(function)
    with pytest.raises(TypeError, match="a function is expected"):
        ct.step(3)  # type: ignore[call-overload]


def test_scalars_that_contradict() -> None:
    one, other = ct.step(_decay(0.5)), ct.step(_decay(0.25))
    with pytest.raises(ValueError, match=r"py:\d+.*'rate' has the default 0.25.*0.5"):
        program_of([one, other], GRID)

    def placed(u: Any, *, x: float = 2.0) -> Any:
        return dict(u=u * x)

    refused(placed, "'x' is an axis", "leave the default out", line=0)

    def mixed(v: Any, *, u: float = 2.0) -> Any:
        return dict(v=u * v)

    with pytest.raises(ValueError, match="'u' is a scalar here and a field elsewhere"):
        program_of([one, ct.step(mixed)], GRID)


def _decay(default: float) -> Any:
    def decay(u: Any, *, rate: float = default) -> Any:
        return dict(u=u - rate * u)

    return decay


def test_a_time_step_that_is_made_of_no_fold() -> None:
    refused(lambda u: dict(u=u, dt=0.5), "dt", "made of no fold", "dt=...", line=0)
    (rate, of_time_step) = (lambda u: dict(u=-u), lambda u: 0.1)
    where = f"test_step_errors.py:{of_time_step.__code__.co_firstlineno}"
    with pytest.raises(ValueError, match=f"{where}.*made of no fold"):
        program_of(ct.heun(rate, dt=of_time_step), GRID)
    program = ct.step(lambda u: dict(u=-u, dt=1 / ct.max(u)))
    refused(program, "returns dt", "given dt=0.5", line=0, dt=0.5)
    refused(lambda u, *, dt: dict(u=u * dt, dt=1 / ct.max(u)), "takes dt and returns it", line=0)
    with pytest.raises(ValueError, match="returns 'dt', and 'step' before it does"):
        program_of([program, program], GRID)


def test_folds_of_what_is_no_value_of_all_cells() -> None:
    def number(u: Any, *, rate: float = 1.0) -> Any:
        return dict(u=u / ct.max(rate))

    refused(number, "got a scalar", "leave the fold out")

    def twice(u: Any) -> Any:
        return dict(u=u / ct.max(ct.mean(u)))

    refused(twice, "got a fold", "leave the fold out")
    refused(lambda u: dict(u=u / ct.max(3.0)), "ct.max", "3.0", line=0)
    refused(lambda u: dict(u=u / np.max(u, axis=0)), "over all axes", "leave it out", line=0)
    refused(lambda u: dict(u=u / np.max(u, keepdims=True)), "keepdims", line=0)
    refused(lambda u: dict(u=u / ct.max(u, where=u)), "a condition of cells", "compare", line=0)
    refused(lambda q: dict(q=q * ct.dot(q, q)), "its components", dtype=Gas, line=0)


def test_folds_are_known_when_steps_run_and_not_before() -> None:
    def stop(u: Any) -> Any:
        return dict(u=u if ct.max(u) > 0 else -u)

    refused(stop, "a fold has no truth value", "np.where(condition, a, b)")

    def plain(u: Any) -> Any:
        return dict(u=u / float(ct.max(u)))

    refused(plain, "a fold is no single number", "NumPy's")


def test_results_that_cannot_be() -> None:
    refused(lambda u: dict(u=-u, w=ct.max(u) * u), "'w'", "fields u", line=0)
    refused(lambda u, *, a=1.0: dict(u=-u * a, w=2 * a), "'w'", "fields u", line=0)
    refused(lambda u: dict(u=-u, x=ct.max(u)), "'x'", "an axis", "rename", line=0)
    refused(lambda u: dict(u=-u, step=ct.max(u)), "'step'", "a run", line=0)
    refused(lambda u: {"u": -u, "a b": ct.max(u)}, "'a b'", line=0)
    refused(lambda q: dict(q=-q, q_rho=ct.max(q.rho)), "'q_rho'", "a field", dtype=Gas, line=0)
    refused(lambda u, *, top=1.0: dict(u=u * top, top=ct.max(u)), "default", "rename", line=0)
    one, two = (ct.step(lambda u: dict(u=-u, top=ct.max(u))) for _ in range(2))
    with pytest.raises(ValueError, match="returns 'top', and 'step' before it does"):
        program_of([one, two], GRID)
    rate = ct.step(lambda u: dict(u=-u, top=ct.max(u)))
    with pytest.raises(ValueError, match="is a rate and returns 'top'.*a step of its own"):
        program_of(ct.heun(rate, dt=0.1), GRID)


def test_results_are_known_only_after_their_step() -> None:
    look = ct.step(lambda u: dict(top=ct.max(u)))
    use = ct.step(lambda u, *, top: dict(u=u / top))
    assert [stage.name for stage in program_of([look, use], GRID).program.stages] == [
        "step_folds", "step"
    ]  # fmt: skip
    with pytest.raises(ValueError, match="test_step_errors.py:.*'top', .* known only after"):
        program_of([use, look], GRID)


def test_folds_where_no_cells_are_or_no_field_lies() -> None:
    def between(u: Any) -> Any:
        return dict(u=-u, top=ct.max(u.at("x", 1 / 2)))

    refused(between, "where no field does", "f.at(axis, 1/2)", line=0)
    refused(lambda u: dict(u=-u, top=ct.max(u[0, 1])), "beyond the grid", line=0,
            grid=ct.Grid(y=8, x=9))  # fmt: skip


def test_folds_beyond_the_grid() -> None:
    step = ct.step(lambda u: dict(u=u[1] + 0, top=ct.max(u)))
    with pytest.raises(ValueError, match="a boundary uses the scalar 'top', .* made as it begins"):
        program_of(step, ct.Grid(x=8), boundary=ct.fixed(lambda x, top: x + top))


def test_folds_of_no_cells() -> None:
    slope = ct.step(lambda u: dict(u=-u, steepest=ct.max(u[0, 2] - u)))
    says = "'steepest' .* is the max of no cells, .* 0 to 2 in a domain of 8 x 2; use a larger"
    with pytest.raises(ValueError, match=says):
        ct.dry_run(slope, ct.Grid(y=8, x=2, boundary=ct.keep()), 1)


def test_repeats_that_cannot_be() -> None:
    halve = ct.step(lambda u: dict(u=u / 2, top=ct.max(u)))

    def until(now: Any) -> bool:
        return bool(now.top < 1)

    with pytest.raises(ValueError, match="give at_most="):
        ct.repeat(halve, until=until)   # type: ignore[call-overload]
    with pytest.raises(ValueError, match="repeat: give how often"):
        ct.repeat(halve, at_most=3)     # type: ignore[call-overload]
    with pytest.raises(TypeError, match="lambda now"):
        ct.repeat(halve, until=3, at_most=3)    # type: ignore[call-overload]
    again = ct.repeat(halve, until=until, at_most=3)
    with pytest.raises(ValueError, match="one repeat after another"):
        ct.repeat([again], until=until, at_most=3)
    with pytest.raises(ValueError, match="test_step_errors.py:.*'step'.*no result.*ct.max"):
        program_of(ct.repeat(ct.step(lambda u: dict(u=-u)), until=until, at_most=3), GRID)


def test_structs() -> None:
    def missing(q: Any) -> Any:
        return dict(q=q.momentum)

    refused(missing, "'momentum'", "rho, energy", dtype=Gas)

    def chosen(q: Any) -> Any:
        return dict(q=q if q else -q)

    refused(chosen, "no truth value", "np.where", dtype=Gas)

    def unlike(q: Any) -> Any:
        return dict(q=q + ct.struct([("a", "f8")], a=1))

    refused(unlike, "unlike components", dtype=Gas)

    def partly(q: Any) -> Any:
        return dict(q=ct.struct(Gas, rho=q.rho))

    refused(partly, "rho, energy", "got rho", dtype=Gas)
    refused(lambda q: dict(q=ct.struct([("a", "f8")], a=q.rho)), "has rho, energy",
            line=0, dtype=Gas)  # fmt: skip
    refused(
        lambda q, u: dict(u=q), "'u'", "one of its components", line=0,
        dtype={"q": Gas, "u": "f8"},
    )  # fmt: skip
    with pytest.raises(ValueError, match="stored as q_rho"):
        program_of(ct.step(lambda q, q_rho: dict(q=-q)), GRID, dtype={"q": Gas})
    with pytest.raises(ValueError, match="single numbers"):
        program_of(ct.step(lambda q: dict(q=-q)), GRID, dtype=[("a", "f8", (2,))])


def test_renames_that_cannot_be() -> None:
    refused(lambda u, v: dict(v=u), "'v'", "keeps its values", "copy it by 1 * u", line=0)
    early = ct.step(lambda u, old: dict(u=u + old, old=u))
    late = ct.step(lambda u, old: dict(u=u - old))
    with pytest.raises(ValueError, match=r"py:\d+.*'old' is a new name for 'u'.*1 \* u"):
        program_of([early, late], GRID)
    with pytest.raises(ValueError, match=r"py:\d+.*'old' is a new name for 'u'.*1 \* u"):
        program_of([late, early], GRID)
    part = ct.step(lambda u, old: dict(u=u + old, old=u), over=np.s_[1:3, :])
    with pytest.raises(ValueError, match=r"restricted to some cells; copy it by 1 \* u"):
        program_of(part, GRID)


def test_cells_that_no_step_computes() -> None:
    halve = ct.step(lambda u: dict(u=u / 2))
    for over, words in (
        (np.s_[1:3], "one slice for each of y, x"),
        (np.s_[::2, :], "leave the stride out"),
        ({"z": slice(1, 3)}, "no axis 'z'"),
        (lambda w: w > 0, r"\(u, y, x\), got 'w'"),
        (lambda u: u, "a condition is expected"),
    ):
        with pytest.raises((TypeError, ValueError), match=rf"test_step_errors.py:\d+, .*{words}"):
            program_of(ct.step(halve, over=over), GRID)
    for over, words in (([1, 2], "np.s_"), (np.ones((8, 9)), "make the mask a field")):
        with pytest.raises(TypeError, match=words):
            ct.step(halve, over=over)


def test_steps_that_are_none() -> None:
    with pytest.raises(TypeError, match=r"@ct\.step"):
        program_of(lambda u: dict(u=u), GRID)   # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one step"):
        program_of([], GRID)
    with pytest.raises(ValueError, match="at least 1"):
        ct.repeat(ct.step(lambda u: dict(u=u)), 0)


def test_what_a_users_own_code_raises_is_left_alone() -> None:
    def broken(u: Any) -> Any:
        return dict(u=u * {}["rate"])

    with pytest.raises(KeyError, match="^'rate'$"):
        program_of(ct.step(broken), GRID)


def test_the_innermost_line_of_the_user_is_named() -> None:
    def helper(u: Any) -> Any:
        return u[1]

    def outer(u: Any) -> Any:
        return dict(u=helper(u))

    message = refused(outer, "got 1", line=-2)
    assert "in step 'outer'" in message
