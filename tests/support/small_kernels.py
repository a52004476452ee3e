# SPDX-License-Identifier: MIT
"""Kernels of every strategy in small sizes, so that small boxes have several of their parts."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from controllers.device import Device, assign, find_devices
from controllers.device import choose as devices_of
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.choices import Choices
from controllers.kernel.offer import Generated, Offer
from controllers.kgt import Config, Launch, choose
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.kgt.strategies.table import STRATEGIES


@cache
def opencl(zero_copy: bool, kind: str) -> OpenCLExecutor:
    (device,) = assign(devices_of(["cpu:0"], find_devices()), 0, 1)
    return OpenCLExecutor(replace(device, kind=kind), zero_copy=zero_copy)


def configs_of(strategy: str, n_axes: int) -> Iterator[Config]:
    """Small ones, of which the last suits every box."""
    if strategy == "rows":
        for lanes, rows, planes, streaming in ((4, 2, 2, True), (4, 2, 1, False), (2, 1, 1, True)):
            yield RowsConfig(
                lanes, rows if n_axes > 1 else 1, planes if n_axes > 2 else 1, band=4, depth=4,
                segment=8, ahead=4 * (streaming and n_axes > 1), streaming=streaming,
            )  # fmt: skip
    if strategy == "marching":
        for lanes, steps, reciprocals in ((4, 2, True), (2, 4, False), (1, 2, True), (1, 1, False)):
            group = 8, 4 if n_axes > 1 else 1, 1
            rows = 2 if n_axes > 2 and reciprocals else 1
            steps = steps if n_axes > 1 else 1
            yield MarchingConfig(lanes, steps, 0, group, reciprocals, rows=rows)
    yield CellConfig()


class FirstThatSuits(Choices):
    """Takes the first configuration of a strategy that suits a box, if it computes the stage.

    Launches of several steps have the kernels that they always have.
    """

    def __init__(self, device: Device, strategy: str) -> None:
        super().__init__(device)
        self._strategy = strategy

    def configuration(self, offer: Offer, launch: Launch | None = None) -> Config:
        assert isinstance(offer, Generated)
        if launch is not None and launch.n_steps > 1:
            return choose(offer.program, offer.stage, offer.kind, launch)
        if launch is None or not STRATEGIES[self._strategy].computes(offer.program, offer.stage):
            return CellConfig()
        configs = configs_of(self._strategy, len(launch.extent))
        return next(one for one in configs if one.suits(launch.fields.values()))
