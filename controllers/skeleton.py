# SPDX-License-Identifier: MIT
"""The iterative-stencil skeleton, and the object under it.

Skeleton after EPSILOD, de Castro et al. 2023, doi:10.1007/s11227-022-05040-y: borders
first, their hand-over while the inner part is computed, tiles swapped without copying.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.engine import Engine, Progress
from controllers.partition import make_layout, periodic_axes
from controllers.placement import Placement, place_on
from controllers.plan import Overlap, Plan, TileKey
from controllers.program import Program
from controllers.registry import agreed_kernel
from controllers.report import PlaceReport, Report
from controllers.stage_kernel import domain_values
from controllers.stencil import Stencil
from controllers.variant import Kernel
from hitmap.comm import Communicator, default_communicator
from hitmap.scatter import gather, scatter
from hitmap.shape import Shape


@dataclass(frozen=True)
class TileView:
    """What `init` and `output` see of one place.

    `array` is writable and holds the owned cells without halo; `shape` is their global box,
    possibly without cells; `domain` the extents of the whole field.
    """

    array: npt.NDArray[Any]
    shape: Shape
    domain: tuple[int, ...]
    place: int


class Computation:
    """A program on a field, distributed over places: load it, run steps, look, go on.

    All methods are collective unless they say otherwise: every rank of `comm` calls them in
    the same order with the same arguments.

    sizes: extents of the field in cells, its boundary cells included.
    partition: "bands" (along axis 0), "blocks" (on all axes), or "weighted" (bands in
        proportion to `weights`, one per place in order of rank); weighted if weights are given.
    boundary: "fixed" or "periodic", one for all axes or one per axis.
    devices: selectors such as "gpu", "cpu", "nvidia:1", "cpu/1,1", "reference"; by default
        all GPUs of a node, else its CPU.  The ranks of a node share them in order.
    overlap: "on", "off", or "auto", which hands borders over beside the computation where
        that is estimated to pay.
    places_per_controller: shares of the domain that each device computes.
    kernel: "specialised" (the default: generated for the program), "generic" (one that takes
        any weighted stencil as data), or a kernel of your own, a `Kernel` or the name of a
        registered one; the program then says what it reads, not what it computes.
    zero_copy: use host memory in place on devices that share it; False treats them like
        devices with memory of their own.
    """

    def __init__(
        self,
        program: Program,
        sizes: int | Sequence[int],
        *,
        partition: str | None = None,
        weights: Sequence[float] | None = None,
        boundary: str | Sequence[str] = "fixed",
        devices: str | Sequence[str] | None = None,
        comm: Communicator | None = None,
        overlap: Overlap = "auto",
        places_per_controller: int = 1,
        kernel: str | Kernel | None = None,
        zero_copy: bool = True,
    ) -> None:
        self.program = program
        self.comm = default_communicator() if comm is None else comm
        self.domain = domain_of(program, sizes)
        periodic = periodic_axes(boundary, program.n_axes)
        if overlap not in ("auto", "on", "off"):
            raise ValueError(f"overlap is one of auto, on, off, got {overlap!r}")
        choice = agreed_kernel(self.comm, kernel)
        if isinstance(choice, Kernel):
            choice = choice.with_scalars(domain_values(self.domain))
        self.placement: Placement = place_on(
            self.comm, devices, program, places_per_controller, zero_copy=zero_copy, kernel=choice
        )
        self.layout = make_layout(self.domain, self.placement.n_places, partition, weights)
        self.plan = Plan(
            program,
            self.layout,
            periodic,
            self.placement.locations,
            overlap=overlap,
            only_rank=self.comm.rank,
        )
        self._messages = self.comm.Dup()
        self._engine = Engine(self.plan, self.placement.executors, self._messages)
        self._seconds = 0.0
        self._n_steps = 0
        self._compute_s = dict.fromkeys(self.plan.places, 0.0)
        self._gap_s = dict.fromkeys(self.plan.places, 0.0)
        self._engine.run(self.plan.n_phases)    # build, connect, touch memory: not timed
        self.load(_zero)

    # -- data -----------------------------------------------------------------------------

    def load(self, init: Callable[[TileView], None]) -> None:
        """Set the field: `init` is called once per place of this rank, its array zeroed.

        Steps count from 0 again.  Not collective by itself.
        """
        for place in self.placement.places:
            owned = self.layout.owned[place]
            array = np.zeros(owned.extent, self.program.dtype)
            init(TileView(array, owned, self.domain.extent, place))
            if not owned.empty:
                for level in range(self.plan.n_phases):
                    tile = self._engine.tiles[TileKey(self._field, level, place)]
                    self.placement.executors[place].move_to(tile, owned, array)
        self._engine.loaded()

    def visit(self, output: Callable[[TileView], None]) -> None:
        """Look at the field: `output` is called once per place of this rank.

        The arrays are copies, to be kept or changed freely.  Not collective by itself.
        """
        for place in self.placement.places:
            owned = self.layout.owned[place]
            output(TileView(self._owned_cells(place), owned, self.domain.extent, place))

    def scatter(self, whole: npt.NDArray[Any] | None, root: int = 0) -> None:
        """Set the field from an array that `root` holds (None elsewhere)."""
        parts = scatter(whole, self.layout, self.placement.ranks, self.comm, root)
        self.load(lambda tile: np.copyto(tile.array, parts[tile.place], casting="same_kind"))

    def gather(
        self, root: int = 0, out: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[Any] | None:
        """The whole field on `root`, into `out` if given there; None on the other ranks."""
        parts = {place: self._owned_cells(place) for place in self.placement.places}
        dtype = np.dtype(self.program.dtype)
        return gather(parts, self.layout, self.placement.ranks, self.comm, dtype, root, out)

    # -- steps ----------------------------------------------------------------------------

    def run(self, n_steps: int, progress: Progress | None = None) -> None:
        """Run `n_steps` steps; `progress(done, total)` is called now and then on each rank."""
        if n_steps < 0:
            raise ValueError(f"the number of steps must not be negative, got {n_steps}")
        self.comm.Barrier()
        start = time.perf_counter()
        self._engine.run(n_steps, progress)
        seconds = time.perf_counter() - start
        self._seconds += max(self.comm.allgather(seconds))
        self._n_steps += n_steps
        for place, run in self._engine.places.items():
            self._compute_s[place] += min(run.samples.compute_s() * n_steps, seconds)
            self._gap_s[place] += run.samples.gap_s() * n_steps

    def report(self) -> Report:
        """What all steps so far have cost, the same on all ranks."""
        mine = [self._place_report(place) for place in self.placement.places]
        places = [place for rank in self.comm.allgather(mine) for place in rank]
        return Report(self._seconds, self._n_steps, self.domain.n_cells, tuple(places))

    def close(self) -> None:
        """Give back what belongs to MPI; tiles go with the last reference to the object."""
        self._engine.close()
        self._messages.Free()

    def __enter__(self) -> Computation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:   # collective: on an error the other ranks do not take part
            self.close()

    # -- inside ---------------------------------------------------------------------------

    @property
    def _field(self) -> str:
        return self.program.stages[-1].writes

    def _owned_cells(self, place: int) -> npt.NDArray[Any]:
        owned = self.layout.owned[place]
        if owned.empty:
            return np.empty(owned.extent, self.program.dtype)
        level = self.plan.level(self._engine.n_steps)
        tile = self._engine.tiles[TileKey(self._field, level, place)]
        return self.placement.executors[place].move_from(tile, owned)

    def _place_report(self, place: int) -> PlaceReport:
        location = self.placement.locations[place]
        neighbours = [
            other
            for other in self.plan.places
            if other != place and self.placement.locations[other].same_controller(location)
        ]
        compute_s = self._compute_s.get(place, 0.0)
        gap_s = self._gap_s.get(place, 0.0) - sum(self._compute_s[p] for p in neighbours)
        talks = any(operation.verb != "launch" for operation in self.plan.operations
                    if operation.place == place)
        n_cells = self.layout.owned[place].n_cells
        return PlaceReport(
            place=place,
            rank=self.comm.rank,
            device=location.device,
            cells=n_cells,
            share=n_cells / self.domain.n_cells,
            cells_per_s=n_cells * self._n_steps / compute_s if compute_s else 0.0,
            compute_s=compute_s,
            exposed_s=max(0.0, gap_s) if talks else 0.0,
        )


def stencil_computation(
    sizes: int | Sequence[int],
    shape: Sequence[Sequence[int]],
    pattern: Any,
    factor: float,
    iterations: int,
    kernel: str | Kernel | None = None,
    init: Callable[[TileView], None] | None = None,
    output: Callable[[TileView], None] | None = None,
    *,
    partition: str | None = None,
    weights: Sequence[float] | None = None,
    boundary: str | Sequence[str] = "fixed",
    devices: str | Sequence[str] | None = None,
    comm: Communicator | None = None,
    dtype: npt.DTypeLike = "float32",
    overlap: Overlap = "auto",
) -> Report:
    """Apply a weighted stencil `iterations` times to a field; collective.

    sizes: extents of the field in cells, its boundary cells included.
    shape: inclusive first and last offset per axis, such as [(-1, 1), (-1, 1)].
    pattern: the weights over `shape` in C order, flat or nested; 0 where nothing is read.
    factor: what the weighted sum is divided by.
    kernel: None for the kernel that is generated for the stencil, "generic", or one of your
        own (`register_stencil`); `pattern` then says which neighbours it reads.
    init, output: called once per place with a `TileView`, before and after the steps; the
        field is 0 where `init` sets nothing.
    dtype: float32 or float64, or uint8, int16, int32 or int64 with whole weights and factor.

    The other options are those of `Computation`.  Returns what the steps have cost.
    """
    stencil = Stencil.of("stencil", shape, pattern, factor)
    with Computation(
        stencil.program(np.dtype(dtype).name),
        sizes,
        partition=partition,
        weights=weights,
        boundary=boundary,
        devices=devices,
        comm=comm,
        overlap=overlap,
        kernel=kernel,
    ) as computation:
        if init is not None:
            computation.load(init)
        computation.run(iterations)
        if output is not None:
            computation.visit(output)
        return computation.report()


def domain_of(program: Program, sizes: int | Sequence[int]) -> Shape:
    """The box of all cells; `sizes` must have as many axes as the program, none of them empty."""
    extent = (sizes,) if isinstance(sizes, int) else tuple(int(size) for size in sizes)
    if len(extent) != program.n_axes:
        raise ValueError(
            f"the stencil {program.name!r} has {program.n_axes} axes but the field has "
            f"{len(extent)}: {extent}; give one size per axis"
        )
    if min(extent) < 1:
        raise ValueError(f"every axis of a field needs at least one cell, got {extent}")
    return Shape.of_extent(extent)


def _zero(tile: TileView) -> None:
    """The array is zero already."""
