# SPDX-License-Identifier: MIT
"""Append what `controllers bench --csv` wrote to the history of results, with the commit.

    python -m controllers bench --csv now.csv
    python tools/record_bench.py now.csv [--commit NAME] [--history tools/bench_history.csv]

`tools/compare_bench.py` compares two commits of the history.
"""
from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys
import time
from pathlib import Path

from controllers.bench.results import COLUMNS
from hitmap.files import replacing

HISTORY = Path(__file__).with_name("bench_history.csv")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("results", type=Path, metavar="RESULTS.csv")
    parser.add_argument("--commit", help="its name (default: git's, short, of the work tree)")
    parser.add_argument("--history", type=Path, default=HISTORY)
    options = parser.parse_args()
    with options.results.open(encoding="utf-8", newline="") as file:
        found = [*csv.DictReader(file)]
    if not found or set(found[0]) != set(COLUMNS):
        print(f"{options.results}: is no CSV of `controllers bench`", file=sys.stderr)
        return 2
    commit = options.commit or subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    columns = ("commit", "date", *COLUMNS)
    old = options.history.read_text("utf-8") if options.history.exists() else ""
    text = io.StringIO(old)
    text.seek(0, io.SEEK_END)
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    if not old:
        writer.writeheader()
    date = time.strftime("%Y-%m-%d")
    writer.writerows({"commit": commit, "date": date, **row} for row in found)
    with replacing(options.history) as temporary:
        temporary.write_text(text.getvalue(), "utf-8")
    print(f"{len(found)} figures of {commit} appended to {options.history}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
