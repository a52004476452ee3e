# SPDX-License-Identifier: MIT
"""Runs many cases in one MPI job, since starting one for each would take longer than the cases.

    mpiexec -n 2 python tests/support/case_server.py 17.0 17.3   # combinations 0 and 3 of case 17

Rank 0 prints one line of JSON per combination, as soon as it is done.
"""
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mpi_jobs import run_ranks
from stencil_cases import Case, random_case

from controllers.device import find_devices
from hitmap.comm import default_communicator

Name = tuple[int, int]  # the numbers of a case and of one of its combinations


def main(names: Sequence[str]) -> None:
    """Run the named combinations; collective."""
    comm = default_communicator()
    case_of = lru_cache(maxsize=1)(random_case)
    for name in names:
        number, position = map(int, name.split("."))
        case: Case = case_of(number)
        problem = case.problem(case.combinations[position], comm)
        if comm.rank == 0:
            print(json.dumps({"name": [number, position], "problem": problem}), flush=True)


@dataclass(frozen=True)
class Outcome:
    """What a job said about its combinations, and how it ended."""

    problems: dict[Name, str | None]
    ending: str

    def problem(self, name: Name) -> str | None:
        """What is wrong with one combination, None if nothing is."""
        if name in self.problems:
            return self.problems[name]
        return f"no result: {self.ending}"


def run_job(ranks: int, names: Sequence[Name], timeout: float) -> Outcome:
    """Run combinations for `ranks` ranks in one job; one that hangs is ended."""
    arguments = [str(Path(__file__)), *(f"{number}.{position}" for number, position in names)]
    try:
        job = run_ranks(ranks, arguments, timeout, environment(ranks))
        output, ending = job.stdout, f"the job ended with code {job.returncode}\n{job.stderr}"
    except subprocess.TimeoutExpired as error:
        output = str(error.stdout)
        ending = f"the job was ended after {timeout} s\n{error.stderr}"
    results = [json.loads(line) for line in output.splitlines() if line.startswith('{"name"')]
    return Outcome({tuple(r["name"]): r["problem"] for r in results}, ending[-3000:])


def environment(ranks: int) -> dict[str, str]:
    """For several ranks PoCL lists the CPU twice per rank, as a host with many devices would.

    This process has tried the drivers: the ranks need not, for as many devices more.
    """
    if ranks == 1:
        return {}
    cpu = next(device for device in find_devices() if device.kind == "cpu")
    driver = cpu.name.partition("-")[0]     # PoCL's devices are called after their drivers
    return {"POCL_DEVICES": " ".join([driver] * 2 * ranks), "CONTROLLERS_PROBE": "off"}


def command(name: Name, ranks: int) -> str:
    """How to repeat a combination by hand."""
    variables = "".join(f'{key}="{value}" ' for key, value in environment(ranks).items())
    number, position = name
    return f"{variables}mpiexec -n {ranks} python tests/support/case_server.py {number}.{position}"


if __name__ == "__main__":
    main(sys.argv[1:])
