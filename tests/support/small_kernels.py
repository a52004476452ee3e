# SPDX-License-Identifier: MIT
"""Kernels of every strategy in small sizes, so that small boxes have several of their parts."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from controllers.device import Device, assign, find_devices
from controllers.device import choose as devices_of
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.choices import Choices
from controllers.kernel.offer import Generated, Offer
from controllers.kgt import Config, Launch, choose
from controllers.kgt.kernel import StageKernel, WorkSizes
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.kgt.strategies.table import STRATEGIES
from controllers.program.program import Program, Stage

GROUP = 4, 2, 2     # of cells, in OpenCL's order
ROWS = (4, 2, 2, True), (4, 2, 1, False), (2, 1, 1, True)       # lanes, rows, planes, streaming
MARCHING = (4, 2, True), (1, 1, False), (2, 4, False), (1, 2, True)     # lanes, steps, reciprocals


@cache
def opencl(zero_copy: bool, kind: str) -> OpenCLExecutor:
    (device,) = assign(devices_of(["cpu:0"], find_devices()), 0, 1)
    return OpenCLExecutor(replace(device, kind=kind), zero_copy=zero_copy)


@dataclass(frozen=True)
class SmallCells(CellConfig):
    """Cells in groups of one size, or alone where a box is smaller: drivers compile each size."""

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        """The number of items stays as it is."""
        sizes = super().work_sizes(program, stage)

        def small(
            extent: tuple[int, ...], is_cpu: bool
        ) -> tuple[tuple[int, ...], tuple[int, ...]]:
            items, group = sizes(extent, is_cpu)
            fits = all(n >= least for n, least in zip(group, GROUP))
            return items, GROUP[: len(group)] if fits else (1,) * len(group)

        return small

    def kernel(self, program: Program, stage: Stage) -> StageKernel:
        """The kernel of cells, whose text the groups do not change."""
        made = super().kernel(program, stage)
        return replace(made, work_sizes=self.work_sizes(program, stage))


def configs_of(strategy: str, n_axes: int, number: int) -> Iterator[Config]:
    """Small ones, another one by `number`; the last suits every box."""
    if strategy == "rows":
        lanes, rows, planes, streaming = ROWS[number % len(ROWS)]
        yield RowsConfig(
            lanes, rows if n_axes > 1 else 1, planes if n_axes > 2 else 1, band=4, depth=4,
            segment=8, ahead=4 * (streaming and n_axes > 1), streaming=streaming,
        )  # fmt: skip
    if strategy == "marching":
        lanes, steps, reciprocals = MARCHING[number % len(MARCHING)]
        group = 8, 4 if n_axes > 1 else 1, 1
        rows = 2 if n_axes > 2 and reciprocals else 1
        yield MarchingConfig(lanes, steps if n_axes > 1 else 1, 0, group, reciprocals, rows=rows)
    yield SmallCells()


class FirstThatSuits(Choices):
    """Takes the first configuration of a strategy that suits a box, if it computes the stage.

    number: of the case; those of all numbers have all configurations.  Launches of several steps
    have the kernels that they always have.
    """

    def __init__(self, device: Device, strategy: str, number: int) -> None:
        super().__init__(device)
        self._strategy, self._number = strategy, number

    def configuration(self, offer: Offer, launch: Launch | None = None) -> Config:
        assert isinstance(offer, Generated)
        if launch is not None and launch.n_steps > 1:
            return choose(offer.program, offer.stage, offer.kind, launch)
        if launch is None or not STRATEGIES[self._strategy].computes(offer.program, offer.stage):
            return SmallCells()
        configs = configs_of(self._strategy, len(launch.extent), self._number)
        return next(one for one in configs if one.suits(launch.fields.values()))


def of_strategy(strategy: str, number: int) -> list[OpenCLExecutor]:
    """Devices for a case: the CPU with memory of the host's, as another kind of device without.

    Every third case has both; of the others each has one, as each kind has kernels to be built.
    """
    kinds = [(True, "cpu"), (False, "other")]
    devices = [opencl(*kind) for kind in (kinds, kinds[:1], kinds[1:])[number % 3]]
    for one in devices:
        one.choices = FirstThatSuits(one.device, strategy, number // 3)
    return devices
