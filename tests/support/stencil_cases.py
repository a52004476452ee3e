# SPDX-License-Identifier: MIT
"""Random stencils on random fields, and the ways to divide the work that each is tried with.

A case follows from its number alone.  `Case.problem` is the check of every test that compares a
distributed run with the reference: all bits, after every `run`.
"""
from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from controllers.language.weights import Stencil
from controllers.memory.tile import TileView
from controllers.program.boundary import Boundary
from controllers.program.program import Program
from controllers.program.reference import reference_run
from controllers.run.computation import Computation
from controllers.settings.division import Division
from hitmap.comm import Communicator

PLACES = (1, 2, 3, 4, 6)
PARTITIONS = ("bands", "blocks", "weighted", "weighted-blocks", "cyclic")
CONTROLLERS = (1, 2)        # per process
RANKS = (1, 2, 3, 4)
OVERLAPS = ("on", "off", "auto")
MEMORIES = (True, False)    # zero_copy
PER_CASE = 4
MAX_CELLS = {1: 3000, 2: 3000, 3: 3000, 4: 2000}
EVEN = Division()
MAX_TERMS = 30              # weights that are not zero; a longer sum only compiles longer


@dataclass(frozen=True)
class Combination:
    """One way to run a case."""

    ranks: int = 1
    controllers: int = 1
    places_per_controller: int = 1
    partition: str = "bands"
    overlap: str = "auto"
    zero_copy: bool = True
    division: Division = EVEN
    then: Division | None = None    # how the field is divided before the last run
    scatters: bool = False          # the field comes by `scatter`, else by `load`
    steps_per_launch: int | None = 1        # where there are kernels for it; None: by default

    @property
    def places(self) -> int:
        return self.ranks * self.controllers * self.places_per_controller

    @property
    def devices(self) -> str:
        """On one rank, two controllers have a core each; on several ranks, a CPU each, which the
        driver must list often enough (`case_server.environment`)."""
        if self.controllers == 1:
            return "cpu:0"
        return "cpu:0/1,1" if self.ranks == 1 else "cpu"

    @property
    def factors(self) -> tuple[tuple[str, object], ...]:
        """What all pairs must occur of."""
        return (
            ("places", self.places),
            ("partition", self.partition),
            ("controllers", self.controllers),
            ("ranks", self.ranks),
            ("overlap", self.overlap),
            ("zero_copy", self.zero_copy),
        )


@dataclass(frozen=True)
class Case:
    """A stencil, a field, and how many steps each `run` makes."""

    stencil: Stencil
    dtype: str
    extent: tuple[int, ...]
    boundary: tuple[str, ...]
    runs: tuple[int, ...]
    seed: int
    combinations: tuple[Combination, ...] = ()

    @property
    def program(self) -> Program:
        return self.stencil.program(self.dtype)

    @cached_property
    def field(self) -> npt.NDArray[np.floating]:
        """Both signs and unlike magnitudes, subnormal numbers and both zeros; no NaN."""
        rng = np.random.default_rng(self.seed)
        exponents = rng.integers(-24, 25, self.extent)
        exponents[rng.random(self.extent) < 0.02] = np.finfo(self.dtype).minexp - 3
        exponents[rng.random(self.extent) < 0.02] = -10000
        mantissas = rng.uniform(1, 2, self.extent) * rng.choice([-1, 1], self.extent)
        return np.ldexp(mantissas, exponents).astype(self.dtype)

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Which axes are rings."""
        n_axes = len(self.extent)
        return tuple(map(Boundary.of(self.boundary, n_axes).periodic, range(n_axes)))

    @cached_property
    def expected(self) -> tuple[npt.NDArray[np.floating], ...]:
        """The field after each `run`."""
        fields = [self.field]
        for n_steps in self.runs:
            fields.append(reference_run(self.program, fields[-1], n_steps, self.periodic))
        return tuple(fields[1:])

    def computation(self, combination: Combination, comm: Communicator) -> Computation:
        """All is set up as `combination` says; collective."""
        options = {
            "boundary": self.boundary,
            "devices": combination.devices,
            "comm": comm,
            "overlap": combination.overlap,
            "places_per_controller": combination.places_per_controller,
            "zero_copy": combination.zero_copy,
            "division": combination.division,
        }
        n_steps = combination.steps_per_launch
        try:
            return Computation(self.program, self.extent, steps_per_launch=n_steps, **options)
        except ValueError as error:
            if "no kernel computes" not in str(error) and "are for programs" not in str(error):
                raise
            return Computation(self.program, self.extent, **options)

    def problem(self, combination: Combination, comm: Communicator) -> str | None:
        """Run the case; what differs from the reference, None if nothing does.  Collective."""
        with self.computation(combination, comm) as computation:
            n_places = computation.layout.n_places
            expected = n_places if combination.division.block else combination.places
            assert n_places == expected, f"{n_places} places for {combination}"
            if combination.scatters:
                computation.scatter(self.field if comm.rank == 0 else None)
            else:
                computation.load(self._set)
            problems = []
            for number, n_steps in enumerate(self.runs):
                if combination.then is not None and number == len(self.runs) - 1:
                    n_each = combination.places_per_controller
                    self._redistribute(computation, combination.then, n_each)
                computation.run(n_steps)
                result = computation.gather()
                if result is not None:
                    found = difference(result, self.expected[number])
                    problems += [f"run {number}: {found}"] if found else []
            return comm.bcast("; ".join(problems) or None)

    def _redistribute(self, computation: Computation, division: Division, n_each: int) -> None:
        """The new places may have no kernels of as many steps: then the field stays as it is."""
        try:
            computation.redistribute(division, places_per_controller=n_each)
        except ValueError as error:
            if "no kernel computes" not in str(error):
                raise

    def _set(self, tile: TileView) -> None:
        tile.array[...] = self.field[tile.box.slices((0,) * len(self.extent))]


def difference(result: npt.NDArray[np.floating], expected: npt.NDArray[np.floating]) -> str | None:
    """Where the bits of two arrays differ; None if they are the same, signs of zeros too."""
    if (result.dtype, result.shape) != (expected.dtype, expected.shape):
        return f"got {result.dtype}{result.shape}, expected {expected.dtype}{expected.shape}"
    word = f"u{result.itemsize}"
    wrong = np.argwhere(np.ascontiguousarray(result).view(word) != expected.view(word))
    if not len(wrong):
        return None
    first = tuple(map(int, wrong[0]))
    return (
        f"{len(wrong)} of {result.size} cells differ, the first at {first}: "
        f"got {float(result[first]).hex()}, expected {float(expected[first]).hex()}"
    )


def possible_combinations() -> list[Combination]:
    """Everything that the factors allow, without weights."""
    homes = [
        (ranks, controllers, places // (ranks * controllers))
        for ranks, controllers, places in product(RANKS, CONTROLLERS, PLACES)
        if places % (ranks * controllers) == 0
    ]
    return [
        Combination(*home, partition, overlap, zero_copy)
        for home, partition, overlap, zero_copy in product(homes, PARTITIONS, OVERLAPS, MEMORIES)
        if partition != "cyclic" or home[2] == 1    # as many places as there are blocks
    ]


def random_case(number: int) -> Case:
    """Case `number`, the same every time."""
    rng = random.Random(number)
    stencil = random_stencil(rng)
    boundary = tuple(rng.choice(["fixed", "periodic"]) for _ in stencil.shape)
    n_steps = rng.randint(0, 7)
    runs = (n_steps,) if rng.random() < 0.4 else (part := rng.randint(0, n_steps), n_steps - part)
    extent = tuple(random_extent(rng, stencil.n_axes))
    dtype = rng.choice(["float32", "float64"])
    combinations = tuple(random_combinations(rng, number, extent))
    return Case(stencil, dtype, extent, boundary, runs, number, combinations)


def random_stencil(rng: random.Random) -> Stencil:
    """1 to 4 axes, symmetric or not, up to 3 cells on each side, holes between the weights."""
    n_axes = rng.randint(1, 4)
    radii = [rng.randint(0, 3) for _ in range(n_axes)]
    shape = [(-radius, radius) for radius in radii]
    if rng.random() < 0.6:
        shape = [(-rng.randint(0, 3), rng.randint(0, 3)) for _ in range(n_axes)]
    n_weights = prod(high - low + 1 for low, high in shape)
    weights = [0.0] * n_weights
    n_terms = rng.randint(1, min(n_weights, MAX_TERMS))
    for position in rng.sample(range(n_weights), n_terms):
        weights[position] = rng.choice([1, 1, -1, 0.5, -2, 0.3, 1 / 3, 1e-3, rng.uniform(-3, 3)])
    factor = rng.choice([1, 4, 3.7, -7, sum(map(abs, weights))])
    return Stencil.of("random", shape, weights, factor)


def random_extent(rng: random.Random, n_axes: int) -> Iterator[int]:
    """Odd, mostly; sometimes thinner than the halo, or smaller than the stencil."""
    mean = MAX_CELLS[n_axes] ** (1 / n_axes)
    for _ in range(n_axes):
        thin = rng.random() < 0.12
        yield rng.randint(1, 3) if thin else 2 * rng.randint(int(mean / 4), int(mean / 2)) + 1


def random_combinations(
    rng: random.Random, number: int, extent: tuple[int, ...]
) -> Iterator[Combination]:
    """Case after case takes its share of all possible ones, in a random but fixed order."""
    every = possible_combinations()
    random.Random(0).shuffle(every)
    for position in range(number * PER_CASE, (number + 1) * PER_CASE):
        row = every[position % len(every)]
        yield replace(
            row,
            division=random_division(rng, row.partition, row.places, extent),
            then=(
                random_division(rng, rng.choice(PARTITIONS), row.places, extent)
                if rng.random() < 0.3
                else None
            ),
            scatters=rng.random() < 0.5,
            steps_per_launch=random.Random(position).choice([None, 1, 1, 1, 2, 3]),
        )


def random_division(
    rng: random.Random, partition: str, n_places: int, extent: tuple[int, ...]
) -> Division:
    """Cuts anywhere or at multiples; of a cyclic one 1 to 12 blocks."""
    if partition == "cyclic":
        axes = {rng.randrange(len(extent)) for _ in range(2)}
        parts = [rng.randint(1, 3 if len(axes) > 1 else 6) if a in axes else 1
                 for a in range(len(extent))]  # fmt: skip
        return Division(partition, block=tuple(-(-n // k) for n, k in zip(extent, parts)))
    align = tuple(rng.choice([1, 1, 1, 2, 8]) for _ in extent)
    weighted = partition.startswith("weighted")
    return Division(partition, tuple(random_weights(rng, n_places)) if weighted else None, align)


def random_weights(rng: random.Random, n_places: int) -> Sequence[float]:
    """Up to 50:1, now and then with a place that gets nothing."""
    weights = [round(50 ** rng.random(), 2) for _ in range(n_places)]
    if rng.random() < 0.3:
        weights[rng.randrange(n_places)] = 50.0
        weights[rng.randrange(n_places)] = 1.0
    if n_places > 1 and rng.random() < 0.1:
        weights[rng.randrange(n_places)] = 0.0
    return weights
