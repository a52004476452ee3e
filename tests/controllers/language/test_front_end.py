# SPDX-License-Identifier: MIT
"""A front end is what gives a `Program`: nothing else has to know of it."""
from __future__ import annotations

import re

import numpy as np
import pytest
from sample import sample

from controllers import Computation, Field, Program, Read, Stage
from hitmap import SerialCommunicator


def program_of(lines: str, dtype: str = "float64") -> Program:
    """A program of one axis, of lines such as "v = u[-1] + 2*u[0]": sums of weighted values."""
    stages, names = [], dict.fromkeys(re.findall(r"[a-z]\w*", lines))
    for line in lines.strip().splitlines():
        written, _, text = line.partition("=")
        terms = re.findall(r"(?:(\S+)\*)?([a-z]\w*)\[([+-]?\d+)\]", text)
        value = sum(float(weight or 1) * Read(name, (int(at),)) for weight, name, at in terms)
        reach = [int(at) for *_, at in terms]
        stages.append(Stage(written.strip(), {written.strip(): value}, ((min(reach), max(reach)),)))
    return Program("lines", tuple(Field(name, dtype) for name in names), tuple(stages))


@pytest.mark.parametrize("devices", sample(["reference", "cpu:0"], 2))
def test_what_it_gives_runs(devices: str) -> None:
    program = program_of("""
        v = 0.5*u[-1] + 0.5*u[1]
        u = u[0] + 0.25*v[0] + -0.25*u[0]
    """)
    u, v = np.random.default_rng(0).random((2, 50))
    with Computation(
        program, u.shape, devices=devices, places_per_controller=3, comm=SerialCommunicator()
    ) as run:
        run["u"].scatter(u)
        run["v"].scatter(v)
        run.run(5)
        results = run["u"].gather(), run["v"].gather()
    for _ in range(5):
        v[1:-1] = 0.5 * u[:-2] + 0.5 * u[2:]
        u = u + 0.25 * v + -0.25 * u
    assert np.array_equal(results[0], u) and np.array_equal(results[1], v)
