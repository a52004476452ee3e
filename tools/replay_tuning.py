# SPDX-License-Identifier: MIT
"""How near searches come to the optimum of recorded tuning tables, in a tenth of the trials.

    python tools/replay_tuning.py [TABLE.json ...] [--synthetic N]

Without tables, those that the tests replay.  Printed: times relative to the best one of the table,
of the default, and the least and the largest of 9 seeds of each search: from the default, and, for
a search that has a way to go, from the configuration in the middle of the table.

With --synthetic, of N made-up programs on made-up machines instead: how near each search comes in a
fifth of the trials, and how many it takes to 0.98 of the optimum.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

from controllers import kgt
from controllers.tuning.search import search_named
from controllers.tuning.space import Space
from controllers.tuning.table import Table
from controllers.tuning.trials import Budget, tune

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from synthetic import made_cases, synthetic_reached

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


def print_synthetic(n_cases: int) -> None:
    """For each search the distance to the optimum, and the trials that near it takes."""
    for search in ("hill_climb", "dichotomic", "random"):
        found = [synthetic_reached(*case, search) for case in made_cases(n_cases)]
        shares = sorted(one.share for one in found)
        enough = sorted(one.n_enough for one in found if one.n_enough is not None)
        print(
            f"{search}: {shares[0]:.3f} to {shares[-1]:.3f} of the optimum in "
            f"{found[0].n_tried} of {found[0].n_ways} trials; 0.98 of it in {len(enough)} of "
            f"{n_cases} programs, after {median(enough):.0f} trials, {enough[-1]} at most"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="*", type=Path, metavar="TABLE.json")
    parser.add_argument("--synthetic", type=int, metavar="N", help="made-up programs instead")
    given = parser.parse_args()
    if given.synthetic:
        print_synthetic(given.synthetic)
        return
    for path in given.tables or sorted(TABLES.glob("*.json")):
        table = Table.read(path)
        default = next(iter(table.ratios))
        print(f"{path.stem}: default {1 / table.optimum:.2f}")
        for name, start in (("default", default), ("middle", middle(table))):
            for search in ("hill_climb", "dichotomic", "random"):
                found = [reached(table, start, search, seed) for seed in SEEDS]
                print(f"  {search} from the {name}: {min(found):.2f} to {max(found):.2f}")


if __name__ == "__main__":
    main()
