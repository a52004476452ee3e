# SPDX-License-Identifier: MIT
"""Messages that carry a checksum: whole ones pass, a bit that flips on the way is one error."""
from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import sample

JOB = """
import json, sys
import controllers as ct
from flipped_messages import flipped
from kept_programs import PROGRAMS, alike, cells_of, ran

found = []
for name, options, n_steps, rank, number, bit in json.loads(sys.argv[1]):
    case = {"error": None, "torn": False}
    with PROGRAMS[name](**options, verify_messages=True) as run:
        wrong = number if run.comm.rank == rank else -1
        with flipped(wrong, bit) as sent:
            try:
                run.run(n_steps)
            except ct.MessageError as error:
                case["error"] = str(error)
                try:
                    run.run(1)
                except RuntimeError as other:
                    case["torn"] = "torn" in str(other)
        case["step"], case["sent"] = run.step, sent[0]
        if case["error"] is None:
            case["right"] = alike(cells_of(run), ran(name, n_steps))
    every = run.comm.allgather(case)
    found.append(every)
if run.comm.rank == 0:
    print(json.dumps(found))
"""
NEVER = -1
Case = tuple[str, dict[str, Any], int, int, int, int]


def ran(ranks: int, cases: list[Case]) -> Any:
    job = run_ranks(ranks, ["-c", JOB, json.dumps(cases)], env=helpers_path())
    assert job.returncode == 0, job.stderr
    return json.loads(job.stdout)


WAYS: list[tuple[str, dict[str, Any]]] = [
    ("pattern", {"devices": "reference"}),
    ("wave", {"zero_copy": False, "devices": "cpu"}),
    ("wave", {}),
    ("wave", {"places_per_controller": 2, "partition": "blocks", "overlap": "on"}),
    ("wave", {"devices": "cpu", "halo_width": 3}),
    ("repeating", {"devices": "cpu"}),
]


@pytest.mark.whole
def test_messages_that_arrive_as_they_were_sent_change_nothing() -> None:
    found = ran(2, [(name, options, 7, 0, NEVER, 0) for name, options in WAYS])
    for every in found:
        assert [case["error"] for case in every] == [None, None]
        assert all(case["sent"] for case in every) and every[0]["right"]


@pytest.mark.parametrize(("ranks", "n_ways"), sample([(2, 1), (2, 6), (3, 6)], 3))
def test_a_bit_that_flips_is_one_error_on_all_ranks(ranks: int, n_ways: int) -> None:
    chosen = random.Random(ranks)
    cases = [
        (*way, 40, chosen.randrange(ranks), chosen.randrange(6), chosen.randrange(1 << 20))
        for way in WAYS[:n_ways]
    ]
    for case, every in zip(cases, ran(ranks, cases)):
        text, *others = [one["error"] for one in every]
        assert text is not None and others == [text] * (ranks - 1), case
        assert re.search(
            rf"in step \d+ message \d+ of [\w ]+, place \d to \d, from rank {case[3]} to rank \d .*"
            r"otherwise than it was sent", text
        ), text  # fmt: skip
        assert all(one["torn"] for one in every)


@pytest.mark.whole
def test_the_step_is_named() -> None:
    # one message each way and step, of the rank in the middle two
    (every,) = ran(2, [("wave", {"devices": "cpu", "steps_per_launch": 1}, 40, 1, 4, 77)])
    assert "in step " in every[0]["error"]
    n_sent = int(re.search(r"in step (\d+) ", every[0]["error"])[1])    # type: ignore[index]
    assert n_sent in (4, 5)     # before the first step, or after each one


MOVED = """
import hitmap.redistribute as module
import controllers as ct
from kept_programs import PROGRAMS, alike, cells_of, ran

sent = module.send

def altered(comm, buffer, target):
    buffer.view("u1")[5] ^= 8
    sent(comm, buffer, target)

with PROGRAMS["wave"](verify_messages=True) as run:
    run.run(4)
    run.redistribute(weights=[1, 2])
    assert alike(cells_of(run), ran("wave", 4))
    module.send = altered
    try:
        run.redistribute(weights=[2, 1])
        raise SystemExit("nothing was noticed")
    except ct.MessageError as error:
        assert "divided anew after step 4" in str(error)
    try:
        run.run(1)
        raise SystemExit("its fields are torn")
    except RuntimeError as error:
        assert "torn" in str(error)
"""


@pytest.mark.whole
def test_cells_that_are_altered_as_fields_are_divided_anew_are_an_error() -> None:
    job = run_ranks(2, ["-c", MOVED], env=helpers_path())
    assert job.returncode == 0, job.stderr
