# SPDX-License-Identifier: MIT
"""Synthetic programs of adjustable cost, on devices and links of a table: what a step would take.

A model in place of a machine, so that every way to run a program has a time, and a search has a
known optimum.  It has what makes real ways hard to search: launches of so many steps divide the
width of a halo or leave a shorter one, wide halos cost cells that are computed twice, long launches
run out of registers, and overlapping pays by what there is to hide.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import product
from operator import add
from random import Random

from controllers.links.link import Link
from controllers.program.boundary import Boundary
from controllers.program.expression import Expression, Read
from controllers.program.field import Field
from controllers.program.program import Program
from controllers.program.stage import Stage
from controllers.tuning.search import search_named
from controllers.tuning.space import Space
from controllers.tuning.trials import Budget, Outcome, tune

N_WIDTHS, N_STEPS, BAND_CELLS = 24, 12, (16, 64, 256)


@dataclass(frozen=True)
class MadeDevice:
    """A device of a table.

    registers: cells that a work-item keeps, at most, before they spill.
    """

    name: str
    memory_bytes_s: float
    operations_s: float
    launch_s: float
    registers: int


# orders of magnitude of what is sold, not measurements
DEVICES = (
    MadeDevice("large GPU", 4e12, 3e13, 5e-6, 96),
    MadeDevice("small GPU", 3e11, 6e12, 8e-6, 64),
    MadeDevice("many cores", 2e11, 2e12, 12e-6, 48),
    MadeDevice("two cores", 2e10, 8e10, 20e-6, 48),
)
LINKS = {
    "one process": Link(4e-6, 8e9),
    "one node": Link(8e-6, 6e9),
    "pinned, then the network": Link(30e-6, 1e10),
    "slow network": Link(1e-3, 1e8),
}


@dataclass(frozen=True)
class SyntheticProgram:
    """Fields that each become something of all of them, at so many operations per cell."""

    operations: int
    reach: int
    n_fields: int
    extent: tuple[int, ...]

    @classmethod
    def at_random(cls, random: Random) -> SyntheticProgram:
        """One of 64 to 16384 cells along each of two axes, or of 64 to 512 along three."""
        n_axes = random.choice((2, 3))
        sizes = (64, 256, 1024, 4096, 16384) if n_axes == 2 else (64, 128, 256, 512)
        operations, size = round(2 ** random.uniform(2, 8)), random.choice(sizes)
        return cls(operations, random.choice((1, 1, 2, 4)), random.randint(1, 5), (size,) * n_axes)

    def program(self) -> Program:
        """The program itself, in float32: stars of `reach`, and products that cost the rest."""
        n_axes, names = len(self.extent), [f"u{n}" for n in range(self.n_fields)]
        updates = {name: self._update(name, n_axes) for name in names}
        star = ((-self.reach, self.reach),) * n_axes
        fields = tuple(Field(name, "float32", Boundary.of("fixed", n_axes)) for name in names)
        return Program("synthetic", fields, (Stage("step", updates, star),))

    def _update(self, name: str, n_axes: int) -> Expression:
        near = [
            tuple(side * self.reach * (one == axis) for one in range(n_axes))
            for axis, side in product(range(n_axes), (-1, 1))
        ]
        found = reduce(add, (Read(name, offset) for offset in near))
        for _ in range(max(0, self.operations - len(near) + 1)):
            found = found * 0.999
        return found


@dataclass(frozen=True)
class Way:
    """One way to run it: the halo's width in steps, how many a launch takes, and the rest."""

    width: int = 1
    steps_per_launch: int = 1
    band: int = 64      # cells of a block of work along the last axis
    overlap: bool = False


@cache
def ways() -> Space[Way]:
    """All that are ways: no launch has more steps than the halo is wide."""
    counts = range(1, N_WIDTHS + 1), range(1, N_STEPS + 1)
    every = (Way(*one) for one in product(*counts, BAND_CELLS, (False, True)) if one[1] <= one[0])
    return Space([Way(), *every])


@dataclass(frozen=True)
class Machine:
    """So many equal devices in a row along axis 0, with equal links."""

    device: MadeDevice
    link: Link
    n_devices: int

    @classmethod
    def at_random(cls, random: Random) -> Machine:
        """One of the table's devices, two to eight times, and one of its links."""
        link = random.choice([*LINKS.values()])
        return cls(random.choice(DEVICES), link, random.choice((2, 3, 4, 8)))

    def seconds(self, program: SyntheticProgram, way: Way) -> float:
        """Of a step, when the program is run in one way."""
        face = math.prod(program.extent[1:])
        rows = -(-program.extent[0] // self.n_devices)
        nbytes = 4.0 * program.n_fields * program.reach * way.width * face
        exchange = 2 * self.link.seconds(nbytes)
        launches = [*self._launches(program, way, rows, face)]
        if not way.overlap:
            return (exchange + sum(launches)) / way.width
        # the border is computed first, by a launch of its own at each end
        border = 2 * self.device.launch_s + 2 * launches[0] * program.reach * way.width / rows
        return (border + max(exchange, launches[0]) + sum(launches[1:])) / way.width

    def _launches(
        self, program: SyntheticProgram, way: Way, rows: int, face: int
    ) -> Iterator[float]:
        """The seconds of each launch between two exchanges."""
        left = way.width
        while left:
            steps = min(way.steps_per_launch, left)
            left -= steps
            # a block of work computes what its neighbours need of it, too
            twice = (way.band + program.reach * (steps - 1)) / way.band
            cells = (rows + 2 * program.reach * left) * face * twice * program.n_fields
            kept = program.n_fields * program.reach * steps * way.band / 64
            moved = 8.0 * cells * (1 + 4 / way.band) * max(1.0, kept / self.device.registers)
            done = program.operations * cells * steps
            work = max(moved / self.device.memory_bytes_s, done / self.device.operations_s)
            yield self.device.launch_s + work


@cache
def times(program: SyntheticProgram, machine: Machine) -> Mapping[Way, float]:
    """The seconds of every way."""
    return {way: machine.seconds(program, way) for way in ways().configurations}


@dataclass(frozen=True)
class Reached:
    """How near a search came to the exhaustive optimum, and what it tried of all ways.

    n_enough: how many were tried when 0.98 of the optimum was reached; None if it never was.
    """

    share: float
    n_tried: int
    n_ways: int
    n_enough: int | None

    def __str__(self) -> str:
        return f"{self.share:.4f} of the optimum after {self.n_tried} of {self.n_ways} ways"


def synthetic_reached(program: SyntheticProgram, machine: Machine, search: str) -> Reached:
    """What a search finds in under a fifth of the trials that all ways would take."""
    space, every = ways(), times(program, machine)

    def measure(batch: Sequence[Way]) -> dict[Way, Outcome]:
        return {way: every[way] for way in batch}

    budget, best = Budget(trials=len(space) // 5 - 2), min(every.values())
    trials = tune(space, measure, budget, search_named(search))
    near = (n for n, way in enumerate(trials.ratios, 1) if best >= 0.98 * every[way])
    return Reached(best / every[trials.best], len(trials.ratios), len(space), next(near, None))


def made_cases(n_cases: int, seed: int = 0) -> Iterator[tuple[SyntheticProgram, Machine]]:
    """Programs on machines, the same at each call."""
    random = Random(seed)
    for _ in range(n_cases):
        yield SyntheticProgram.at_random(random), Machine.at_random(random)
