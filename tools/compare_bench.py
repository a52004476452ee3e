# SPDX-License-Identifier: MIT
"""Compare two results of `controllers bench`; a loss over 10 % ends with the exit code 1.

    python tools/compare_bench.py OLD NEW [--loss 10] [--history tools/bench_history.csv]

OLD and NEW are files of `--csv`, or commits in the history (tools/record_bench.py).  Machines have
moods, so speeds are compared relative to what took turns with them: the device's copy, and the
comparator of the case, its base, if both results have the same.  A loss counts when it shows by
all of these.
"""
from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from controllers.report.table import format_table

HISTORY = Path(__file__).with_name("bench_history.csv")
OURS = "controllers"    # what the names of the library's own figures begin with
KEY = ("device", "stencil", "dtype", "extent", "contestant")
MEASURES = ("of_copy", "ratio")

Row = dict[str, str]
Figures = dict[tuple[str, ...], Row]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    parser.add_argument("--loss", type=float, default=10.0, help="per cent (default: 10)")
    parser.add_argument("--history", type=Path, default=HISTORY)
    options = parser.parse_args()
    try:
        old, new = (figures(word, options.history) for word in (options.old, options.new))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    both = [key for key in new if key in old]
    if not both:
        print("the two have no figure in common", file=sys.stderr)
        return 2
    rows, n_lost = [], 0
    for key in both:
        same = old[key]["base"] == new[key]["base"]
        changes = [change(old[key], new[key], name) for name in MEASURES if same or name != "ratio"]
        lost = max(changes) < -options.loss / 100
        n_lost += lost
        told = [f"{value:+.1%}" for value in changes] + ([] if same else ["another base"])
        rows.append((*key, *told, "LOSS" if lost else ""))
    head = (*KEY, "of copy", f"of {new[both[0]]['base']}", "")
    print(format_table(head, rows, left=(*KEY, "")))
    print(f"{n_lost} of {len(rows)} figures lost more than {options.loss:g} %")
    return 1 if n_lost else 0


def figures(word: str, history: Path) -> Figures:
    """The library's own, of a file or of a commit; of several records the last one."""
    is_file = Path(word).suffix == ".csv"
    with Path(word if is_file else history).open(encoding="utf-8", newline="") as file:
        found = [row for row in csv.DictReader(file) if is_file or row["commit"] == word]
    if not found:
        raise ValueError(f"there is no commit {word!r} in {history}, and it is no .csv file")
    return {
        tuple(row[name] for name in KEY): row for row in found if row["contestant"].startswith(OURS)
    }


def change(old: Row, new: Row, measure: str) -> float:
    """Relative: -0.1 for a loss of 10 %."""
    return float(new[measure]) / float(old[measure]) - 1


if __name__ == "__main__":
    sys.exit(main())
