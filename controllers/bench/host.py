# SPDX-License-Identifier: MIT
"""The host's processor without OpenCL: NumPy, and plain C with OpenMP by the system's compiler.

C is what one would write: plain loops, the same operations in the same order, `-O3 -march=native
-fopenmp`, nothing that lets it reorder.  Compilers contract products and sums by themselves.
It has a thread for each core that is free, and threads that wait do not spin: on a machine that
others use, threads that spin while others are not let in made it twenty times slower than NumPy.
"""
from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.bench.comparator import Comparator
from controllers.bench.cores import free_cores
from controllers.bench.problem import Problem
from controllers.kgt.text.emitter import OPENCL_TYPES, assignment
from controllers.memory.tile import aligned
from controllers.process.environment import environment
from controllers.program.expression import Read
from controllers.program.program import Program
from controllers.program.reference import values_of
from hitmap.shape import Shape
from hitmap.strided import Geometry

COMPILERS = ("gcc", "cc", "clang")
FLAGS = ("-O3", "-march=native", "-fopenmp")
# read by the OpenMP libraries of GNU, LLVM and Intel when they are loaded
WAITING = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}


class TwoArrays(Comparator):
    """The old and the new level as arrays."""

    def prepare(self, problem: Problem) -> None:
        self._problem = problem
        count, dtype = problem.initial.size, np.dtype(problem.dtype)
        # starts within a page that differ: a loop that reads one and writes the other is faster
        self._levels = [
            aligned(count, dtype, 5 * number).reshape(problem.extent) for number in (1, 2)
        ]
        for level in self._levels:
            level[...] = problem.initial

    def result(self) -> npt.NDArray[Any]:
        return self._levels[0]

    def close(self) -> None:
        self._levels = []


class NumPyLoop(TwoArrays):
    """Slices of arrays."""

    name = "NumPy"
    exact = True

    def run(self, n_steps: int) -> None:
        box, stage = self._problem.box, self._problem.program.stages[0]
        origin = (0,) * box.n_axes
        for _ in range(n_steps):
            old, new = self._levels

            def read(node: Read, old: npt.NDArray[Any] = old) -> npt.NDArray[Any]:
                return old[box.shift(node.offset).slices(origin)]

            new[box.slices(origin)] = values_of(stage.expression, read, self._problem.dtype)
            self._levels = [new, old]


class PlainC(TwoArrays):
    """C with OpenMP."""

    name = "C with OpenMP"

    def prepare(self, problem: Problem) -> None:
        self._n_threads = free_cores()
        self._compiler, self._sweep = compiled(
            problem.program, problem.domain, problem.box, self._n_threads
        )
        super().prepare(problem)

    @property
    def configuration(self) -> str:
        threads = f"{self._n_threads} thread{'s' if self._n_threads > 1 else ''}"
        return f"{' '.join([self._compiler, *FLAGS])}, {threads}"

    def run(self, n_steps: int) -> None:
        for _ in range(n_steps):
            old, new = self._levels
            self._sweep(old.ctypes.data, new.ctypes.data)
            self._levels = [new, old]


def c_source(program: Program, domain: Shape, box: Shape, n_threads: int) -> str:
    """Plain loops over `box`; the statement is that of the generated kernel, which is C too."""
    cell, pitches = OPENCL_TYPES[program.dtype], Geometry.dense(domain).pitches
    lines = [f"static const long u_pitch_{axis} = {p};" for axis, p in enumerate(pitches[:-1])]
    lines += [f"void sweep(const {cell} *restrict u, {cell} *restrict u_new)", "{"]
    for axis, (low, high) in enumerate(zip(box.lower, box.upper)):
        lines += [f"#pragma omp parallel for num_threads({n_threads})"] if axis == 0 else []
        lines.append(f"for (long i{axis} = {low}; i{axis} < {high}; ++i{axis})")
    index = " + ".join(f"i{axis} * {pitch}L" for axis, pitch in enumerate(pitches))
    statement = assignment("u_new[c]", program.stages[0], program.dtype)
    return "\n".join([*lines, f"{{ const long c = {index};", *statement, "}", "}", ""])


def compiled(
    program: Program, domain: Shape, box: Shape, n_threads: int
) -> tuple[str, Callable[[int, int], None]]:
    """The name of the compiler, and the sweep from one array to another; RuntimeError without."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise RuntimeError(f"there is no C compiler ({', '.join(COMPILERS)})")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "sweep.c"), Path(folder, "sweep.so")
        source.write_text(c_source(program, domain, box, n_threads))
        command = [compiler, *FLAGS, "-shared", "-fPIC", "-o", str(library), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{compiler}: {done.stderr.strip().splitlines()[-1]}")
        with environment(WAITING):
            sweep = ctypes.CDLL(str(library)).sweep     # stays loaded without its file
    sweep.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    sweep.restype = None
    return Path(compiler).name, sweep
