# SPDX-License-Identifier: MIT
"""Small runs of the applications in examples/: `application_runs.py NAME ...` prints digests.

Each of them has a function `computation`, which takes sizes and whatever a `Computation` takes.
"""
from __future__ import annotations

import hashlib
import json
import runpy
import sys
from functools import cache
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
# sizes and steps of a small run; enough for what starts in one place to be in another
SMALL: dict[str, tuple[dict[str, int], int]] = {
    "life": (dict(n=41), 12),
    "himeno": (dict(i=9, j=12, k=11), 6),
    "swim": (dict(n=14), 8),
    "hyperthermia": (dict(n=10), 6),
    "tricubic": (dict(n=9), 5),
    "reverse_edge": (dict(y=37, x=29), 9),
    "lattice_gas": (dict(n=26), 9),
    "seismic": (dict(y=26, x=40), 40),
    "compressible": (dict(z=12, y=8, x=8), 3),
    "diffusion_3d": (dict(n=9), 6),
    "lattice_boltzmann": (dict(n=13), 9),
}


@cache
def example(name: str) -> dict[str, Any]:
    """What the names of a program are."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def looked_at(name: str, n_steps: int, **options: Any) -> list[dict[str, Any]]:
    """The fields before the first step of a small run and after so many; on rank 0."""
    with example(name)["computation"](**SMALL[name][0], **options) as run:
        fields = [{one: run[one].get() for one in run.fields}]
        run.run(n_steps)
        found = {name: run.results[name] for name in run.program.results}
        return [*fields, {one: run[one].get() for one in run.fields} | found]


def digests(name: str, **options: Any) -> dict[str, str]:
    """What the bits of all fields are after a small run; of None on other ranks than 0."""
    _, after = looked_at(name, SMALL[name][1], **options)
    return {
        field: hashlib.sha256(values.tobytes()).hexdigest() if hasattr(values, "tobytes")
        else repr(values)
        for field, values in after.items()
    }  # fmt: skip


if __name__ == "__main__":
    for word in sys.argv[1:]:
        found = digests(word, partition="blocks", places_per_controller=2)
        if "None" not in found.values():
            print(json.dumps({word: found}), flush=True)
