# SPDX-License-Identifier: MIT
"""Who looks at steps, ends them or records them sees the same with halos of any width."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from sample import cases

import controllers as ct
from controllers.program.reference import reference_steps

GRID = ct.Grid(y=31, x=23, spacing=5.0)
RING = ct.Grid(y=31, x=23, lower=0, upper=(3, 4), boundary="periodic")


@ct.step
def wave(u, old):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=2 * u - old + 0.2 * around, old=u, top=ct.max(np.abs(u)), mean=ct.mean(u * u))


@ct.step
def burgers(u, *, cfl=0.4):
    dt = cfl * RING.dx / ct.max(np.abs(u))
    flux = u * u / 2
    return dict(u=u - dt / RING.dx * (flux - flux[0, -1]), top=ct.max(u), dt=dt)


def hill(y: Any, x: Any) -> Any:
    return 1 + np.exp(-((y - 1) ** 2 + (x - 2) ** 2))


def running(name: str, rng: random.Random) -> ct.Computation:
    device, n_places = rng.choice([("reference", 1), ("reference", 4), ("cpu", 3)])
    options: dict[str, Any] = {
        "devices": device, "places_per_controller": n_places, "halo_width": rng.randint(2, 6),
        "partition": rng.choice(["bands", "blocks"]), "zero_copy": rng.choice([True, False]),
    }  # fmt: skip
    if name == "wave":
        return ct.Computation(
            wave, GRID, u=hill, old=1, boundary=rng.choice(["periodic", "mirror", ct.fixed(0)]),
            dt=0.5, **options,
        )  # fmt: skip
    return ct.Computation(burgers, RING, u=hill, **options)


@pytest.mark.whole
@pytest.mark.parametrize("number", cases(2, 60))
def test_steps_that_are_looked_at_are_those_of_the_reference(number: int) -> None:
    rng, name = random.Random(number), ("wave", "burgers")[number % 2]
    with running(name, rng) as run:
        widest, dt = run.halo_width, {"dt": 0.5} if name == "wave" else {}
        fields = {field: np.asarray(run[field]) for field in run.fields}
        right = [*reference_steps(run.program, fields, n_steps=80, **dt)]
        every = rng.randint(1, 4)
        line = run.record("u", every=every, y=rng.uniform(0, 2.5))
        top = run.record("top", every=every)
        while run.step < 60:
            run.use_halo_width(rng.randint(1, widest))
            way, n = rng.choice(["run", "until", "time", "steps"]), rng.randint(1, 9)
            if way == "run":
                run.run(n)
            elif way == "until":
                end = run.step + n
                run.run(until=lambda now, end=end: now.step >= end, check_every=2, at_most=12)
            elif way == "time" and name == "wave":
                run.run(until=run.time + 0.5 * n)
            else:
                for now in run.steps(n, every=rng.randint(1, 3)):
                    assert np.array_equal(now.u.get(), right[now.step - 1].fields["u"])
                    assert now.top == right[now.step - 1].results["top"]
            last = right[run.step - 1]
            assert np.array_equal(run.u.get(), last.fields["u"])
            assert {**run.results} == last.results and run.time == last.time
        assert [*top.steps] == [n for n in range(1, run.step + 1) if n % every == 0]
        assert [*top.get()] == [right[n - 1].results["top"] for n in top.steps]
        at = int(np.flatnonzero((right[top.steps[-1] - 1].fields["u"] == line.get()[-1]).all(1))[0])
        for step, cells in zip(line.steps, line.get()):
            assert np.array_equal(cells, right[step - 1].fields["u"][at])
