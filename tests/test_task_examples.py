# SPDX-License-Identifier: MIT
"""The examples of tasks give what plain NumPy gives, alone and on two ranks."""
from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import run_ranks

import controllers as ct

EXAMPLES = Path(__file__).parents[1] / "examples"


def main_of(name: str) -> Any:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]


def test_the_histogram_of_images_of_unlike_sizes_is_numpys() -> None:
    random = np.random.default_rng(2)
    images = [random.random(random.integers(5, 40, 2), np.float32) for _ in range(7)]
    counts, corrected = main_of("images")(images)
    for image, new in zip(images, corrected, strict=True):
        assert np.array_equal(new, image * image)
    whole = np.concatenate([(image * image).ravel() for image in images])
    assert np.array_equal(counts, np.histogram(whole, bins=8, range=(0, 1))[0])


def test_spectra_taken_beside_the_run_are_those_of_its_steps() -> None:
    start = np.random.default_rng(2).random((30, 20), np.float32)
    names = runpy.run_path(str(EXAMPLES / "analysed.py"))
    found = names["main"](start, n_steps=6, every=2)
    with ct.Computation(names["heat"], start.shape, boundary="periodic", u=start) as run:
        for spectrum in found:
            run.run(2)
            assert np.array_equal(spectrum, names["spectrum"](run.u.get()))
    assert len(found) == 3


@pytest.mark.whole
@pytest.mark.parametrize("name", ["images", "analysed"])
def test_they_run_on_two_ranks(name: str) -> None:
    done = run_ranks(2, EXAMPLES / f"{name}.py")
    assert done.returncode == 0 and done.stdout, done.stderr
