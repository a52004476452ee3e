# SPDX-License-Identifier: MIT
"""The arguments of a kernel that are scalars of the program: set anew when these have changed."""
from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyopencl as cl

from controllers.kgt.parameter import SCALAR_TYPES, Parameter
from controllers.kgt.text.given import PREFIX
from controllers.program.surroundings import Surroundings


def set_scalar(kernel: cl.Kernel, number: int, value: np.generic) -> None:
    """Set one argument, as PyOpenCL does: `set_arg`, which tries all else first, takes 11 us."""
    getattr(kernel, "_set_arg_buf", kernel.set_arg)(number, value)


class ScalarArguments:
    """Those of one launch; a kernel takes the values that they have when it is enqueued."""

    def __init__(self, around: Surroundings, found: Sequence[tuple[int, str, str]]) -> None:
        """`found`: the number of the argument, the scalar and its dtype."""
        self._around, self._found = around, found
        self._version = around.version  # of what the kernel has

    @classmethod
    def of(
        cls, parameters: Sequence[Parameter], around: Surroundings, names: Collection[str] = ()
    ) -> ScalarArguments:
        """Those of a kernel with these parameters; `names` may be known only at a launch."""
        names = {*names, *around.numbers}
        found = [
            (number, parameter.name.removeprefix(PREFIX), SCALAR_TYPES[parameter.type_name])
            for number, parameter in enumerate(parameters)
            if parameter.role == "scalar" and parameter.name.startswith(PREFIX)
            and parameter.name.removeprefix(PREFIX) in names
            and parameter.type_name in ("float", "double")
        ]  # fmt: skip
        return cls(around, found)

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def values(self) -> dict[str, np.generic]:
        """What they are now, by the names of the parameters; 0 where that is not known yet."""
        known = self._around.numbers
        return {
            f"{PREFIX}{name}": self._around.scalar(name, dtype) if name in known
            else np.dtype(dtype).type(0)
            for _, name, dtype in self._found
        }  # fmt: skip

    def set(self, kernel: cl.Kernel) -> None:
        """Give `kernel` the values of now, unless it has them."""
        if self._version != self._around.version:
            self._version = self._around.version
            for number, name, dtype in self._found:
                set_scalar(kernel, number, self._around.scalar(name, dtype))
