# SPDX-License-Identifier: MIT
"""The digest of a field at a place, taken by launches that read it (`wavefront/digests.py`)."""
# docs/decisions/0098-digests-are-taken-by-the-next-launch.md
from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.executor.opened_device import OpenedDevice
from controllers.kgt.kernel import StageKernel
from hitmap.shape import Shape
from hitmap.strided import dense_pitches


class DeviceDigest:
    """Takes the digest of the cells `owned` of a field on `domain`, all by launches of one step.

    launched: the cells that these compute; each takes its own, and those beside it that none does.
    weights: device memory that holds those of columns.
    """

    def __init__(
        self, executor: OpenedDevice, weights: cl.Buffer, owned: Shape, launched: Shape,
        domain: Shape,
    ) -> None:  # fmt: skip
        self._executor, self._weights = executor, weights
        self._owned, self._launched, self._domain = owned, launched, domain
        # what launches leave, and the memory of it, which a kernel does not hold
        self._found: list[tuple[npt.NDArray[np.int64], cl.Buffer]] = []

    def arguments(self, over: Shape) -> dict[str, object]:
        """Those of a launch over this box, by parameter; where it leaves what it finds comes later.
        """
        strides = dense_pitches(self._domain.extent[:-1])
        begun = [low - first for low, first in zip(over.lower, self._domain.lower)]
        numbers = {"kgt_row": sum(at * by for at, by in zip(begun, strides))}
        numbers |= {f"kgt_row_{axis}": by for axis, by in enumerate(strides)}
        numbers["kgt_column"] = begun[-1]
        for axis, first in enumerate(over.lower):
            low, high = over.lower[axis], over.upper[axis]
            if low == self._launched.lower[axis]:
                low = self._owned.lower[axis]
            if high == self._launched.upper[axis]:
                high = self._owned.upper[axis]
            numbers |= {f"kgt_own_first_{axis}": low - first, f"kgt_own_last_{axis}": high - first}
        typed = {name: np.int64(number) for name, number in numbers.items()}
        return {"kgt_weights": self._weights, "kgt_digests": None, **typed}

    def bound(
        self, part: int, source: StageKernel, sizes: tuple[tuple[int, ...], tuple[int, ...]]
    ) -> Callable[[cl.Kernel], None]:
        """What is told the kernel of a launch, whose work-groups are items."""
        memory, seen = self._executor.words(2 * prod(sizes[0]))
        assert seen is not None, "the host reads where the device writes"
        self._found.append((seen, memory))
        number = [one.name for one in source.parameters].index("kgt_digests")

        def told(kernel: cl.Kernel) -> None:
            kernel.set_arg(number, memory)

        return told

    @property
    def found(self) -> tuple[int, int]:
        """The sum modulo 2^64 and how many cells are NaN, once the launches are done."""
        every = np.concatenate([seen for seen, _ in self._found]).reshape(-1, 2).view(np.uint64)
        value, n_nan = every.sum(axis=0).tolist()
        return value, n_nan
