# SPDX-License-Identifier: MIT
"""How well shares are found: two parts of a device, or two devices, one of which is slowed.

    python tools/measure_balance.py [--device cpu/1,1] [--size 4096] [--cube 256] [--settle 5000]
    python tools/measure_balance.py --change [--out shares.json] [--picture shares.svg]
    python tools/measure_balance.py --device gpu --size 16384 --cube 640      # two GPUs
    python tools/measure_balance.py --device cpu gpu:0 --slower 5 20          # a CPU beside a GPU

The last part, or the last of several devices, is slowed by issuing its launches several times,
which changes no bits.  One row per case: by how much it is slowed, then of two runs of `--settle`
steps, the first where nothing is known of the devices, the second with what that one has kept: the
moves, and the overhead, which is what these steps took beyond those of a run that is given the
shares which the first one has found.  The second run and that one are open at once and run pieces
by turns, so that what disturbs one disturbs both: pieces in which shares changed, and the first
one, count with the whole difference, the others with its median.  What it takes to make each is
compared before, in turns, too, by the least of each: memory that a process has not had before is
slower.  Then
`--steps` further steps of that computation, in `--pieces` of which the median counts, each of so
many that its beginning and its end weigh little: the share of the slow part, the cells per second,
and these relative to the summed speeds of both while they run at the same time without exchange,
each from its first launch to the end of its last one, on the same shares, before and after each of
these pieces; with the least and the most of the pieces.  `busy` is the same relative to what the
kernels of the run itself do while they run (1: nobody waits); `apart` is what both without exchange
have of their summed speeds by the clock: less than 1 where shares that stay as they are do not suit
devices whose speeds change; and `best` what they would have in all pieces with the best shares that
stay, as is known afterwards.
All bits are compared with those of one device alone, the last one.
Last comes what is asked for beside what was found.  On two quiet cores a case takes two
minutes in two dimensions, three and a half in three.

With `--change` the last device becomes slower by 2 in mid-run, with balance="dynamic": the shares
after each `--every` steps, of which a run is made,
as a table, as JSON, and as a picture (by matplotlib); then after
how many windows, each of which ends with a decision, it was at 0.95 of the new speed for good.
"""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from balance_case import Case, best_of_fixed, nothing_exchanged, nothing_known, problem, seconds_of
from changed_speed import draw, recovery

import controllers
from controllers.cli.words import halo_width

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))
from balance_decisions import deciding
from slow_launches import Slowness

HEAD = (
    "                     nothing known       known before\n"
    "case          slower  moves  overhead  moves  overhead  share  expected    Gcells/s  "
    "of the sum  of the pieces   busy  apart   best  same bits"
)


@dataclass(frozen=True)
class Row:
    """A case.  overhead: of a run that knew the devices before, which is asked for."""

    text: str
    moves: int
    overhead: float
    of_sum: float
    same: bool


def asked_beside(rows: Sequence[Row]) -> str:
    """What should come out, and what did."""
    n, moves = len(rows), max(row.moves for row in rows)
    of_sum, overhead = min(row.of_sum for row in rows), max(row.overhead for row in rows)
    good = [sum(row.of_sum >= 0.97 for row in rows), sum(row.moves <= 3 for row in rows),
            sum(row.overhead <= 0.02 for row in rows), sum(row.same for row in rows)]  # fmt: skip
    return (
        f"of the sum: at least {of_sum:.3f} (asked: 0.97; {good[0]} of {n} cases)\n"
        f"moves: at most {moves} (asked: 3; {good[1]} of {n})\n"
        f"overhead, known before: at most {overhead:.1%} (asked: 2%; {good[2]} of {n})\n"
        f"same bits: {good[3]} of {n}"
    )


def measure(options: argparse.Namespace, n_axes: int, dtype: str, times: int) -> Row:
    """One of them."""
    case = Case(options, *problem(options, n_axes, dtype))
    with nothing_known(), Slowness(times, options.device).holding():
        cold, cold_s, first = case.found()
        shares = [place.share for place in cold.places]
        finds = {"weights": "auto", "balance": "start"}
        has = {"weights": shares, "balance": "off"}
        late_s = case.more_to_make(finds, has)
        given, _ = case.opened(**has)
        with given:
            warm, _ = case.opened(**finds)
            with warm:
                late_s, usual_s = case.beside(warm, given, late_s)
                now = [place.share for place in warm.report().places]
                with nothing_exchanged():
                    apart, _ = case.opened(weights=now, balance="off")
                with apart:
                    pieces, others = case.speed(warm, apart)
                report, second = warm.report(), warm.gather()
    same = case.has_right_bits({cold.steps: first, report.steps: second})
    assert cold.balance is not None and report.balance is not None, "two devices"
    of_pieces = [
        2 * one.rate / (before.own + after.own)
        for one, before, after in zip(pieces, others, others[1:])
    ]
    of_sum, busy = median(of_pieces), median(one.rate / one.kernels for one in pieces)
    rate = median(one.rate for one in pieces)
    apart_of_sum, best = median(one.rate / one.own for one in others), best_of_fixed(others)
    share, late, at_first = report.places[-1].share, late_s / usual_s, cold_s / usual_s - 1
    text = (
        f"{n_axes}d {dtype:9}  {times:6}  {cold.balance.moves:5}  {at_first:8.1%}  "
        f"{report.balance.moves:5}  {late:8.1%}  {share:5.1%}  "
        f"{1 / (1 + times):8.1%}  {rate / 1e9:10.3f}  {of_sum:10.3f}  "
        f"{min(of_pieces):5.2f} to {max(of_pieces):4.2f}  {busy:5.3f}  "
        f"{apart_of_sum:5.3f}  {best:5.3f}  {'yes' if same else 'NO':>9}"
    )
    return Row(text, max(cold.balance.moves, report.balance.moves), late, of_sum, same)


def follow(options: argparse.Namespace) -> None:
    """The shares while a part becomes slower, and as fast as before again, of one computation."""
    program, field = problem(options, 2, "float32")
    slowness, rows = Slowness(1, options.device), list[dict[str, Any]]()
    with deciding() as decisions, nothing_known(), slowness.holding(), controllers.Computation(
        program, field, devices=options.device, weights="auto", balance="dynamic",
        steps_per_launch=options.steps_per_launch,
    ) as run:  # fmt: skip
        for number in range(3 * options.runs):  # each ends when devices have computed it
            slowness.times = 2 if number // options.runs == 1 else 1
            ms = seconds_of(run, options.every) / options.every * 1e3
            shares = [box.n_cells / field.size for box in run.layout.owned]
            rows.append({"step": run.step, "shares": shares, "ms": ms, "slow": slowness.times})
        balance = run.report().balance
    print("steps   share of the last part  ms/step")
    for row in rows:
        print(f"{row['step']:5}  {row['shares'][-1]:22.1%}  {row['ms']:7.2f}")
    print(balance)
    for first in (options.runs, 2 * options.runs):
        print(recovery(rows, first, options.runs, decisions))
    if options.out is not None:
        options.out.write_text(json.dumps(rows))
    if options.picture is not None:
        draw(options.picture, rows)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", nargs="+", default=["cpu/1,1"],
                        help="a device in two parts, or two")  # fmt: skip
    parser.add_argument("--size", type=int, default=4096, help="of the square")
    parser.add_argument("--cube", type=int, default=256)
    parser.add_argument("--steps", type=int, default=9000, help="whose speed counts")
    parser.add_argument("--pieces", type=int, default=9, help="of these steps")
    parser.add_argument("--settle", type=int, default=5000, help="steps before these")
    parser.add_argument("--axes", type=int, nargs="+", choices=(2, 3), default=[2, 3])
    parser.add_argument("--steps-per-launch", type=int, help="by default what suits")
    parser.add_argument("--halo-width", type=halo_width, help="steps between exchanges, or auto")
    parser.add_argument("--slower", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--change", action="store_true", help="follow a change in mid-run")
    parser.add_argument("--every", type=int, default=48, help="steps of a row, with --change")
    parser.add_argument("--runs", type=int, default=100, help="rows before each change")
    parser.add_argument("--out", type=Path, help="where to write the shares as JSON")
    parser.add_argument("--picture", type=Path, help="where to draw them, as .svg or .png")
    options = parser.parse_args()
    if options.change:
        follow(options)
        return
    print(HEAD)
    rows = []
    for n_axes in options.axes:
        for dtype in options.dtypes:
            for times in options.slower:
                rows.append(measure(options, n_axes, dtype, times))
                print(rows[-1].text, flush=True)
    print(asked_beside(rows))


if __name__ == "__main__":
    main()
