# SPDX-License-Identifier: MIT
"""JAX, for `python -m controllers bench --with tools/bench_jax.py`: the whole loop compiled."""
from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from controllers.bench import Comparator, Problem


class JaxLoop(Comparator):
    """Slices within `fori_loop`, on the device that JAX chooses."""

    name = "JAX"

    @property
    def configuration(self) -> str:
        return f"jit, fori_loop, {jax.devices()[0].platform}"

    def prepare(self, problem: Problem) -> None:
        jax.config.update("jax_enable_x64", problem.dtype == "float64")
        self._field = jnp.array(problem.initial)
        self._loop = jax.jit(partial(loop, problem), donate_argnums=0)

    def run(self, n_steps: int) -> None:
        self._field = self._loop(self._field, n_steps).block_until_ready()

    def result(self) -> npt.NDArray[Any]:
        return np.asarray(self._field)

    def close(self) -> None:
        self._field = None


def loop(problem: Problem, field: Any, n_steps: int) -> Any:
    """`n_steps` steps of the problem."""
    box = problem.box
    origin = (0,) * box.n_axes
    number = problem.initial.dtype.type

    def step(_: int, u: Any) -> Any:
        total = sum(
            number(weight) * u[box.shift(offset).slices(origin)]
            for offset, weight in problem.terms.items()
        )
        return u.at[box.slices(origin)].set(total / number(problem.factor))

    return jax.lax.fori_loop(0, n_steps, step, field)


COMPARATORS = (JaxLoop(),)
