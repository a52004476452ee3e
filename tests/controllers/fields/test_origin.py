# SPDX-License-Identifier: MIT
"""Strided and reversed slices assigned to others, within a grid and between two: NumPy's bits."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import cases, sample

import controllers as ct
from hitmap import SerialCommunicator

RANKS = """from hitmap.comm import default_communicator
from test_origin import moved_about
for seed in range(12):
    moved_about(seed, default_communicator(), 3)
print("all right")
"""


def some(rng: np.random.Generator, n_cells: int, count: int) -> slice:
    """So many cells in a row, or with steps, forwards or backwards."""
    step = int(rng.integers(1, max(2, n_cells // max(1, count)) + 1))
    reach = (count - 1) * step
    if reach >= n_cells:
        step, reach = 1, count - 1
    first = int(rng.integers(n_cells - reach))
    if rng.random() < 0.5:
        return slice(first, first + reach + 1, step)
    return slice(first + reach, first - 1 if first else None, -step)


def moved_about(seed: int, comm: Any, n_places: int, **more: Any) -> None:
    """Some assignments between two fields of one grid and one of another, as NumPy does them."""
    rng = np.random.default_rng(seed)
    fine, coarse = (13, 17), (7, 9)
    right: dict[str, npt.NDArray[Any]] = {
        "u": rng.random(fine), "w": rng.random(fine), "v": rng.random(coarse)
    }  # fmt: skip
    options: dict[str, Any] = {"comm": comm, "devices": "reference", **more}
    one = ct.Computation(
        [], fine, u=right["u"], w=right["w"], places_per_controller=n_places, **options
    )
    other = ct.Computation([], coarse, v=right["v"], places_per_controller=2, **options)
    with one, other:
        fields = {"u": one.u, "w": one.w, "v": other.v}
        for _ in range(6):
            to, of = (str(name) for name in rng.choice([*right], 2))
            shapes = zip(right[to].shape, right[of].shape)
            counts = [int(rng.integers(1, min(pair) + 1)) for pair in shapes]
            into, out = (
                tuple(some(rng, n, count) for n, count in zip(right[name].shape, counts))
                for name in (to, of)
            )
            right[to][into] = right[of][out].copy()
            fields[to][into] = fields[of][out]
        fields["v"][...] = fields["u"][::2, ::-2]
        right["v"][...] = right["u"][::2, ::-2]
        for name, values in right.items():
            assert np.array_equal(fields[name].get("all"), values), name


@pytest.mark.parametrize("seed", cases(2, 40))
def test_slices_go_from_place_to_place(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controllers.fields.one_field.OneField._write", None)  # nothing comes whole
    moved_about(seed, SerialCommunicator(), 1 + seed % 5)


@pytest.mark.parametrize("seed", sample(range(12), 12))
def test_on_devices_with_memory_of_their_own(seed: int) -> None:
    moved_about(seed, SerialCommunicator(), 1 + seed % 3, devices="cpu", zero_copy=False)


def test_slices_that_do_not_fit_are_refused_as_by_numpy() -> None:
    with ct.Computation([], (6, 5), u=1, v=2, w=0, dtype={"w": "int32"}) as run:
        with pytest.raises(ValueError, match=r"\(6, 1\) do not fit the cells \(6,\)"):
            run.u[:, 0] = run.v[:, 0:1]
        run.u[0] = run.v[1:2, ::-1]
        run.u[::2, 0] = run.w[::2, 1]       # of another dtype: by way of the host
        assert run.u[0, 1] == 2 and run.u[2, 0] == 0


@pytest.mark.whole
def test_two_ranks_send_each_other_what_changes_place(tmp_path: Path) -> None:
    (tmp_path / "move.py").write_text(RANKS)
    job = run_ranks(2, [str(tmp_path / "move.py")], env=helpers_path(Path(__file__).parent))
    assert job.stdout.count("all right") == 2, job.stdout + job.stderr
