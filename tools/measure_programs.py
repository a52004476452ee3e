# SPDX-License-Identifier: MIT
"""Programs of several fields, as users write them, against the copy rate and against C with OpenMP.

    python tools/measure_programs.py --device cpu [--size2 4096] [--size3 256]
    python tools/measure_programs.py --device gpu [--size2 8192] [--size3 512]

One row per program: cells per second, the rate of the bytes that a step needs (each field that it
reads once, and each that it writes once) over the rate of the device's own copy of as many bytes;
on a CPU also the speed over that of the loop in C with OpenMP that a person would write, fused in
the same way, on arrays with the cells outside.  float32, medians of `--rounds` turns.
"""
from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl
from loops_in_c import C_DIFFUSION, C_GRAY_SCOTT, C_SHALLOW, c_wave, compiled

import controllers as ct
from controllers.device import choose, find_devices
from controllers.program.storing import Storing

DT = 0.1
Seconds: TypeAlias = Callable[[int], float]     # of a step, measured over so many


def wave(n_axes: int, accuracy: int) -> Any:
    """Second order in time: the level before last is renamed."""

    @ct.step
    def wave(u: Any, old: Any) -> Any:
        return dict(u=2 * u - old + DT * ct.laplacian(u, accuracy=accuracy), old=u)

    return wave


@ct.step
def gray_scott(
    u: Any, v: Any, *, Du: float = 0.16, Dv: float = 0.08, F: float = 0.037, k: float = 0.06
) -> Any:
    uvv = u * v * v
    return dict(
        u=u + Du * around(u) - uvv + F * (1 - u), v=v + Dv * around(v) + uvv - (F + k) * v
    )


def around(f: Any) -> Any:
    """The five-point Laplacian on a grid of spacing 1."""
    return f[-1, 0] + f[1, 0] + f[0, -1] + f[0, 1] - 4 * f


@ct.step
def diffusion(u: Any, k: Any) -> Any:
    neighbours = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    return dict(u=u + k * (neighbours - 6 * u))


@ct.step
def shallow(h: Any, hv: Any, hu: Any) -> Any:
    new = [h, hv, hu]
    for axis in ("y", "x"):
        for i, flux in enumerate(fluxes(h, {"y": hv, "x": hu}, axis)):
            new[i] = new[i] - 0.01 * (flux - flux.at(axis, -1))
    return dict(h=new[0], hv=new[1], hu=new[2])


def fluxes(h: Any, m: dict[str, Any], axis: str) -> list[Any]:
    """Rusanov's, through the upper face of each cell."""
    v = m[axis] / h
    flux = [m[axis], *(m[a] * v + (4.905 * h * h if a == axis else 0) for a in m)]
    fast = np.abs(v) + np.sqrt(9.81 * h)
    fast = np.maximum(fast, fast.at(axis, 1))
    return [
        ct.stored((f + f.at(axis, 1) - fast * (q.at(axis, 1) - q)) / 2)
        for f, q in zip(flux, [h, *m.values()])
    ]


@dataclass(frozen=True)
class Case:
    """A program, the bytes that a step of a cell must move, and the same in C."""

    step: Any
    n_axes: int
    n_bytes: int
    boundary: Any
    starts: dict[str, float]
    c: str
    turn: tuple[int, ...]   # the arrays of C after a step, by number
    reach: int = 1


MIRRORS = {
    "h": ct.mirror(), "hv": {"y": ct.mirror(-1), "x": ct.mirror()},
    "hu": {"y": ct.mirror(), "x": ct.mirror(-1)},
}  # fmt: skip
LEVELS = {"u": 1.0, "old": 1.0}
CASES = {
    "wave 2D, accuracy 2": Case(wave(2, 2), 2, 12, ct.fixed(0), LEVELS, c_wave(2, 2), (1, 0)),
    "wave 2D, accuracy 8": Case(wave(2, 8), 2, 12, ct.fixed(0), LEVELS, c_wave(2, 8), (1, 0), 4),
    "wave 3D, accuracy 2": Case(wave(3, 2), 3, 12, ct.fixed(0), LEVELS, c_wave(3, 2), (1, 0)),
    "wave 3D, accuracy 8": Case(wave(3, 8), 3, 12, ct.fixed(0), LEVELS, c_wave(3, 8), (1, 0), 4),
    "Gray-Scott": Case(
        gray_scott, 2, 16, "periodic", {"u": 0.7, "v": 0.2}, C_GRAY_SCOTT, (2, 3, 0, 1)
    ),
    "7 points, coefficients": Case(
        diffusion, 3, 12, ct.fixed(0), {"u": 1.0, "k": 0.1}, C_DIFFUSION, (2, 1, 0)
    ),
    "shallow water": Case(
        shallow, 2, 24, MIRRORS, {"h": 1.0, "hv": 0.01, "hu": 0.02}, C_SHALLOW, (3, 4, 5, 0, 1, 2)
    ),
}


class OfOurs:
    """A computation of the case."""

    def __init__(
        self, case: Case, size: int, device: str, stored: Storing, steps_per_launch: int | None
    ) -> None:
        axes = dict(zip("zyx"[3 - case.n_axes :], (size,) * case.n_axes))
        grid = ct.Grid(**axes, lower=0, spacing=1.0)
        starts: dict[str, Any] = {
            name: np.float32(value) for name, value in case.starts.items()
        }
        self.run = ct.Computation(
            case.step, grid, boundary=case.boundary, dtype="float32", devices=device,
            stored=stored, steps_per_launch=steps_per_launch, **starts,
        )  # fmt: skip

    def seconds(self, n_steps: int) -> float:
        start = time.perf_counter()
        self.run.run(n_steps)
        return (time.perf_counter() - start) / n_steps


class OfC:
    """The loop in C on two or more arrays per field."""

    def __init__(self, case: Case, size: int, folder: Path) -> None:
        self._step = compiled(case.c, folder).step
        extent = (size + 2 * case.reach,) * case.n_axes
        values = [*case.starts.values(), *[0.0] * (len(case.turn) - len(case.starts))]
        self._arrays = [np.full(extent, value, np.float32) for value in values]
        self._size, self._turn = size, case.turn

    def seconds(self, n_steps: int) -> float:
        start = time.perf_counter()
        for _ in range(n_steps):
            pointers = (ctypes.c_void_p * len(self._arrays))(*(a.ctypes.data for a in self._arrays))
            self._step(ctypes.c_long(self._size), pointers)
            self._arrays = [self._arrays[number] for number in self._turn]
        return (time.perf_counter() - start) / n_steps


class OfACopy:
    """The device's own copy of half as many bytes as a step moves."""

    def __init__(self, case: Case, size: int, handle: cl.Device) -> None:
        n_bytes = case.n_bytes // 2 * size**case.n_axes
        context = cl.Context([handle])
        self._queue = cl.CommandQueue(context, handle)
        self._buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, n_bytes) for _ in range(2)]

    def seconds(self, n_steps: int) -> float:
        start = time.perf_counter()
        for _ in range(n_steps):
            cl.enqueue_copy(self._queue, *self._buffers)
        self._queue.finish()
        return (time.perf_counter() - start) / n_steps


def measured(each: Mapping[str, Seconds], rounds: int, n_steps: int) -> dict[str, float]:
    """Seconds of a step, all in turn."""
    times: dict[str, list[float]] = {name: [] for name in each}
    for seconds in each.values():
        seconds(4)
    for number in range(rounds):
        for name in [*each][:: 1 if number % 2 == 0 else -1]:
            times[name].append(each[name](n_steps))
    return {name: statistics.median(its) for name, its in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu", help="cpu (default) or gpu")
    parser.add_argument("--size2", type=int, help="cells per axis in 2D")
    parser.add_argument("--size3", type=int, help="cells per axis in 3D")
    parser.add_argument("--cases", nargs="+", default=[*CASES], choices=CASES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=12, help="even, of a turn")
    parser.add_argument("--steps-per-launch", type=int, help="by default as many as are usual")
    parser.add_argument("--stored", choices=["auto", "always", "never"], default="auto")
    options = parser.parse_args()
    on_cpu = options.device == "cpu"
    sizes = options.size2 or (4096 if on_cpu else 8192), options.size3 or (256 if on_cpu else 512)
    (device,) = choose([options.device], find_devices())
    print(f"{device.name}, {os.cpu_count()} cores; float32, {sizes[0]}^2, {sizes[1]}^3")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.cases:
            case = CASES[name]
            size = sizes[case.n_axes - 2]
            ours = OfOurs(
                case, size, options.device, options.stored, options.steps_per_launch
            )  # fmt: skip
            assert device.handle is not None, "an OpenCL device"
            copy = OfACopy(case, size, device.handle)
            each: dict[str, Seconds] = {"ours": ours.seconds, "copy": copy.seconds}
            if on_cpu:
                each["C"] = OfC(case, size, Path(folder)).seconds
            found = measured(each, options.rounds, options.steps)
            rate = prod((size,) * case.n_axes) / found["ours"]
            text = f"{name:24} {rate / 1e9:8.2f} Gcell/s"
            text += f"   of the copy {found['copy'] / found['ours']:5.2f}"
            if on_cpu:
                text += f"   times C {found['C'] / found['ours']:5.2f}"
            print(f"{text}   {ours.run.plan.steps_per_launch} per launch", flush=True)
            ours.run.close()


if __name__ == "__main__":
    main()
