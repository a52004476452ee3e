# SPDX-License-Identifier: MIT
"""`controllers run` computes what the reference computes, and refuses what it cannot."""
from __future__ import annotations

import errno
import importlib.util
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from mpi_jobs import run_ranks
from sample import sample

from controllers.cli import hash_field, main
from controllers.language.pattern_file import read_patterns
from controllers.program.reference import reference_run
from controllers.settings.domain import bounded
from hitmap.comm import SerialCommunicator
from hitmap.layout import Layout
from hitmap.shape import Shape

SERIAL = SerialCommunicator()
STAR = """\
shape = ((-1, 1), (-1, 1))
pattern = [[0, 1, 0], [1, 2, 1], [0, 1, 0]]
factor = 6
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test works in a folder with a pattern file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "star.py").write_text(STAR, encoding="utf-8")
    (tmp_path / "two.py").write_text(
        "shape_a = ((-1, 1),)\npattern_a = [1, 1, 1]\nfactor_a = 3\n"
        "shape_b = ((0, 1),)\npattern_b = [1, 1]\nfactor_b = 2\n",
        encoding="utf-8",
    )
    return tmp_path


def run(command: str) -> int:
    return main(["run", *command.split()])


def expected(field: np.ndarray, n_steps: int, periodic: tuple[bool, ...]) -> np.ndarray:
    (star,) = read_patterns("star.py")
    return reference_run(star.program(field.dtype.name), field, n_steps, periodic)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_the_output_is_the_reference_run_of_the_input(device: str, dtype: str) -> None:
    field = np.random.default_rng(1).random((13, 9)).astype(dtype)
    np.save("in.npy", field)
    assert run(f"star.py --input in.npy --iterations 5 --output out.npy --device {device}") == 0
    result = np.load("out.npy")
    assert result.dtype == dtype
    assert np.array_equal(result, expected(field, 5, (False, False)))


def test_a_boundary_may_be_given_per_axis() -> None:
    np.save("in.npy", field := np.random.default_rng(2).random((8, 7)).astype("f4"))
    for words in ("fixed periodic", "fixed,periodic"):
        command = f"star.py --input in.npy --iterations 3 --output out.npy --boundary {words}"
        assert run(f"{command} --device reference") == 0
        assert np.array_equal(np.load("out.npy"), expected(field, 3, (False, True)))
    command = "star.py --input in.npy --iterations 3 --output out.npy --boundary mirror fixed:0.5"
    assert run(f"{command} --device reference") == 0
    (star,) = read_patterns("star.py")
    walls = bounded(star.program("float32"), ["mirror", "fixed:0.5"])
    assert np.array_equal(np.load("out.npy"), reference_run(walls, field, 3))


def test_the_input_may_be_converted_and_in_any_order() -> None:
    field = np.asfortranarray(np.arange(42, dtype=">i2").reshape(6, 7))
    np.save("in.npy", field)
    command = "star.py --input in.npy --iterations 2 --output out.npy --device reference"
    assert run(f"{command} --dtype float64") == 0
    assert np.array_equal(np.load("out.npy"), expected(field.astype("f8"), 2, (False, False)))
    assert run(command) == 0
    assert np.array_equal(np.load("out.npy"), expected(field.astype("i2"), 2, (False, False)))


@pytest.mark.parametrize("dtype", sample(["int16", "uint8", "int32", "int64"], 4))
def test_integer_fields_run_and_are_drawn(dtype: str) -> None:
    command = f"star.py --size 9 8 --iterations 1 --dtype {dtype} --device cpu"
    extra = " --plot out.png" if importlib.util.find_spec("matplotlib") else ""
    assert run(f"{command} --output out.npy{extra}") == 0
    start = np.array([hash_field.hashed(index, dtype) for index in range(72)], dtype)
    assert np.array_equal(np.load("out.npy"), expected(start.reshape(9, 8), 1, (False, False)))


@pytest.mark.parametrize("value", [256, -1, 0.5, np.nan])
def test_an_input_that_integers_cannot_hold_is_refused(
    value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("in.npy", np.array([[3, value, 5]] * 3))
    command = "star.py --input in.npy --iterations 0 --device reference"
    assert run(f"{command} --dtype uint8") == 2
    assert re.search("but uint8 takes whole numbers.*float64", capsys.readouterr().err)


def test_integers_need_whole_weights(capsys: pytest.CaptureFixture[str]) -> None:
    Path("scaled.py").write_text("shape = ((0, 0),)\npattern = [0.5]\nfactor = 1\n")
    assert run("scaled.py --size 9 --iterations 1 --device reference --dtype int32") == 2
    assert "0.5 is no whole number" in capsys.readouterr().err


@pytest.mark.parametrize(
    "division",
    [
        "--partition blocks --align 4",
        "--partition weighted-blocks --weights 2,1,3",
        "--weights 1,2,3 --align 3 1",
        "--partition cyclic --block 4 5",
        "--partition cyclic --block 7",
    ],
)
def test_the_output_does_not_depend_on_how_the_field_is_cut(division: str) -> None:
    np.save("in.npy", field := np.random.default_rng(5).random((13, 19)).astype("f4"))
    command = f"star.py --input in.npy --iterations 4 --output out.npy {division}"
    assert run(command + " --device reference" * 3) == 0
    assert np.array_equal(np.load("out.npy"), expected(field, 4, (False, False)))


def test_without_input_the_field_is_a_hash_of_the_index() -> None:
    assert run("star.py --size 6 5 --iterations 0 --output out.npy --device reference") == 0
    values = np.load("out.npy")
    assert values.dtype == np.float32
    assert values.reshape(-1).tolist() == [hash_field.hashed(index) for index in range(30)]
    assert values.min() >= 0 and values.max() < 1 and len(np.unique(values)) == 30


@pytest.mark.parametrize("extent", [(50,), (7, 9), (5, 4, 6), (3, 4, 5, 2)])
def test_the_hash_does_not_depend_on_the_layout(extent: tuple[int, ...]) -> None:
    domain = Shape.of_extent(extent)
    whole = np.zeros(extent, np.float64)
    hash_field.fill(whole, domain, extent)
    for box in Layout.blocks(domain, 4).owned:
        part = np.zeros(box.extent, np.float32)
        hash_field.fill(part, box, extent)
        assert np.array_equal(part, whole[box.slices(domain.lower)])


@pytest.mark.parametrize(
    "source",
    [
        "NEW(u) = (NEAR(u, -1, 0) + NEAR(u, 0, -1) + 2 * HERE(u)\n"
        "          + NEAR(u, 0, 1) + NEAR(u, 1, 0)) / 6.0f;\n",
        "// as a whole kernel, with a function of its own\n"
        "float star(float n, float w, float c, float e, float s) {\n"
        "    return (n + w + 2 * c + e + s) / 6.0f;\n}\n"
        "__kernel void star_step(__global const float *u, __global float *u_new, TILE(u), BOX) {\n"
        "    CELL;\n    NEW(u) = star(NEAR(u, -1, 0), NEAR(u, 0, -1), HERE(u), NEAR(u, 0, 1),\n"
        "                  NEAR(u, 1, 0));\n}\n",
    ],
    ids=["body", "whole"],
)
def test_generic_and_own_kernel_write_what_the_specialised_one_writes(source: str) -> None:
    Path("own.cl").write_text(source, encoding="utf-8")
    np.save("in.npy", field := np.random.default_rng(5).random((17, 12)).astype("f4"))
    for kernel in ("specialised", "generic", "own.cl"):
        command = f"star.py --input in.npy --iterations 3 --output out.npy --kernel {kernel}"
        assert run(f"{command} --device cpu") == 0
        assert np.array_equal(np.load("out.npy"), expected(field, 3, (False, False))), kernel


@pytest.mark.whole
def test_an_own_kernel_runs_on_two_ranks() -> None:
    Path("own.cl").write_text("NEW(u) = HERE(u) + NEAR(u, 1, 0);")
    command = "run star.py --size 30 4 --iterations 3 --dtype int64 --kernel own.cl"
    assert main([*command.split(), "--output", "one.npy"]) == 0
    job = run_ranks(2, ["-m", "controllers", *command.split(), "--output", "two.npy"])
    assert job.returncode == 0, job.stderr
    assert np.array_equal(np.load("one.npy"), np.load("two.npy"))


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("NEW(u) = NEAR(u, 1, 1);", 2, r"'own' \(own.cl\).* at the offset \(1, 1\)"),
        ("NEW(u) = 1\n+ q;", 2, r"'own' \(own.cl\) does not compile"),
        ("// nothing", 2, "--kernel: own.cl holds no OpenCL C"),
    ],
)
def test_a_kernel_that_cannot_be_used_is_refused(
    source: str, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("own.cl").write_text(source, encoding="utf-8")
    assert run("star.py --size 9 9 --iterations 1 --device cpu --kernel own.cl") == code
    assert re.search(message, capsys.readouterr().err)


def test_one_of_several_stencils_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("two.py --size 9 --iterations 1 --device reference") == 2
    assert "--stencil NAME; it has a, b" in capsys.readouterr().err
    assert run("two.py --size 9 --iterations 1 --device reference --stencil b") == 0
    assert run("two.py --size 9 --iterations 1 --device reference --stencil c") == 2


def test_a_stencil_of_many_terms_runs() -> None:
    Path("wide.py").write_text(
        f"shape = ((0, 1500),)\npattern = {[1] * 1501}\nfactor = 1501\n", encoding="utf-8"
    )
    assert run("wide.py --size 2000 --iterations 1 --device reference") == 0


def test_numbers_beyond_the_dtype_are_an_error_of_usage() -> None:
    Path("big.py").write_text("shape = ((0, 0),)\npattern = [1e99]\nfactor = 2\n")
    assert run("big.py --size 9 --iterations 1 --device reference --dtype float64") == 0
    assert run("big.py --size 9 --iterations 1 --device reference") == 2


def test_a_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("star.py --size 40 30 --iterations 4 --device reference --device reference") == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].split()[:4] == ["place", "rank", "device", "share"]
    assert [line.split()[:4] for line in lines[1:3]] == [
        ["0", "0", "reference", "50.0%"],
        ["1", "0", "reference", "50.0%"],
    ]
    assert lines[3].startswith("4 steps of 1200 cells in ")
    assert "step 4 of 4 (100%)" in printed.err


def test_json_is_one_line_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    command = "star.py --size 30 20 --iterations 4 --device reference --device reference --json"
    assert run(f"{command} --weights 1,2") == 0
    (line,) = capsys.readouterr().out.splitlines()
    report = json.loads(line)
    assert report["steps"] == 4
    assert report["seconds"] == pytest.approx(4 * report["seconds_per_step"])
    assert report["seconds"] > 0
    assert report["cells_per_s"] == pytest.approx(4 * 600 / report["seconds"])
    assert [place["cells"] for place in report["places"]] == [200, 400]
    assert sum(place["share"] for place in report["places"]) == pytest.approx(1)


def test_help_and_version_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    text = capsys.readouterr().out
    for option in ("input", "size", "plot", "boundary", "weights", "overlap", "kernel"):
        assert f"--{option} " in text
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("controllers ")


def test_a_run_draws_its_result() -> None:
    pytest.importorskip("matplotlib")
    assert run("star.py --size 30 20 --iterations 1 --device reference --plot p.svg") == 0
    assert "star: 1 step" in Path("p.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("star.py --iterations 3", "--input --size"),
        ("star.py --size 9 9", "--iterations"),
        ("star.py --size 9 0 --iterations 3", "at least 1 cell"),
        ("star.py --size 9 9 --iterations -3", "not negative"),
        ("star.py --size 9 --iterations 3", "2 axes"),
        ("star.py --size 9 9 --iterations 3 --dtype int8", "int8"),
        ("star.py --size 9 9 --iterations 3 --boundary open", "open"),
        ("star.py --size 9 9 --iterations 3 --boundary fixed fixed fixed", "2 axes"),
        ("star.py --size 9 9 --iterations 3 --partition rings", "rings"),
        ("star.py --size 9 9 --iterations 3 --partition weighted", "weights"),
        ("star.py --size 9 9 --iterations 3 --weights 1,x", "1,x"),
        ("star.py --size 9 9 --iterations 3 --weights 1,2", "1 places.*got 2"),
        ("star.py --size 9 9 --iterations 3 --weights 1 --partition bands", "weighted"),
        ("star.py --size 9 9 --iterations 3 --partition weighted-blocks", "weights"),
        ("star.py --size 9 9 --iterations 3 --partition cyclic", "needs it.*block None"),
        ("star.py --size 9 9 --iterations 3 --block 3", "cyclic"),
        ("star.py --size 9 9 --iterations 3 --partition cyclic --block 3 3 3", "2 axes"),
        ("star.py --size 900 900 --iterations 3 --partition cyclic --block 1", "2048.*larger"),
        ("star.py --size 9 9 --iterations 3 --align 0", "at least 1 cell"),
        ("star.py --size 9 9 --iterations 3 --align 2 2 2", "2 axes"),
        ("star.py --size 9 9 --iterations 3 --overlap maybe", "maybe"),
        ("star.py --size 9 9 --iterations 3 --device 0", "kind or name"),
        ("star.py --size 9 9 --iterations 3 --output no/out.npy", "no folder 'no'"),
        ("star.py --size 9 9 --iterations 3 --plot no/p.png", "no folder 'no'"),
        ("star.py --size 9 9 --iterations 3 --plot p.xyz", "must end with.*png"),
        ("star.py --size 9 9 --iterations 3 --plot p.png --plot-at z=3", "no axis 'z'.*y, x"),
        ("star.py --size 9 9 --iterations 3 --plot p.png --plot-at y=9", "none of the 9 cells"),
        ("star.py --size 9 9 --iterations 3 --plot p.png --plot-at 9", "such as z=10"),
        ("star.py --size 9 9 --iterations 3 --plot p.png --plot-field v", "no field 'v'"),
        ("star.py --size 9 9 --iterations 3 --plot p.png --plot-limits 1,0", "the first below"),
        ("star.py --size 9 9 --iterations 3 --plot p.png --plot-limits 1", "such as 0,1.5"),
        ("star.py --size 9 9 --iterations 3 --plot-every 2", "give --plot FILE"),
        ("star.py --size 9 9 --iterations 3 --output .", "is a folder"),
        ("star.py --input gone.npy --iterations 3", "gone.npy: No such file"),
        ("star.py --input star.py --iterations 3", "star.py: .*give a .npy"),
        ("gone.py --size 9 9 --iterations 3", "gone.py: No such file"),
        ("bad.py --size 9 9 --iterations 3", "bad.py:1: "),
        ("star.py --size 9 9 --iterations 3 --turbo", "--turbo"),
        ("star.py --size 9 9 --iterations 3 --kernel fast", "specialised, generic.*'fast'"),
        ("star.py --size 9 9 --iterations 3 --kernel no.cl", "no.cl: No such file"),
    ],
)
def test_an_error_of_usage_is_said_in_one_line_and_ends_with_2(
    command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.py").write_text("import os\n", encoding="utf-8")
    device = "" if "--device" in command else " --device reference"
    assert run(command + device) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("controllers: error: ")
    assert re.search(message, line)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 4), "c8"), "complex64"),
        (np.zeros((4, 4), "f2"), "float16.*--dtype"),
        (np.zeros(4, "f4"), "2 axes"),
        (np.zeros((4, 0), "f4"), ""),
        (np.array([[None]]), "Python objects|pickle"),
    ],
)
def test_an_input_that_does_not_fit_is_refused(
    array: np.ndarray, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("in.npy", array)
    assert run("star.py --input in.npy --iterations 1 --device reference") == 2
    assert re.search(message, capsys.readouterr().err)


def test_a_value_beyond_the_range_of_the_dtype_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    np.save("in.npy", np.full((4, 4), 1e300))
    command = "star.py --input in.npy --iterations 1 --device reference"
    assert run(f"{command} --dtype float32") == 2
    assert "float32" in capsys.readouterr().err


def test_a_full_disk_ends_with_1_and_leaves_the_old_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    Path("out.npy").write_text("old", encoding="utf-8")
    monkeypatch.setattr(os, "pwrite", full)
    assert run("star.py --size 9 9 --iterations 1 --device reference --output out.npy") == 1
    assert "out.npy was not written: No space left on device" in capsys.readouterr().err
    assert sorted(p.name for p in Path().iterdir()) == ["out.npy", "star.py", "two.py"]
    assert Path("out.npy").read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("division", sample([
    "--weights 1,3", "--partition cyclic --block 16 9"
], 2))  # fmt: skip
def test_two_ranks_write_what_one_rank_writes(division: str) -> None:
    np.save("in.npy", field := np.random.default_rng(4).random((31, 9)).astype("f4"))
    command = f"run star.py --input in.npy --iterations 7 {division} --json --output out.npy"
    job = run_ranks(2, ["-m", "controllers", *command.split()])
    assert job.returncode == 0, job.stderr
    report = json.loads(job.stdout.splitlines()[-1])
    assert [place["rank"] for place in report["places"]] == [0, 1]
    assert np.array_equal(np.load("out.npy"), expected(field, 7, (False, False)))
    assert job.stderr.count("step 7 of 7") == 1


@pytest.mark.whole      # by default, test_bad_input has the like
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("run star.py --size 9 9 --iterations 1 --device nothing", 2),
        ("run star.py --size 9 9", 2),
        ("run star.py --size 9 9 --iterations 1 --output no/out.npy", 2),
        ("run star.py --size 9 9 --iterations 1 --weights 1,2,3", 2),
    ],
)
def test_an_error_on_all_ranks_is_said_once(command: str, code: int) -> None:
    job = run_ranks(2, ["-m", "controllers", *command.split()])
    assert job.returncode == code, job.stderr
    assert job.stderr.count("controllers: error:") == 1
    assert "Traceback" not in job.stderr


@pytest.mark.whole
def test_an_error_on_one_rank_names_it_and_ends_the_job() -> None:
    np.save("in.npy", np.array([[1.0] * 8] * 4 + [[1e300] * 8] * 4))
    command = "run star.py --input in.npy --dtype float32 --iterations 1000 --device reference"
    job = run_ranks(2, ["-m", "controllers", *command.split()])
    assert job.returncode != 0
    assert "controllers: error: --input: rank 1: in.npy: cell (4, 0) holds 1e+300" in job.stderr
    assert "Traceback" not in job.stderr
