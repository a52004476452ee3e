# SPDX-License-Identifier: MIT
"""The launches of a step that take the digests of what they read, where they can.

Launches of several steps on CPUs can, of the field that they update; where a step has been launched
so, nothing else has to read that.
"""
# docs/decisions/0098-digests-are-taken-by-the-next-launch.md
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyopencl as cl

from controllers.device.event import Command
from controllers.engine import Engine
from controllers.executor.digesting import DeviceDigest
from controllers.executor.opencl import OpenCLExecutor

Part: TypeAlias = tuple[str, int]       # of a field, at a place
Weights: TypeAlias = Callable[[int], cl.Buffer]     # those on the device of a place


@dataclass(frozen=True)
class DigestingLaunches:
    """Their commands, by number of the operation, and the parts whose digests they take."""

    commands: Mapping[int, Command]
    digests: Mapping[Part, DeviceDigest]

    @classmethod
    def of(cls, engine: Engine, phase: int, weights: Weights) -> DigestingLaunches:
        """Those of a step of the period, of an engine whose launches compute several steps."""
        plan = engine.plan
        commands: dict[int, Command] = {}
        digests: dict[Part, DeviceDigest] = {}
        for place in plan.places:
            if _can_take(engine, place):
                field = plan.sweeps[0].leader
                executor = engine.executors[place]
                assert isinstance(executor, OpenCLExecutor)
                digests[field, place] = digest = DeviceDigest(
                    executor, weights(place), plan.owned(field, place),
                    plan.updated(plan.sweeps[0], place), plan.layout_of(field).domain,
                )  # fmt: skip
                for one in plan.operations:
                    if (one.verb, one.phase, one.place) == ("launch", phase, place):
                        commands[one.number] = engine.digesting(one, digest)
        return cls(commands, digests)


NONE = DigestingLaunches({}, {})


def _can_take(engine: Engine, place: int) -> bool:
    """Whether the launches at a place read all of a field once, and all can take its digest."""
    plan, executor = engine.plan, engine.executors[place]
    assert isinstance(executor, OpenCLExecutor)
    (sweep,) = plan.sweeps
    boxes = [*plan.launched(sweep, place)]
    return bool(boxes) and all(
        executor.takes_digests(plan.program, sweep, placed) for placed in boxes
    )
