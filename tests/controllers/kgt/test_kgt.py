# SPDX-License-Identifier: MIT
from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pytest
from kernel_arguments import bound
from sample import cases

from controllers.cli import main as command_line
from controllers.kgt import StageKernel, generate
from controllers.kgt.__main__ import main
from controllers.kgt.choice import config_of
from controllers.kgt.strategies.cell.config import work_sizes
from controllers.kgt.text.comment import head_comment
from controllers.kgt.text.emitter import assignment, has_exact_reciprocal, literal
from controllers.language.pattern_file import read_patterns
from controllers.language.weights import Stencil
from controllers.program.boundary import Boundary
from controllers.program.expression import SYMBOLS, Application, Constant, Expression, Read
from controllers.program.program import Field, Program, Stage
from controllers.program.reference import values_of
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided

ROOT = Path(__file__).parents[3]
PATTERNS = sorted((ROOT / "examples" / "patterns").glob("*.py"))
Array = npt.NDArray[Any]


def launched(
    queue: cl.CommandQueue,
    kernel: StageKernel,
    old: Array,
    new: Array,
    box: Shape,
    is_cpu: bool,
) -> Array:
    """`new` after the kernel has computed the cells `box` from `old`; both hold one field whole."""
    program = cl.Program(queue.context, kernel.source).build()
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(queue.context, flags, hostbuf=array) for array in (old, new)]
    where = {"u": Geometry.dense(Shape.of_extent(old.shape)).strided(box)}
    given = bound(kernel, where, {"u": buffers[0]}, {"u": buffers[1]}, box)
    global_size, local_size = kernel.work_sizes(box.extent, is_cpu)
    getattr(program, kernel.name)(queue, global_size, local_size, *given)
    result = np.empty_like(new)
    cl.enqueue_copy(queue, result, buffers[1])
    return result


def expected(program: Program, old: Array, new: Array, box: Shape) -> Array:
    def read(node: Read) -> Array:
        seen: Array = old[box.shift(node.offset).slices((0,) * old.ndim)]
        return seen

    result: Array = new.copy()
    stage = program.stages[0]
    result[box.slices((0,) * old.ndim)] = values_of(stage.expression, read, program.dtype)
    return result


def random_stencil(rng: np.random.Generator, n_axes: int, dtype: str) -> Stencil:
    reach = 3 if n_axes < 3 else 2 if n_axes == 3 else 1
    shape = [(-int(low), int(high)) for low, high in rng.integers(0, reach + 1, (n_axes, 2))]
    n_weights = math.prod(high - low + 1 for low, high in shape)
    huge, tiny = (1e30, 1e-42) if dtype == "float32" else (1e300, 1e-310)
    special = rng.choice([1.0, -1.0, 0.0, 2.0, huge, tiny, 0.1, -1 / 3], n_weights)
    weights = np.where(rng.random(n_weights) < 0.5, special, rng.standard_normal(n_weights))
    weights[rng.random(n_weights) < 0.3] = 0
    weights[rng.integers(n_weights)] = 1
    factor = rng.choice([1.0, 4.0, -0.125, 6.5, 3.0, 2.0**120, 1e-3])
    return Stencil.of("random", shape, weights, factor)


def random_tree(rng: np.random.Generator, depth: int) -> Expression:
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.2:
            return Constant(float(rng.standard_normal()))
        return Read("u", (int(rng.integers(-1, 2)), int(rng.integers(-1, 2))))
    symbol = SYMBOLS[rng.integers(4)]
    return Application(symbol, random_tree(rng, depth - 1), random_tree(rng, depth - 1))


def check_bits(
    queue: cl.CommandQueue, program: Program, rng: np.random.Generator, is_cpu: bool
) -> None:
    """The kernel equals the reference on a random box, and leaves all other cells alone."""
    margin = [
        (low + int(rng.integers(3)), high + int(rng.integers(3))) for low, high in program.reach
    ]
    limit = (700, 40, 16, 8)[program.n_axes - 1]
    extent = [int(rng.choice([1, 2, 3, *rng.integers(4, limit, 5)])) for _ in margin]
    box = Shape(
        tuple(low for low, _ in margin), tuple(low + n for (low, _), n in zip(margin, extent))
    )
    full = [low + n + high for (low, high), n in zip(margin, extent)]
    old, new = rng.standard_normal((2, *full)).astype(program.dtype)
    old.flat[:: max(2, old.size // 9)] = np.finfo(program.dtype).tiny / 3  # some denormal numbers
    kernel = generate(program, program.stages[0])
    result = launched(queue, kernel, old, new, box, is_cpu)
    assert result.tobytes() == expected(program, old, new, box).tobytes(), kernel.source


@pytest.mark.parametrize("seed", cases(3, 24))
def test_random_stencils_equal_the_reference_bit_for_bit(queue: cl.CommandQueue, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = ("float32", "float64")[seed // 4 % 2]
    program = random_stencil(rng, seed % 4 + 1, dtype).program(dtype)
    check_bits(queue, program, rng, is_cpu=seed % 3 > 0)


@pytest.mark.parametrize("seed", range(4))
def test_random_trees_equal_the_reference_bit_for_bit(queue: cl.CommandQueue, seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    tree = random_tree(rng, 6) + Read("u", (0, 0))
    fields = (Field("u", ("float32", "float64")[seed % 2]),)
    check_bits(
        queue, Program("p", fields, (Stage("tree", {"u": tree}, ((-1, 1),) * 2),)), rng, is_cpu=True
    )


@pytest.mark.whole
def test_a_sum_of_625_terms_is_cut_into_temporaries_with_the_same_bits(
    queue: cl.CommandQueue,
) -> None:
    rng = np.random.default_rng(7)
    stencil = Stencil.of("long_sum", [(-2, 2)] * 4, rng.standard_normal(625), 7)
    assert "const float t9 =" in generate_text(stencil)
    check_bits(queue, stencil.program("float32"), rng, is_cpu=True)


def test_a_right_leaning_sum_keeps_its_order_and_a_bounded_depth() -> None:
    tree: Expression = Read("u", (0,))
    for _ in range(1000):
        tree = Read("u", (0,)) + tree
    stage = Stage("s", {"u": tree}, ((0, 0),))
    text = " ".join(" ".join(assignment("x", stage, "float32")).split())
    assert "u[c] + (u[c] + (u[c]" in text
    assert max(statement.count("(") for statement in text.split(";")) < 100


def generate_text(stencil: Stencil, dtype: str = "float32") -> str:
    program = stencil.program(dtype)
    return generate(program, program.stages[0]).source


def statements(source: str) -> str:
    """The source without comments and line breaks, for what must not be in it."""
    return " ".join(re.sub(r"//.*", "", source).split())


def test_a_text_that_was_made_before_is_that_of_the_same_fields_and_arithmetic() -> None:
    def programs() -> list[Program]:
        mean = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 3)
        strict = mean.program("float32")
        double = Program("mean", (Field("u", "float64"),), strict.stages)
        mirrored = strict.with_boundaries({"u": Boundary.of("mirror", 2)})
        return [strict, double, strict.with_math("fast"), mirrored]

    config = config_of("wavefront", programs()[0], programs()[0].stages[0])
    again = [generate(one, one.stages[0], config).source for _ in "ab" for one in programs()]
    assert again[:4] == again[4:] and len(set(again)) == 4


def test_the_kernel_has_no_loop_no_zero_weight_and_no_product_by_one() -> None:
    source = statements(
        generate_text(Stencil.of("s", [(-1, 1)] * 2, [0, 1, 0, 2, 0, 1, 0, -1, 0], 6))
    )
    assert "for" not in source.replace("float", "") and "while" not in source and "if" not in source
    assert (
        "u_new[c] = (u[c - u_pitch_0] + 2.0f * u[c - 1] + u[c + 1] "
        "+ (-1.0f) * u[c + u_pitch_0]) / 6.0f;" in source
    )


def test_float64_kernels_carry_the_pragma_and_no_float32_literal() -> None:
    source = statements(generate_text(Stencil.of("s", [(-1, 1)], [0.1, 1, 0.2], 3), "float64"))
    assert "#pragma OPENCL EXTENSION cl_khr_fp64 : enable" in source
    assert "#pragma OPENCL FP_CONTRACT OFF" in source
    assert not re.search(r"\d\.?\d*f\b|float", source)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_literals_are_parsed_back_to_exactly_the_value(dtype: str) -> None:
    rng = np.random.default_rng(3)
    scalar = np.dtype(dtype).type
    bits = rng.integers(0, 2 ** (np.dtype(dtype).itemsize * 8 - 1), 2000, dtype=np.uint64)
    info = np.finfo(dtype)
    values = [
        *bits.astype(f"uint{info.bits}").view(dtype),
        info.max,
        info.tiny,
        info.smallest_subnormal,
        0,
    ]
    for value in map(scalar, values):
        if np.isfinite(value):
            text = literal(float(value), dtype).removesuffix("f")
            assert scalar(text) == value and re.fullmatch(r"\d+\.\d+|\d(\.\d+)?e[+-]\d+", text)


@pytest.mark.parametrize("factor", [2.0**-126, 2.0**126, 2.0, -4.0, 0.5])
def test_a_division_becomes_a_product_where_that_is_exact(factor: float) -> None:
    source = statements(generate_text(Stencil.of("s", [(-1, 0)], [1, 1], factor)))
    assert "/" not in source and has_exact_reciprocal(factor, "float32")


@pytest.mark.parametrize("factor", [3.0, 0.1, 6.5, 2.0**127, 2.0**-127])
def test_other_divisions_stay_divisions(factor: float) -> None:
    stencil = Stencil.of("s", [(-1, 0)], [1, 1], factor)
    program = stencil.program("float32")
    kernel = generate(program, program.stages[0])
    assert ") / " in statements(kernel.source) and kernel.divides
    assert "-cl-fp32-correctly-rounded-divide-sqrt" in kernel.source


def test_the_head_comment_draws_the_pattern_and_states_the_cost() -> None:
    program = Stencil.of("s", [(-1, 1), (0, 1)], [0, 1, -0.5, 2, 0, 1], 4).program("float32")
    text = "\n".join(head_comment(program, program.stages[0], "x"))
    assert "        .      1\n    [-0.5]     2\n        .      1\n" in text
    assert (
        "divided by 4" in text and "6 flops (3 additions, 2 products, 1 division); 8 bytes" in text
    )


def test_patterns_of_three_and_four_axes_are_drawn_by_planes_and_large_ones_are_not() -> None:
    four = generate_text(Stencil.of("s", [(0, 1)] * 4, list(range(16)), 1))
    assert "// at offsets (1, 0) on axes 0, 1:\n//       8    9\n//      10   11\n" in four
    assert "// at offset -1 on axis 0:" in generate_text(
        Stencil.of("s", [(-1, 0)] * 3, list(range(8)), 1)
    )
    assert "too many offsets to draw" in generate_text(
        Stencil.of("s", [(-50, 50)], list(range(101)), 1)
    )


def test_an_expression_that_is_no_weighted_sum_is_announced_by_its_shape() -> None:
    u = Read("u", (0, 1))
    stage = Stage("s", {"u": u * u}, ((0, 0), (-1, 1)))
    text = "\n".join(head_comment(Program("p", (Field("u", "float32"),), (stage,)), stage, "x"))
    assert "0..0 x -1..1" in text


def test_several_fields_have_their_own_first_element_and_pitches() -> None:
    tree = Read("u", (0, 1)) * Read("v", (1, 0)) + Read("u", (0, 0))
    fields = tuple(Field(name, "float64") for name in ("u", "v", "w"))
    stage = Stage("mix", {"w": tree}, ((0, 1), (0, 1)))
    kernel = generate(Program("p", fields, (stage,)), stage)
    assert [(one.name, one.type_name, one.role) for one in kernel.parameters] == [
        ("u", "double*", "in"), ("v", "double*", "in"), ("w_new", "double*", "out"),
        *((name, "long", "scalar") for name in (
            "u_first", "u_pitch_0", "v_first", "v_pitch_0", "w_first", "w_pitch_0",
            "extent_0", "extent_1",
        )),
    ]  # fmt: skip
    assert "w_new[c_w] = u[c_u + 1] * v[c_v + v_pitch_0] + u[c_u];" in kernel.source
    firsts, pitches = {"u": 1, "v": 2, "w": 2**40}, {"u": 10, "v": 20, "w": 30}
    where = {name: Strided(firsts[name], (pitches[name], 1), (5, 6)) for name in firsts}
    old, new = {"u": "a", "v": "b"}, {"w": "c"}
    given = bound(kernel, where, old, new, Shape.of_extent((5, 6)))
    assert given == ["a", "b", "c", 1, 10, 2, 20, 2**40, 30, 5, 6]
    assert {type(value) for value in given[3:]} == {np.int64}


def test_work_groups_are_powers_of_two_within_the_box_and_the_device() -> None:
    rng = np.random.default_rng(5)
    for trial in range(400):
        extent = tuple(int(2 ** rng.uniform(0, 14)) for _ in range(trial % 4 + 1))
        for is_cpu, most in ((True, 2048), (False, 256)):
            global_size, local_size = work_sizes(extent, is_cpu)
            assert math.prod(local_size) <= most and len(local_size) == min(3, len(extent))
            cells = [*extent[:-4:-1]]
            cells[2:] = [math.prod(extent[:-2])] if len(extent) > 2 else []
            for total, size, count in zip(global_size, local_size, cells):
                assert (
                    size & (size - 1) == 0
                    and size <= count <= total < count + size
                    and total % size == 0
                )


def test_an_empty_box_has_no_work_sizes() -> None:
    with pytest.raises(ValueError, match=r"\(3, 0\)"):
        work_sizes((3, 0), True)


def test_an_unknown_strategy_is_refused() -> None:
    program = Stencil.of("s", [(0, 0)], [1], 1).program("float32")
    with pytest.raises(ValueError, match="'wave'"):
        config_of("wave", program, program.stages[0])


@pytest.mark.parametrize("path", PATTERNS, ids=lambda path: path.stem)
def test_the_kernels_in_kernels_cl_are_what_kgt_writes(path: Path) -> None:
    for stencil in read_patterns(path):
        kept = ROOT / "kernels_cl" / f"{stencil.name}.cl"
        remedy = f"python -m controllers.kgt {path.relative_to(ROOT)} -o kernels_cl"
        assert kept.read_text() == generate_text(stencil), remedy


def test_the_command_line_writes_a_file_per_stencil_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = tmp_path / "two.py"
    pattern.write_text(
        "".join(f"shape_{n} = ((0, 1),)\npattern_{n} = [1, 1]\nfactor_{n} = 2\n" for n in "ab")
    )
    folder = tmp_path / "new" / "kernels"
    assert main([str(pattern), "-o", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["a.cl", "b.cl"]
    assert capsys.readouterr().out == ""
    monkeypatch.chdir(tmp_path)
    assert main([str(pattern), "--print", "--dtype", "float64"]) == 0
    assert capsys.readouterr().out.count("double *restrict u_new") == 2
    assert not Path("a.cl").exists()
    assert main([str(pattern)]) == 0
    assert Path("a.cl").read_text() == (folder / "a.cl").read_text()


def test_the_command_line_fails_with_one_line_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern = tmp_path / "bad.py"
    pattern.write_text("shape = ((0, 1),)\npattern = [1, 1e39]\nfactor = 2\n")
    good = tmp_path / "good.py"
    good.write_text("shape = ((0, 1),)\npattern = [1, 1]\nfactor = 2\n")
    out = str(tmp_path / "out")
    for arguments, code in (
        ([str(pattern), "-o", out], 2),
        ([str(tmp_path / "missing.py"), "-o", out], 2),
        ([str(tmp_path), "-o", out], 2),
        ([str(good), "-o", str(pattern)], 1),
    ):
        assert main(arguments) == code
        output = capsys.readouterr()
        assert output.out == "" and output.err.startswith("kgt: ") and output.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.py", "good.py"]


def test_usage_errors_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["x.py", "--dtype", "int8"], ["x.py", "--unknown"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_kgt_is_a_command_like_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(ROOT / "examples/patterns/star_2d9s.py"), "--dtype", "float64"]
    assert main([*words, "-o", str(tmp_path / "module")]) == 0
    assert command_line(["kgt", *words, "-o", str(tmp_path / "command")]) == 0
    texts = [(tmp_path / way / "star_2d9s.cl").read_bytes() for way in ("module", "command")]
    assert texts[0] == texts[1]
    capsys.readouterr()
    for wrong, code in ((["nowhere.py"], 2), ([*words, "-o", "/dev/null/x"], 1)):
        assert command_line(["kgt", *wrong]) == code
        output = capsys.readouterr()
        assert output.out == "" and output.err.startswith("controllers: error: ")
        assert output.err.count("\n") == 1


def test_kgt_runs_as_a_module_and_never_imports_pyopencl(tmp_path: Path) -> None:
    code = (
        "import runpy, sys; sys.argv[0] = 'kgt'\n"
        "try: runpy.run_module('controllers.kgt', run_name='__main__')\n"
        "except SystemExit as end: assert not end.code and 'pyopencl' not in sys.modules\n"
    )
    command = [sys.executable, "-c", code, str(PATTERNS[0]), "-o", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True)
    assert len(list(tmp_path.iterdir())) == 1
