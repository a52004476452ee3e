# SPDX-License-Identifier: MIT
"""Digests of boxes of cells where they are, on an OpenCL device: kernels_cl/digest.cl."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from controllers.device import Device
from controllers.executor.launching_device import SharedKernel
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.rect_copy import four_axes
from controllers.executor.result import Result
from controllers.integrity.digest import Digest, row_numbers, weights
from controllers.kernel.build import Built, build
from controllers.kgt.text.digest_text import digest_functions
from controllers.kgt.text.fixed import fixed_source
from controllers.memory.tile import Tile
from hitmap.shape import Shape

GROUPS = 16     # of work-items, for each unit of a device


def group_size(device: Device) -> int:
    """Work-items of a group, a power of two; one that takes vectors of cells on CPUs."""
    return 1 if device.kind == "cpu" else min(128, 1 << device.max_items.bit_length() - 1)


class DigestKernels:
    """Those of one device, built when they are needed first, and what they need and give."""

    def __init__(self, executor: OpenCLExecutor) -> None:
        self._executor = executor
        self._group = group_size(executor.device)
        self._n_groups = GROUPS * executor.device.compute_units
        self.weights = executor.constants(weights())
        self._kernels: dict[np.dtype[Any], SharedKernel] = {}
        self._results: list[tuple[Result, Any]] = []    # that are not in use

    def start(self, tile: Tile, cells: Shape, domain: Shape) -> Callable[[], Digest]:
        """Begin with these cells of a tile of a field on `domain`; the function waits for it.

        Nothing may be writing to them.
        """
        executor, n_words = self._executor, 2 * self._n_groups
        if not self._results:
            room = executor.constants(np.zeros(n_words, np.int64))
            self._results.append((Result(executor, n_words), room))
        result, room = self._results.pop()
        where, missing = four_axes(tile.strided(cells)), 4 - cells.n_axes
        strides = (0,) * missing + row_numbers(domain)
        begun = [low - first for low, first in zip(cells.lower, domain.lower)]
        row = sum(at * stride for at, stride in zip(begun, row_numbers(domain)))
        scalars = where.first, *where.pitches[:3], row, *strides, begun[-1], *where.extent
        arguments = [tile.buffer, self.weights, room, *map(np.int64, scalars)]
        sizes = (self._n_groups * self._group,), (self._group,)
        launch = executor.shared_command(self._kernel(tile.dtype), arguments, sizes)
        done = result.download(room, launch(None))

        def found(keep: object = (tile, arguments)) -> Digest:
            done.wait()
            values, n_nan = result.array.reshape(-1, 2).view(np.uint64).sum(axis=0).tolist()
            self._results.append((result, room))
            return Digest(values, n_nan)

        return found

    def _kernel(self, dtype: np.dtype[Any]) -> SharedKernel:
        if dtype not in self._kernels:
            functions = digest_functions(dtype, in_vectors=self._group == 1, ahead=True)
            text = "\n".join([functions, fixed_source("digest")])
            options = [f"-DGROUP={self._group}", *self._executor.own_options]
            made = build(self._executor.context, "digest", text, options)
            self._kernels[dtype] = SharedKernel(Built("digest", made, ()))
        return self._kernels[dtype]
