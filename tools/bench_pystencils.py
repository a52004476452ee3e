# SPDX-License-Identifier: MIT
"""pystencils, for `python -m controllers bench --with tools/bench_pystencils.py`: C with OpenMP."""
from __future__ import annotations

import pystencils

from controllers.bench.host import TwoArrays
from controllers.bench.problem import Problem


class PystencilsLoop(TwoArrays):
    """A kernel of one assignment for arrays of the problem's extent."""

    name = "pystencils"
    configuration = "CPU, OpenMP"

    def prepare(self, problem: Problem) -> None:
        super().prepare(problem)
        old, new = self._levels
        u, u_new = pystencils.fields(u=old, u_new=new)
        total = sum(weight * u[offset] for offset, weight in problem.terms.items())
        config = pystencils.CreateKernelConfig(target=pystencils.Target.GenericCPU)
        config.cpu.openmp.enable = True
        config.iteration_slice = tuple(map(slice, problem.box.lower, problem.box.upper))
        assignment = pystencils.Assignment(u_new.center(), total / problem.factor)
        self._kernel = pystencils.create_kernel(assignment, config).compile()

    def run(self, n_steps: int) -> None:
        for _ in range(n_steps):
            old, new = self._levels
            self._kernel(u=old, u_new=new)
            self._levels = [new, old]


COMPARATORS = (PystencilsLoop(),)
