# SPDX-License-Identifier: MIT
"""What earlier runs have seen of devices and of sets of them: where later ones begin."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import controllers as ct
from controllers.balance.remembered import AT_FIRST, ON_SCRATCH, Remembered, RememberedSets
from controllers.device import reference_device
from controllers.plan.rate import Rate
from hitmap import Shape

MEAN = ct.Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
DOMAIN = Shape.of_extent((1000,))
CPU = replace(reference_device(), kind="cpu", compute_units=4, name="a CPU")


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTROLLERS_ESTIMATES", str(tmp_path))


def test_a_run_that_was_disturbed_does_not_count() -> None:
    assert Remembered(CPU, MEAN, DOMAIN).load() is None
    for factor in (1, 9, 1, 1):
        Remembered(CPU, MEAN, DOMAIN).store({500: 2.0 * factor, 250: 1.5 * factor})
    found = Remembered(CPU, MEAN, DOMAIN).load()
    assert found is not None
    assert (found.fixed_s, found.cell_s) == pytest.approx((1.0, 0.002))


def test_a_line_that_no_device_has_is_noise() -> None:
    Remembered(CPU, MEAN, DOMAIN).store({500: 2.0, 250: 1.95})
    assert Remembered(CPU, MEAN, DOMAIN).load() == Rate(0.0, 2.0 / 500)


def test_times_on_scratch_or_of_first_windows_count_where_there_are_no_others() -> None:
    Remembered(CPU, MEAN, DOMAIN).store({100: 3.0}, ON_SCRATCH)
    assert Remembered(CPU, MEAN, DOMAIN).load() == Rate(0.0, 0.03)
    Remembered(CPU, MEAN, DOMAIN).store({200: 4.0}, AT_FIRST)
    assert Remembered(CPU, MEAN, DOMAIN).load() == Rate(0.0, 0.02)
    Remembered(CPU, MEAN, DOMAIN).store({500: 5.0})
    assert Remembered(CPU, MEAN, DOMAIN).load() == Rate(0.0, 0.01)


def test_parts_programs_and_extents_are_apart() -> None:
    first, second = (CPU.divided((2, 2), index) for index in (0, 1))
    Remembered(first, MEAN, DOMAIN).store({500: 2.0})
    assert Remembered(first, MEAN, Shape.of_extent((1100,))).load() == Rate(0.0, 0.004)
    assert Remembered(first, MEAN, Shape.of_extent((9000,))).load() is None
    assert Remembered(second, MEAN, DOMAIN).load() is None
    assert Remembered(CPU.divided((3, 1), 0), MEAN, DOMAIN).load() is None, "other units"
    gpus = replace(CPU, kind="gpu", number=0), replace(CPU, kind="gpu", number=1)
    Remembered(gpus[0], MEAN, DOMAIN).store({500: 2.0})
    assert Remembered(gpus[1], MEAN, DOMAIN).load() is None
    other = replace(MEAN, name="another")
    assert Remembered(first, other, DOMAIN).load() is None


def test_sets_of_devices_are_found_again() -> None:
    devices, sets = ["gpu x 1", "cpu y 4"], [(0,), (1,), (0, 1)]
    kept = RememberedSets(devices, MEAN, DOMAIN, "options")
    assert kept.load(sets) == {}
    kept.store({(0,): 0.5, (0, 1): 0.25})
    again = RememberedSets(devices, MEAN, DOMAIN, "options")
    assert again.load(sets) == {(0,): 0.5, (0, 1): 0.25}
    for options, names in (("others", devices), ("options", devices[::-1])):
        assert RememberedSets(names, MEAN, DOMAIN, options).load(sets) == {}


def test_a_set_of_one_half_is_not_that_of_the_other() -> None:
    halves, sets = ["cpu x (1 of 2 cores) 1"] * 2, [(0,), (1,), (0, 1)]
    RememberedSets(halves, MEAN, DOMAIN, "options").store({(0,): 0.5, (1,): 1.5})
    found = RememberedSets(halves, MEAN, DOMAIN, "options").load(sets)
    assert found == {(0,): 0.5, (1,): 1.5}
