# SPDX-License-Identifier: MIT
"""Searches on spaces whose times are known: made up, or recorded on a device."""
from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from controllers import kgt
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.tuning.search import SEARCHES, search_named
from controllers.tuning.space import Space
from controllers.tuning.table import Table
from controllers.tuning.trials import Budget, Outcome, Trials, tune

TABLES = sorted((Path(__file__).parents[2] / "data" / "tuning").glob("*.json"))


@dataclass(frozen=True)
class Made:
    """A made-up configuration."""

    lanes: int = 4
    group: tuple[int, int] = (32, 4)


GRID = [
    Made(lanes, (x, y)) for lanes in (1, 2, 4, 8) for x in (16, 32, 64, 128) for y in (2, 4, 8)
]
SPACE = Space([Made(), *GRID])


def bowl(made: Made) -> float:
    """Seconds that are least at one place, and longer the further from there."""
    lanes, (x, y) = made.lanes, made.group
    return 1 + abs(lanes - 8) + abs(x - 128) / 16 + abs(y - 2)


class Device:
    """Stands for one; `n_batches` were measured."""

    def __init__(self, useless: Sequence[Made] = (), drift: float = 1.0) -> None:
        self.useless = useless
        self.drift = drift
        self.batches: list[list[Made]] = []

    def measure(self, batch: Sequence[Made]) -> dict[Made, Outcome]:
        self.batches.append([*batch])
        slower = self.drift ** len(self.batches)
        return {m: "useless" if m in self.useless else slower * bowl(m) for m in batch}


def test_a_notch_is_the_nearest_value_of_one_parameter() -> None:
    assert SPACE.parameters == ("lanes", "group[0]", "group[1]")
    assert SPACE.neighbour(Made(), (0, 1)) == Made(8)
    assert SPACE.neighbour(Made(), (1, -1)) == Made(group=(16, 4))
    assert SPACE.neighbour(Made(8), (0, 1)) is None


def test_two_parameters_are_moved_at_once() -> None:
    assert SPACE.neighbour(Made(), (1, 1), (2, -1)) == Made(group=(64, 2))
    assert SPACE.neighbour(Made(), (1, 1), (2, 1)) == Made(group=(64, 8))


def test_values_that_are_no_configuration_are_stepped_over() -> None:
    space = Space([Made(), *(made for made in GRID if made.lanes != 2)])
    assert space.neighbour(Made(4), (0, -1)) == Made(1)
    assert space.neighbour(Made(1), (0, 1)) == Made(4)


def test_a_space_without_a_default_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one configuration"):
        Space([])


@pytest.mark.parametrize("name", SEARCHES)
def test_without_a_limit_everything_is_tried_once_and_the_best_is_found(name: str) -> None:
    device = Device()
    trials = tune(SPACE, device.measure, Budget(), search_named(name))
    tried = [made for batch in device.batches for made in batch if made != SPACE.default]
    assert sorted(map(repr, tried)) == sorted(repr(made) for made in GRID if made != Made())
    assert trials.best == Made(8, (128, 2))
    assert trials.seconds(trials.best) == pytest.approx(1)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("n_trials", [0, 1, 5, 17])
def test_no_more_is_tried_than_the_budget_allows(name: str, n_trials: int) -> None:
    device = Device()
    trials = tune(SPACE, device.measure, Budget(trials=n_trials), search_named(name))
    assert len(trials.ratios) == 1 + n_trials
    assert sum(len(batch) - 1 for batch in device.batches) == n_trials


@pytest.mark.parametrize("name", SEARCHES)
def test_without_time_the_default_stays(name: str) -> None:
    device = Device()
    trials = tune(SPACE, device.measure, Budget(seconds=0), search_named(name))
    assert (trials.best, device.batches) == (SPACE.default, [])


@pytest.mark.parametrize("name", SEARCHES)
def test_a_machine_that_becomes_slower_does_not_mislead(name: str) -> None:
    trials = tune(SPACE, Device(drift=1.5).measure, Budget(), search_named(name))
    assert trials.best == Made(8, (128, 2))
    assert all(r == pytest.approx(bowl(m) / bowl(Made())) for m, r in trials.ratios.items())


@pytest.mark.parametrize("name", SEARCHES)
def test_what_cannot_be_used_never_wins(name: str) -> None:
    device = Device(useless=[made for made in GRID if made.lanes == 8])
    trials = tune(SPACE, device.measure, Budget(), search_named(name))
    assert trials.best == Made(4, (128, 2))
    assert set(trials.discarded) == set(device.useless)
    assert set(trials.discarded.values()) == {"useless"}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_default_that_cannot_be_used_ends_the_search(name: str) -> None:
    device = Device(useless=[Made()])
    trials = tune(SPACE, device.measure, Budget(), search_named(name))
    assert len(device.batches) == 1
    assert trials.seconds(trials.best) == float("inf")


def test_a_single_valley_is_halved() -> None:
    space = Space([Made(20), *(Made(n) for n in range(64))])
    for best in range(64):
        trials = Trials(space, search_named("dichotomic"))
        while trials.best.lanes != best:
            trials.tell({made: 1.0 + abs(made.lanes - best) for made in trials.batch()})
        assert len(trials.ratios) <= 1 + 2 * 6


def test_the_climb_goes_straight_up() -> None:
    device = Device()
    trials = Trials(SPACE, search_named("hill_climb"))
    while trials.best != Made(8, (128, 2)):
        trials.tell(device.measure(trials.batch()))
    assert len(trials.ratios) <= 10      # of 48


def test_the_climb_passes_a_ridge_that_needs_two_parameters() -> None:
    def ridge(batch: Sequence[Made]) -> dict[Made, Outcome]:
        # only the product of the group matters, beside the length of its rows
        return {m: 1 + abs(m.group[0] * m.group[1] - 128) + 10 / m.group[0] for m in batch}

    space = Space([Made(4, (16, 8)), *(made for made in GRID if made.lanes == 4)])
    trials = tune(space, ridge, Budget(trials=8), search_named("hill_climb"))
    assert trials.best == Made(4, (64, 2))


@pytest.mark.parametrize("name", ["hill_climb", "random"])
def test_the_seed_decides_what_chance_does(name: str) -> None:
    def tried(seed: int) -> list[Made]:
        return [*tune(SPACE, Device().measure, Budget(), search_named(name), seed).ratios]

    assert tried(1) == tried(1) != tried(2)


def test_an_unknown_search_is_refused() -> None:
    with pytest.raises(ValueError, match="dichotomic, random, exhaustive, got 'luck'"):
        search_named("luck")


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    made: dict[kgt.Config, float | None] = {
        RowsConfig(rows=2, streaming=True): 1.0, MarchingConfig(): None, CellConfig(): 1.25,
    }  # fmt: skip
    table = Table('a "title"', 0.0125, made)
    table.write(tmp_path / "table.json")
    assert Table.read(tmp_path / "table.json") == table
    assert table.measure([CellConfig()]) == {CellConfig(): pytest.approx(0.015625)}
    assert isinstance(table.measure([MarchingConfig()])[MarchingConfig()], str)


def test_there_are_tables() -> None:
    assert TABLES


@pytest.mark.parametrize("start", ["default", "middle"])
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_the_climb_comes_near_the_optimum_in_under_a_tenth_of_the_trials(
    path: Path, start: str
) -> None:
    table = Table.read(path)
    default, *_ = every = [*table.ratios]
    usable = sorted((ratio, number) for number, ratio in enumerate(table.ratios.values()) if ratio)
    middle = every[usable[len(usable) // 2][1]]     # where half of all are slower
    worst = 1.02 if path.name.startswith("gpu") else 1.05
    assert table.ratios[middle] > worst * table.optimum, "there is a way to go"
    for seed in range(3):
        trials = tune(
            Space([default if start == "default" else middle, *every]), table.measure,
            Budget(trials=(len(every) - 1) // 10), search_named("hill_climb"), seed,
        )  # fmt: skip
        assert table.ratios[trials.best] <= worst * table.optimum


def test_spaces_at_random_are_searched_to_their_end() -> None:
    rng = random.Random(5)
    for _ in range(20):
        every = [Made(n, g) for n, g in itertools.product(range(4), [(1, 2), (2, 1), (3, 5)])]
        some = rng.sample(every, rng.randint(1, len(every)))
        times = {made: rng.random() + 0.1 for made in some}
        trials = tune(
            Space(some), lambda batch, t=times: {m: t[m] for m in batch}, Budget(),
            search_named("hill_climb"),
        )  # fmt: skip
        assert trials.best == min(times, key=times.__getitem__)
