# SPDX-License-Identifier: MIT
"""Whatever computes a problem, to be measured beside others: the library, or something else.

A file that is given with `--with` holds some of these in a tuple COMPARATORS, ready to be prepared:

    class Mine(Comparator):
        name = "mine"

        def prepare(self, problem): ...     # from problem.initial
        def run(self, n_steps): ...         # and return when they are done
        def result(self): ...               # the whole field, as an array

    COMPARATORS = (Mine(),)
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt

from controllers.bench.problem import Problem


class Comparator:
    """What is measured.

    name: for people.  exact: whether it has the bits of the reference, or else is near it.
    n_at_once: the steps that it computes at once; runs are of multiples of it.
    """

    name = ""
    exact = False
    n_at_once = 1

    @property
    def configuration(self) -> str:
        """How it goes about the problem that it is prepared for, in a few words."""
        return ""

    def prepare(self, problem: Problem) -> None:
        """Build what is needed, and set the field to its initial values.

        ValueError, RuntimeError or OSError where it cannot do the problem.
        """
        raise NotImplementedError

    def run(self, n_steps: int) -> None:
        """Compute the next `n_steps` steps; returns when they are done."""
        raise NotImplementedError

    def result(self) -> npt.NDArray[Any]:
        """The whole field as it is now."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back memory."""


def comparators_of(path: Path) -> tuple[Comparator, ...]:
    """Those of a Python file, which is executed; ValueError where there are none."""
    values: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    try:    # not imported: nothing is left beside the file, or taken from there for its text
        exec(compile(path.read_bytes(), str(path), "exec"), values)
    except ImportError as error:
        raise ValueError(f"{path}: {error}; install what it needs, or leave it out") from None
    except Exception as error:      # of a text that is not ours
        raise ValueError(f"{path}: {type(error).__name__}: {error}; mend the file") from error
    found = values.get("COMPARATORS", ())
    if not found or not all(isinstance(one, Comparator) for one in found):
        raise ValueError(f"{path}: holds no tuple COMPARATORS of controllers.bench.Comparator")
    return tuple(found)
