# SPDX-License-Identifier: MIT
"""Each application of the benchmark on several sets of devices, bit for bit as on the first one.

    python tools/compare_applications.py [--devices SET ...] [--steps N] [APPLICATION ...]
    python tools/compare_applications.py --devices cpu --devices gpu --devices gpu,cpu

A set is one or several devices with commas between, each of which has an equal share.  Applications
are those of `python -m controllers bench apps`, at its quick sizes; patterns begin with random
numbers, everything else as its file says.  All fields after the steps are compared, and what the
last step folds.  Exit code 1 if a bit differs.  The test suite does this on parts of the CPU and on
ranks; this is for machines with other devices.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from controllers.bench.applications import APPLICATIONS
from controllers.bench.program_file import computation_of
from controllers.language.pattern_file import is_literal

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def bits_of(name: str, devices: str, n_steps: int) -> Mapping[str, bytes]:
    """Each field of an application after some steps, and each result, as bytes."""
    known = APPLICATIONS[name]
    path = EXAMPLES / f"{known.file or name}.py"
    chosen = [devices] if "/" in devices else devices.split(",")     # parts of one are no set
    shares = {"weights": [1] * (devices.count(",") + 1), "balance": "off"}
    options = {"devices": chosen, **shares, **known.options}
    with computation_of(path, known.quick, options, known.instead) as run:
        if is_literal(path):
            cells = np.random.default_rng(0).random(known.quick, dtype=np.float32)
            run.scatter(cells)
        results = run.run(n_steps)
        fields = {field: np.ascontiguousarray(run[field].gather()) for field in run.fields}
    found = {field: values.tobytes() for field, values in fields.items()}
    if results is not None:
        found.update({result: np.asarray(results[result]).tobytes() for result in results})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("applications", nargs="*", metavar="APPLICATION", help="default: all")
    parser.add_argument("--devices", action="append", metavar="SET",
                        help="devices, with commas between (default: cpu, cpu/1,1)")  # fmt: skip
    parser.add_argument("--steps", type=int, default=12, help="how many (default: 12)")
    options = parser.parse_args()
    first, *others = options.devices or ["cpu", "cpu/1,1"]
    n_wrong = 0
    for name in options.applications or APPLICATIONS:
        right = bits_of(name, first, options.steps)
        for devices in others:
            found = bits_of(name, devices, options.steps)
            unlike = [one for one in right if found[one] != right[one]]
            n_wrong += bool(unlike)
            said = f"differs from {first} in {', '.join(unlike)}" if unlike else "the same bits"
            print(f"{name:22} {devices:12} {said}, of {', '.join(right)}", flush=True)
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
