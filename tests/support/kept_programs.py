# SPDX-License-Identifier: MIT
"""Small programs whose runs are kept: time levels, steps that compute dt, half points, integers.

    mpiexec -n 3 python tests/support/kept_programs.py FOLDER TO OUTPUT EVERY NAMES...

runs those of them that are named to the step TO, with checkpoints in FOLDER after each EVERY
steps, on places that depend on the number of ranks, and writes their fields to OUTPUT.npz.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import controllers as ct
from controllers.checkpoint.folder import newest_first
from hitmap.comm import Communicator, default_communicator

GRID = ct.Grid(y=14, x=19, spacing=5.0, boundary=ct.fixed(0))
RING = ct.Grid(y=13, x=11, boundary="periodic")


@ct.step
def wave(u, old):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=2 * u - old + 0.2 * around, old=u, top=ct.max(np.abs(u)), energy=ct.mean(u * u))


def _hill(y: Any, x: Any) -> Any:
    return np.exp(-((y - 35) ** 2 + (x - 50) ** 2) / 200)


def _rate(q, *, speed=1.0):
    return dict(q=-speed * q * (q - q.at("x", -1)) + 0.1 * (q.at("y", 1) - 2 * q + q.at("y", -1)))


@ct.step
def sound(p, vx):
    v = vx - 0.1 * (p.at("x", 1 / 2) - p.at("x", -1 / 2))
    return dict(vx=v, p=p - 0.1 * (v.at("x", 1 / 2) - v.at("x", -1 / 2)))


def _wave(**options: Any) -> ct.Computation:
    return ct.Computation(wave, GRID, **{"u": _hill, "old": 0, "dt": 0.5, **options})


def _heun(**options: Any) -> ct.Computation:
    method = ct.heun(_rate, dt=lambda q: 0.2 / ct.max(np.abs(q)))
    start = 1 + np.random.default_rng(1).random((13, 11))
    return ct.Computation(method, RING, q=start, speed=0.75, **options)


def _sound(**options: Any) -> ct.Computation:
    grid = ct.Grid(y=9, x=12, boundary=ct.mirror())
    return ct.Computation(
        sound, grid, location=dict(vx="x"), dtype=dict(p="float32", vx="float32"),
        **{"p": lambda y, x: y + x * x, "vx": 0, **options},
    )  # fmt: skip


def _pattern(**options: Any) -> ct.Computation:
    stencil = ct.Stencil.of("lean", [(-1, 1), (0, 2)], [1, 0, 2, 0, 3, 0, 1, 1, 0], 3)
    start = np.random.default_rng(2).integers(-999, 999, (17, 12))
    return ct.Computation(stencil, start, dtype="int32", **options)


PAIR = np.dtype([("a", "f8"), ("b", "f8")])


def _pair(**options: Any) -> ct.Computation:
    @ct.step
    def turn(q):
        return dict(q=q + 0.1 * (q.at("x", 1) - q), total=ct.sum(q.a))

    def start(y: Any, x: Any) -> Any:
        return dict(a=x - y, b=x * y)

    return ct.Computation(turn, RING, dtype=PAIR, **{"q": start, **options})


def _repeating(**options: Any) -> ct.Computation:
    @ct.step
    def relax(p, f):
        new = (p[-1, 0] + p[1, 0] + p[0, -1] + p[0, 1] - f) / 4
        return dict(p=new, change=ct.max(np.abs(new - p)))

    @ct.step
    def push(f, p):
        return dict(f=f + 0.01 * p)

    solve = ct.repeat(relax, until=lambda now: now.change < 1e-3, check_every=3, at_most=40)
    grid = ct.Grid(y=8, x=9, boundary=ct.fixed(0))
    return ct.Computation([solve, push], grid, f=lambda y, x: y - x, p=0, **options)


PROGRAMS: dict[str, Callable[..., ct.Computation]] = {
    "wave": _wave, "heun": _heun, "sound": _sound, "pattern": _pattern, "pair": _pair,
    "repeating": _repeating,
}
Cells = dict[str, Any]


def cells_of(run: ct.Computation) -> Cells:
    """All fields, step and time; of fields None on other ranks than 0.  Collective."""
    found = {name: run[name].gather() for name in run.fields}
    return {**found, "step": run.step, "time": run.time}


def ran(name: str, n_steps: int, *, kept: Any = None, restart: str | None = None,
        **options: Any) -> Cells:  # fmt: skip
    """What the fields of a program are after so many steps, from what is kept.  Collective."""
    if kept is not None and restart is None:
        folder = Path(kept[0] if isinstance(kept, tuple) else kept) / "run-1"
        restart = "require" if newest_first(folder) else "auto"
    with PROGRAMS[name](**{"devices": "reference", **options}) as run:
        run.run(n_steps, checkpoint=kept, restart=restart)
        return cells_of(run)


def alike(one: Cells, other: Cells) -> bool:
    """Whether they have the same bits."""
    return one.keys() == other.keys() and all(
        np.asarray(one[name]).tobytes() == np.asarray(other[name]).tobytes() for name in one
    )


def main(
    folder: Path, to: int, output: Path, every: int, names: Sequence[str], comm: Communicator
) -> None:
    found: Cells = {}
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        cells = ran(
            name, to, kept=(folder / name, ct.every(steps=every)), comm=comm,
            places_per_controller=1 + (comm.size + number) % 3,
            partition="blocks" if (comm.size + number) % 2 else "bands",
        )  # fmt: skip
        found |= {f"{name}.{field}": values for field, values in cells.items()}
    if comm.rank == 0:
        np.savez(output, **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]),
         sys.argv[5:], default_communicator())  # fmt: skip
