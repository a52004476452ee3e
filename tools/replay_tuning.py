# SPDX-License-Identifier: MIT
"""How near searches come to the optimum of recorded tuning tables, in a tenth of the trials.

    python tools/replay_tuning.py [TABLE.json ...]

Without tables, those that the tests replay.  Printed: times relative to the best one of the table,
of the default, and the least and the largest of 9 seeds of `hill_climb` and `random`: from the
default, and, for a search that has a way to go, from the configuration in the middle of the table.
"""
from __future__ import annotations

import argparse
from pathlib import Path

from controllers import kgt
from controllers.tuning.search import search_named
from controllers.tuning.space import Space
from controllers.tuning.table import Table
from controllers.tuning.trials import Budget, tune

TABLES = Path(__file__).resolve().parents[1] / "tests" / "data" / "tuning"
SEEDS = range(9)


def reached(table: Table, start: kgt.Config, search: str, seed: int) -> float:
    """The time of what a search from `start` finds in a tenth of the trials, over the best one."""
    space = Space([start, *table.ratios])
    budget = Budget(trials=(len(space) - 1) // 10)
    best = tune(space, table.measure, budget, search_named(search), seed).best
    ratio = table.ratios[best]
    assert ratio is not None, "a search does not end at what cannot be used"
    return ratio / table.optimum


def middle(table: Table) -> kgt.Config:
    """The configuration that half of all usable ones are slower than."""
    usable = sorted((ratio, number) for number, ratio in enumerate(table.ratios.values()) if ratio)
    return [*table.ratios][usable[len(usable) // 2][1]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="*", type=Path, metavar="TABLE.json")
    for path in parser.parse_args().tables or sorted(TABLES.glob("*.json")):
        table = Table.read(path)
        default = next(iter(table.ratios))
        print(f"{path.stem}: default {1 / table.optimum:.2f}")
        for name, start in (("default", default), ("middle", middle(table))):
            for search in ("hill_climb", "random"):
                found = [reached(table, start, search, seed) for seed in SEEDS]
                print(f"  {search} from the {name}: {min(found):.2f} to {max(found):.2f}")


if __name__ == "__main__":
    main()
