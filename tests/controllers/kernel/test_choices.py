# SPDX-License-Identifier: MIT
"""Which configuration a launch gets: tried now, kept from an earlier search, or the default."""
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from controllers import kgt
from controllers.device import Device
from controllers.device.device import reference_device
from controllers.kernel.choices import Choices
from controllers.kernel.configuration import CACHE_OF_UNIT, launch_of
from controllers.kernel.offer import Generated
from controllers.kernel.winners import VARIABLE, Winner, Winners
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.language.weights import Stencil
from controllers.program.schedule import sweeps_of
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided

MEAN = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
CPU = replace(reference_device(), name="a CPU", kind="cpu", version="1")
GPU = replace(CPU, name="a GPU", kind="gpu")
OFFER = Generated(MEAN, MEAN.stages[0], CPU)
OTHER = RowsConfig(lanes=8, rows=2, band=32)


def launch(*extent: int, pitch: int = 1024) -> kgt.Launch:
    return kgt.Launch({"u": Strided(0, (pitch, 1), extent)})


def choices(folder: Path | None, device: Device = CPU) -> Choices:
    return Choices(device, Winners(device, folder))


def chosen(found: Choices, at: kgt.Launch, device: Device = CPU) -> kgt.Config:
    return cast("kgt.Config", found.configuration(replace(OFFER, device=device), at))


def keep(folder: Path, made: kgt.Config = OTHER, at: kgt.Launch | None = None) -> None:
    found, at = choices(folder), at or launch(500, 900)
    assert found.keep(found.key(OFFER, at), Winner(made, 0.5))


def test_without_a_winner_it_is_the_default(tmp_path: Path) -> None:
    at = launch(500, 900)
    assert chosen(choices(tmp_path), at) == kgt.choose(MEAN, MEAN.stages[0], "cpu", at)
    assert chosen(choices(None), at) == kgt.choose(MEAN, MEAN.stages[0], "cpu", at)


def test_a_winner_is_taken_by_whoever_comes_later(tmp_path: Path) -> None:
    keep(tmp_path)
    assert chosen(choices(tmp_path), launch(500, 900)) == OTHER
    assert chosen(choices(tmp_path), launch(510, 1000)) == OTHER     # about as large


def test_the_names_of_program_and_stage_do_not_matter(tmp_path: Path) -> None:
    keep(tmp_path)
    renamed = replace(MEAN, name="p", stages=(replace(MEAN.stages[0], name="s"),))
    offer = Generated(renamed, renamed.stages[0], CPU)
    assert choices(tmp_path).configuration(offer, launch(500, 900)) == OTHER


@pytest.mark.parametrize(
    "other",
    [
        lambda folder: chosen(choices(folder), launch(2000, 900)),
        lambda folder: chosen(choices(folder), replace(launch(500, 900), exceeds_cache=True)),
        lambda folder: chosen(choices(folder, replace(CPU, version="2")), launch(500, 900)),
        lambda folder: chosen(choices(folder, replace(CPU, compute_units=7)), launch(500, 900)),
        lambda folder: choices(folder).configuration(
            Generated(
                wide := Stencil.of("mean", [(-1, 1)] * 2, [1] * 9, 9).program("float32"),
                wide.stages[0], CPU,
            ),
            launch(500, 900),
        ),
        lambda folder: choices(folder).configuration(OFFER),
    ],
    ids=["extent", "cache", "driver", "cores", "stencil", "no launch"],
)
def test_a_winner_is_for_what_it_was_found_for(
    other: Callable[[Path], kgt.Config], tmp_path: Path
) -> None:
    keep(tmp_path)
    assert other(tmp_path) != OTHER


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:-1],
        lambda content: content.replace(b"rows", b"cols"),
        lambda content: b"",
    ],
)
def test_a_damaged_entry_is_a_miss(
    change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    keep(tmp_path)
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(change(entry.read_bytes()))
    assert chosen(choices(tmp_path), launch(500, 900)) != OTHER


@pytest.mark.parametrize(
    "plain",
    [
        {}, {"strategy": "rows", "lanes": 8, "colour": 3}, {"strategy": "magic"},
        {"strategy": "rows", "lanes": 8, "rows": 5}, {"strategy": "marching", "lanes": 64},
        {"strategy": "rows", "lanes": "8; evil"}, {"strategy": "marching"},
    ],
)  # fmt: skip
def test_an_entry_that_is_no_candidate_is_a_miss(
    plain: dict[str, object], tmp_path: Path
) -> None:
    found, at = choices(tmp_path), launch(500, 900)
    key = found.key(OFFER, at)
    winners = Winners(CPU, tmp_path)
    winners.store(key, Winner(OTHER, 0.5))
    content = json.dumps({"configuration": plain, "seconds": 0.5}).encode()
    entries = winners._entries
    assert entries is not None
    (entry,) = tmp_path.iterdir()
    entry.unlink()
    entries.store((*winners._device, *key), content)
    assert chosen(choices(tmp_path), at) == kgt.choose(MEAN, MEAN.stages[0], "cpu", at)


def test_smaller_boxes_of_the_class_get_it_cut_to_their_size_or_the_default(
    tmp_path: Path,
) -> None:
    pitch = 8192
    at = launch(12, 8000, pitch=pitch)      # extents of 12 to 22 rows are one class
    made = MarchingConfig(4, 16, 0, (32, 4, 1))
    found = choices(tmp_path, GPU)
    found.use(found.key(OFFER, at), made)
    assert chosen(found, launch(17, 8000, pitch=pitch), GPU) == made
    assert chosen(found, at, GPU) == replace(made, steps=8)
    odd = launch(17, 8000, pitch=pitch + 1)     # whose rows are not aligned
    assert chosen(found, odd, GPU) == kgt.choose(MEAN, MEAN.stages[0], "gpu", odd)


def test_what_is_tried_is_forgotten_afterwards(tmp_path: Path) -> None:
    keep(tmp_path)
    found, at = choices(tmp_path), launch(500, 900)
    key = found.key(OFFER, at)
    with found.using(key, CellConfig()):
        assert chosen(found, at) == CellConfig()
    assert chosen(found, at) == OTHER
    with found.using(key, RowsConfig(rows=1)):
        assert chosen(found, at) == RowsConfig(rows=1)
    assert chosen(found, at) == OTHER


def test_the_environment_moves_the_cache_or_turns_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "here"))
    Winners.of(CPU).store(("key",), Winner(OTHER, 0.25))
    assert len([*(tmp_path / "here").iterdir()]) == 1
    assert Winners.of(CPU).load(("key",)) == Winner(OTHER, 0.25)
    assert Winners.of(CPU).load(("another key",)) is None
    assert Winners.of(GPU).load(("key",)) is None
    monkeypatch.setenv(VARIABLE, "off")
    assert Winners.of(CPU).load(("key",)) is None
    assert not Winners.of(CPU).kept


def test_a_core_has_a_share_of_the_cache_that_a_driver_tells_of() -> None:
    mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
    (sweep,) = sweeps_of(mean)
    large, small = (
        (Shape.of_extent((n,)), {"u": Geometry.dense(Shape.of_extent((n,)))})
        for n in (CACHE_OF_UNIT // 2, CACHE_OF_UNIT // 16)
    )
    for placed, units, exceeds in ((large, 2, True), (large, 8, False), (small, 2, False)):
        made = launch_of(mean, sweep, placed, cache_bytes=1 << 40, units=units)
        assert made.exceeds_cache == exceeds
    assert launch_of(mean, sweep, small, cache_bytes=1 << 20, units=2).exceeds_cache
