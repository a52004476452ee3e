# SPDX-License-Identifier: MIT
"""`controllers compare`: arrays, checkpoints and stores against each other, and what it says."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import controllers as ct
from controllers.cli.main import main
from controllers.contents import comparison

EXTENT = (23, 37)
Said = Callable[..., tuple[int, str, str]]


@ct.step
def diffuse(u: Any, v: Any) -> dict[str, Any]:
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
    return dict(u=u + 0.125 * (around - 4 * u), v=v + u)


def run_of(**options: Any) -> ct.Computation:
    return ct.Computation(
        diffuse, EXTENT, boundary="periodic", u=lambda y, x: y * x, v=0, **options
    )


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    """The code, and what is printed; fields are read in several parts."""
    monkeypatch.setattr(comparison, "AT_ONCE", 100)

    def run(*words: object) -> tuple[int, str, str]:
        code = main(["compare", *map(str, words)])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def saved(path: Path, array: Any) -> Path:
    np.save(path, array)
    return path


def test_arrays_of_the_same_bits_are_the_same(tmp_path: Path, said: Said) -> None:
    values = np.random.default_rng(0).random(EXTENT)
    values[3, 3] = np.nan
    one = saved(tmp_path / "a.npy", values)
    values.view(np.uint64)[3, 3] |= 5       # another NaN
    code, out, err = said(one, saved(tmp_path / "b.npy", values))
    assert (code, err) == (0, "") and "the same bits: a at 1 step" in out


def test_the_first_cell_the_number_and_the_largest_difference_are_named(
    tmp_path: Path, said: Said
) -> None:
    values = np.zeros(EXTENT, np.float32)
    one = saved(tmp_path / "a.npy", values)
    values[4, 30], values[9, 2], values[20, 36] = -0.0, 2.5, -7
    other = saved(tmp_path / "b.npy", values)
    code, out, err = said(one, other)
    assert code == 1 and "differ" in err
    assert (
        "a: 3 of 851 cells differ, the first (4, 30): 0.0 and -0.0; at most by 7, at (20, 36)"
    ) in out
    code, out, _ = said(one, other, "--json")
    (found,) = json.loads(out)["differences"]
    assert code == 1 and found["first"] == [4, 30] and found["differ"] == 3
    values[0, 0] = np.nan
    _, out, _ = said(one, saved(other, values))
    assert "4 of 851" in out and "at most by inf, at (0, 0)" in out


def test_whole_numbers_are_far_apart_by_exactly_what_they_are(
    tmp_path: Path, said: Said
) -> None:
    ends = np.iinfo(np.int64)
    one = saved(tmp_path / "a.npy", np.array([ends.min, 5, 7]))
    _, out, _ = said(one, saved(tmp_path / "b.npy", np.array([ends.max, 5, 6])))
    assert "2 of 3 cells differ, the first (0,)" in out and "1.84467e+19, at (0,)" in out


def test_what_cannot_be_compared_is_an_error_of_its_own(tmp_path: Path, said: Said) -> None:
    one = saved(tmp_path / "a.npy", np.zeros((3, 4)))
    for other, words in (
        (saved(tmp_path / "b.npy", np.zeros((4, 3))), "float64 of 4 x 3 cells"),
        (saved(tmp_path / "c.npy", np.zeros((3, 4), np.float32)), "float32 of 3 x 4 cells"),
        (tmp_path / "none.npy", "none.npy"),
    ):
        code, _, err = said(one, other)
        assert code == 2 and words in err
    assert said(one)[0] == 2


def test_checkpoints_of_unlike_layouts_are_compared(tmp_path: Path, said: Said) -> None:
    for name, places in (("a", 1), ("b", 3)):
        with run_of(places_per_controller=places, dtype="float32") as run:
            run.run(12, checkpoint=(tmp_path / name, ct.every(steps=6)))
            array = run.u.gather()
    code, out, _ = said(tmp_path / "a", tmp_path / "b")
    assert code == 0 and "the same bits: u, v at 2 steps" in out
    last = saved(tmp_path / "last.npy", array)      # of no step: that of the end
    assert said(tmp_path / "a", last)[0] == 2       # which field?
    code, out, _ = said(tmp_path / "a", last, "--field", "u")
    assert code == 0 and "the same bits: u at 1 step" in out
    code, out, _ = said(last, tmp_path / "b", "--field", "v")
    assert code == 1 and out.startswith("step 12, v: 851 of 851 cells differ")
    code, _, err = said(tmp_path / "a", tmp_path / "b", "--field", "w")
    assert code == 2 and "no field 'w' in both" in err
    with run_of(dtype="float32") as run:
        run.run(6)
        run.u[7, 8] += np.float32(0.5)
        run.run(6, checkpoint=(tmp_path / "c", ct.every(steps=6)))
    code, out, _ = said(tmp_path / "a", tmp_path / "c")
    assert code == 1 and out.startswith("step 12, u: ") and "v: " in out
    assert "steps of the first alone: 1" in out


def test_a_damaged_checkpoint_is_not_compared(tmp_path: Path, said: Said) -> None:
    with run_of() as run:
        run.run(3, checkpoint=tmp_path / "a")
    (file,) = (tmp_path / "a").glob("run-1/*/rank-0.cells")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    code, _, err = said(tmp_path / "a", tmp_path / "a")
    assert code == 2 and "damaged" in err


def test_stores_are_compared_step_by_step(tmp_path: Path, said: Said) -> None:
    pytest.importorskip("tensorstore")
    for name, every in (("a", 2), ("b", 4)):
        with run_of(places_per_controller=every // 2) as run:
            run.run(4, output=(tmp_path / f"{name}.zarr", ct.every(steps=every)))
            if name == "b":
                run.v[5, 6] = -1.0
            run.run(4, output=(tmp_path / f"{name}.zarr", ct.every(steps=every)))
    code, out, err = said(tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert code == 1, err
    assert out.startswith("step 8, v: 1 of 851 cells differ, the first (5, 6)")
    assert said(tmp_path / "a.zarr", tmp_path / "a.zarr")[0] == 0
    assert said(tmp_path / "a.zarr", tmp_path / "b.zarr", "--field", "u")[0] == 0
