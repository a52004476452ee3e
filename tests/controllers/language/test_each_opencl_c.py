# SPDX-License-Identifier: MIT
"""Items in OpenCL C: users' texts on devices, and the functions that say what they mean."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from item_runs import ItemRun, opened

import controllers as ct
from controllers.kgt import choose, generate
from controllers.program.items import ArrayKind

NEAREST = """
    VALUE least = INFINITY;
    for (long j = 0; j < ROWS(every); ++j) {
        VALUE sum = 0;
        for (int k = 0; k < 3; ++k) {
            d[k] = every(j, k) - x(k);
            sum += d[k] * d[k];
        }
        if (sum + (VALUE)least_ever < least) {
            least = sum + (VALUE)least_ever;
            which_new(0) = j + INDEX(0);
        }
    }
    far_new(0) = least;
"""


def by_hand(
    x: ct.Row, every: ct.All, *, least_ever: float = 0.5, i: ct.Index
) -> ct.Row:
    sums = ((every - x) ** 2).sum(axis=1) + least_ever
    return dict(far=sums.min(), which=sums.argmin() + i)


@pytest.mark.parametrize("from_file", [False, True])
def test_a_users_text_has_the_bits_of_its_function_on_any_places(
    from_file: bool, tmp_path: Path
) -> None:
    text: str | Path = NEAREST
    if from_file:
        text = tmp_path / "nearest.cl"
        text.write_text(NEAREST)
    nearest = ct.each(opencl_c=text, private=dict(d=("float32", 3)))(by_hand)
    random = np.random.default_rng(0)
    arrays = {
        "x": random.normal(size=(20, 3)).astype("f4"),
        "every": random.normal(size=(30, 3)).astype("f4"),
    }
    right = nearest(*arrays.values(), least_ever=0.25)
    run = ItemRun(nearest, arrays, [opened("cpu"), opened("cpu")], weights=(1, 2, 1))
    for name, values in run.results(least_ever=0.25).items():
        assert values.dtype == right[name].dtype and np.array_equal(values, right[name])


def test_the_text_runs_on_devices_and_the_function_in_the_reference() -> None:
    @ct.each(opencl_c="result_new(0) = x(0) + line(ROWS(line) - 1, 0) + 1;")
    def other(x: ct.Row, line: ct.All) -> ct.Row:
        return x + line[-1]

    arrays = {"x": np.float64([1, 2]), "line": np.float64([5, 6, 7])}
    assert other(*arrays.values()).tolist() == [8, 9]
    assert ItemRun(other, arrays, [opened("cpu")]).results()["result"].tolist() == [9, 10]
    made = other.lowered({name: ArrayKind(a.shape, a.dtype.name) for name, a in arrays.items()})
    (stage,) = made.program.stages
    config = choose(made.program, stage, "gpu")
    assert "around OpenCL C (test_each_opencl_c.py:" in config.origin(stage)
    assert '#line' in generate(made.program, stage, config).source


def test_arrays_for_each_item_are_said_and_checked() -> None:
    kinds = {"x": ArrayKind((9, 3), "float32"), "every": ArrayKind((9, 3), "float32")}
    made = ct.each(opencl_c=NEAREST, private=dict(d=("float32", 3)))(by_hand).lowered(kinds)
    (stage,) = made.program.stages
    assert "12 bytes for each item" in choose(made.program, stage, "cpu").origin(stage)
    with pytest.raises(ValueError, match="give that as opencl_c="):
        ct.each(private=dict(d=("float32", 3)))
    with pytest.raises(ValueError, match="elements of 'd'"):
        ct.each(opencl_c=NEAREST, private=dict(d=("float32", 0)))
    with pytest.raises(ValueError, match="no OpenCL C"):
        ct.each(opencl_c="  ")


def test_an_error_of_the_compiler_names_the_users_line() -> None:
    @ct.each(opencl_c="result_new(0) = x(0) +\n    nowhere;")
    def wrong(x: ct.Row) -> ct.Row:
        return x

    with pytest.raises(ct.BuildError, match="nowhere"):
        ItemRun(wrong, {"x": np.float32([1])}, [opened("cpu")])
