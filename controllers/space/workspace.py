# SPDX-License-Identifier: MIT
"""Workspaces: the devices of all ranks, opened once, and the arrays that live on them."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import controllers
from controllers.array.lazy import Distributed
from controllers.array.streams import Streams
from controllers.balance.first import First, first_division
from controllers.calls.call import Calls, check_communicator, collective, refuse_together
from controllers.calls.state import State
from controllers.calls.watchdog import Watchdog, Watched
from controllers.fields.given_values import of_file
from controllers.kernel.registry import SPECIALISED
from controllers.placement.placement import open_controllers
from controllers.program.stage_check import Math
from controllers.settings.division import Division
from controllers.settings.execution import Execution
from controllers.settings.overrides import overrides
from controllers.space import rates
from controllers.space.applied import Applying, SpaceCalls
from controllers.space.asked import checked, division_of, dtype_of, execution_of
from controllers.space.home import Home, home_program
from controllers.space.space_report import SpacePlace, SpaceReport
from controllers.space.split_array import SplitArray
from controllers.space.whole_array import WholeArray
from hitmap.agreement import agree_on_call, next_number, raise_together
from hitmap.argument import file_name
from hitmap.comm import Communicator, default_communicator
from hitmap.layout import Layout
from hitmap.npy import fingerprint, open_npy
from hitmap.section import Section
from hitmap.shape import Shape
from hitmap.uncaught import install_where_ranks_are

ROWS = 1 << 20      # about as many as devices are expected to share

Weights = Sequence[float] | Literal["auto"] | None


class Workspace:
    """Devices on which arrays live, of any shapes, split by rows or whole (docs/workspace.md).

    All methods are collective: every rank of `comm` calls them in the same order, with the same
    arguments.

    devices: selectors such as "gpu", "cpu", ["gpu", "cpu"], "cpu/1,1", "reference"; by default
        all GPUs of a node, else its CPU.  The ranks of a node share them in order.
    weights: shares of the rows, one per place in order of rank; "auto" by how fast the devices are
        thought to be.  By default equal ones, and "auto" where devices are unlike.
    dtype: of arrays that are made of floats; by default their own.
    places_per_controller: shares of the rows that each device has.
    memory_cap: the most that arrays may take of each device; where they do not fit, all live on
        the host, and calls pass through the devices in chunks of rows (docs/workspace.md).
    chunks, slots: how many chunks of each place there are at least, so that arrays pass through
        that fit, too; and for how many of them a device has room at once, by default 3.  "auto":
        what is not said of these is found out while calls pass through.
    math: "strict", or "fast", as of `Execution`; so are the other arguments.
    """

    def __init__(
        self,
        *,
        devices: str | Sequence[str] | None = None,
        weights: Weights = None,
        dtype: npt.DTypeLike | None = None,
        places_per_controller: int = 1,
        math: Math = "strict",
        watchdog: float | str | None = None,
        memory_cap: str | int | None = None,
        chunks: int | Literal["auto"] | None = None,
        slots: int | None = None,
        zero_copy: bool = True,
        exclusive: bool | float = False,
        comm: Communicator | None = None,
    ) -> None:
        check_communicator(comm)
        self.comm = default_communicator() if comm is None else comm
        install_where_ranks_are(self.comm)
        division, execution, self._dtype = refuse_together(self.comm, lambda: (
            division_of(Division(weights=weights, places_per_controller=places_per_controller)),
            execution_of(Execution(devices=devices, math=math, watchdog=watchdog, check=False,
                                 memory_cap=memory_cap, chunks=chunks, slots=slots,
                                 zero_copy=zero_copy, exclusive=exclusive)),
            None if dtype is None else dtype_of(dtype),
        ))  # fmt: skip
        self.calls, self.state = Calls(self.comm, "a workspace"), State("workspace")
        watched = Watched(self.calls)
        self._watchdog = Watchdog(execution.limit_s, watched)
        self._homes: dict[tuple[int, ...], Home] = {}
        self._layouts: dict[tuple[int, ...], Layout] = {}
        with self.calls.agreed(
            "set-up", package=controllers.__version__, dtype=self._dtype, **division.facts,
            **execution.facts,
        ):  # fmt: skip
            number = next_number(self.comm)
            self.calls.owner = f"workspace {number}"
            self._watchdog.connect(self.comm, number)
            with overrides().answering():
                self._begin(division, execution)
        overrides().opened(self)

    def _begin(self, division: Division, execution: Execution) -> None:
        """Open the devices, and divide the rows among them."""
        program = home_program(1, execution.math)
        self._controllers = open_controllers(self.comm, program, execution)
        rows = Shape.of_extent((ROWS,))
        self.begun: First = first_division(
            division, execution, rates.named(self._controllers, execution.math), SPECIALISED,
            self._controllers, rows, self.comm,
        )  # fmt: skip
        self.layout_of(rows.extent)     # or refused
        self._math: Math = execution.math
        self.messages = self.comm.Dup()
        placement = self._controllers.consecutive(self.begun.division.places_per_controller)
        self.executors, self.locations = placement.executors, placement.locations
        self.streams = Streams(
            placement, self.comm, execution.slots, execution.n_chunks,
            searches=execution.chunks == "auto",
        )  # fmt: skip
        self._apply = Applying(self)
        self.owner = SpaceCalls(self.calls, self.state, self._apply)

    def array(
        self, values: npt.ArrayLike, split: int | None = 0, dtype: npt.DTypeLike | None = None
    ) -> Any:
        """An array with these values, of which those of rank 0 count, of 1 to 3 axes.

        split: 0, its rows are divided over the places; None, each place has the whole of it.
        dtype: by default that of the workspace, for floats, else that of the values.
        """
        self.state.check_idle("array")
        given = values if isinstance(values, Distributed) else np.asarray(values)
        name = refuse_together(self.comm, lambda: checked(given, split, dtype, self._dtype))
        if split is None or not isinstance(given, Distributed):
            return self._array(np.asarray(given), given.shape, name, split)
        made = self._array(None, given.shape, name, split)
        made[...] = given if given.dtype == name else given.astype(name)
        return made

    @collective("shape", "name", "split", use="nothing")
    def _array(
        self, values: npt.NDArray[Any] | None, shape: tuple[int, ...], name: str, split: int | None
    ) -> Any:
        """values: None for an array whose values are undefined."""
        if split is None:
            return WholeArray.of(self.owner, self.comm.bcast(np.array(values, name)))
        made = self.split_array(shape, name)
        if values is not None:
            made.arrays.store.put(made.source, Section.of(..., shape), values)
        return made

    def open(
        self, path: str | os.PathLike[str], split: int | None = 0,
        dtype: npt.DTypeLike | None = None,
    ) -> Any:  # fmt: skip
        """An array with the values of a .npy file that all ranks can read; each reads its own rows.

        ValueError on all ranks if it cannot be read, or is another file on some rank.
        """
        self.state.check_idle("open")
        file_name(path, "path")
        return self._open(path, split, dtype)

    @collective("path", "split", "dtype", use="nothing")
    def _open(
        self, path: str | os.PathLike[str], split: int | None, dtype: npt.DTypeLike | None
    ) -> Any:
        whole, name = self._opened(path, split, dtype)
        if split is None:
            return WholeArray.of(self.owner, np.array(whole, name))
        made = self.split_array(whole.shape, name)
        problem = None
        try:
            made.arrays.store.fill(made.source, lambda box: whole[box.slices((0,) * box.n_axes)])
        except (OSError, ValueError) as error:
            problem = of_file(path, error)
        raise_together(self.comm, problem)
        return made

    def _opened(
        self, path: str | os.PathLike[str], split: int | None, dtype: npt.DTypeLike | None
    ) -> tuple[npt.NDArray[Any], str]:
        """The array of a file, the same one on all ranks, and the dtype that it gets."""
        problem, whole, name = None, np.empty(0), ""
        try:
            whole = open_npy(path)
            name = checked(whole, split, dtype, self._dtype)
        except (OSError, TypeError, ValueError) as error:
            problem = of_file(path, error)
        raise_together(self.comm, problem)
        if self.comm.size > 1:
            same = {"the content": fingerprint(path)}
            agree_on_call(self.comm, f"the reading of {path}", same)
        return whole, name

    def split_array(self, shape: tuple[int, ...], dtype: str) -> SplitArray:
        """An array whose values are undefined.  Collective."""
        return SplitArray(self.home(shape), dtype, self.comm, self.calls, self.state)

    def layout_of(self, extent: tuple[int, ...]) -> Layout:
        """Which rows each place has, of arrays of so many rows."""
        if extent not in self._layouts:
            division, n = self.begun.division, len(self._controllers.locations)
            self._layouts[extent] = division.layout_of(Shape.of_extent(extent), n)
        return self._layouts[extent]

    def finish(self) -> None:
        """Wait until nothing that was written of arrays is under way.  Not collective."""
        for home in self._homes.values():
            home.arrays.pending.finish()

    def home(self, shape: tuple[int, ...]) -> Home:
        """Where arrays of a shape lie."""
        if shape not in self._homes:
            self._homes[shape] = Home(
                shape, self.begun.division, self._controllers, self.comm, self.messages,
                self._math, self.owner, self.streams,
            )  # fmt: skip
        return self._homes[shape]

    @collective()
    def report(self) -> SpaceReport:
        """Places, devices, shares and times of functions so far, the same on all ranks."""
        shares = self.layout_of((ROWS,)).owned
        costs = self._apply.meter.costs
        mine = [
            SpacePlace(place, where.rank, where.device, shares[place].n_cells / ROWS,
                       costs[place].compute_s, costs[place].exchange_s, costs[place].wait_s)
            for place, where in enumerate(self.locations) if where.rank == self.comm.rank
        ]  # fmt: skip
        everyone = self.comm.allgather((mine, self._controllers.report()))
        return SpaceReport(
            tuple(sorted((one for rank in everyone for one in rank[0]), key=lambda p: p.place)),
            self._apply.meter.calls, self.begun.source,
            tuple(device for rank in everyone for device in rank[1]), self.streams.report,
        )  # fmt: skip

    @property
    def facts(self) -> dict[str, object]:
        """What is the same on all ranks when they use it."""
        return {}

    def __repr__(self) -> str:
        devices = ", ".join(dict.fromkeys(where.device for where in self._controllers.locations))
        return f"<{self.calls.owner}: {len(self._homes)} shapes on {devices}, {self.state}>"

    def close(self) -> None:
        """Give back the memory of all arrays; what slices and expressions show goes to the host."""
        if not self.state.closed:
            self._close()

    @collective()
    def _close(self) -> None:
        self.state.closed = True
        rates.keep(
            self._controllers, self._math, self.layout_of((ROWS,)), self.locations,
            self._apply.meter.costs, self.comm,
        )  # fmt: skip
        self.finish()
        self._apply.close()
        for home in self._homes.values():
            home.close()
        self.messages.Free()
        self._watchdog.stop()
        self._let_go()

    def _let_go(self) -> None:
        """Of the devices, for others."""
        if self._controllers.mark is not None:
            self._controllers.mark.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:   # collective: on an error the other ranks do not take part
            self.close()
        elif not self.state.closed:
            self._let_go()


workspace: Callable[..., Workspace] = Workspace
