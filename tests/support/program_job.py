# SPDX-License-Identifier: MIT
"""Random programs on the ranks of this job: `program_job.py bounded|steps|paces NUMBER ...`."""
from __future__ import annotations

import sys
from typing import Any

from random_boundaries import bounded_program, same
from random_options import choices
from random_paces import random_paces
from random_steps import random_steps

from controllers import Computation


def check(kind: str, number: int) -> None:
    """The fields of a case after all steps, beside those of the reference.  Collective."""
    options: dict[str, Any] = {}
    if kind == "steps":
        chosen, case = choices()[number], random_steps(number)
        stored = "never" if chosen["stored"] == "never" else "always"
        options = {"steps_per_launch": chosen["steps"], "stored": stored}
    elif kind == "paces":
        case = random_paces(number).case
        options = {"steps_per_launch": (3, 2, 3, 1), "halo_width": 6}
    else:
        case = bounded_program(number)
    with Computation(
        case.program, case.extent, devices="reference", places_per_controller=2,
        partition="blocks", **options,
    ) as run:  # fmt: skip
        for name, values in case.arrays.items():
            run[name].scatter(values if run.comm.rank == 0 else None)
        run.run(case.n_steps)
        for name, values in case.expected.items():
            got = run[name].gather()
            assert got is None or same(got, values), (number, name)


if __name__ == "__main__":
    for text in sys.argv[2:]:
        check(sys.argv[1], int(text))
    print("all right", flush=True)
