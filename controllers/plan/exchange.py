# SPDX-License-Identifier: MIT
"""How one message of a halo pattern travels: the operations from border to halo.

    memory of the source      path                                   memory of the target
    the same controller       copy                                   the same controller
    the host's                [pack]  [send, receive]  [unpack]      the host's
    a device's                [pack] download  ...  upload [unpack]  a device's

Packing is left out where the cells are contiguous in their tile, a message where both
places belong to one rank.  Between two places in host memory one copy does it all.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from controllers.plan.operation import (
    HostTask,
    Lane,
    MemoryCells,
    StagingKey,
    Transfer,
    Verb,
)
from controllers.plan.outline import Outline
from controllers.program.sweep import Version


class Adds(Protocol):
    """What takes the operations: a `Recorder`, or who only wants to know what they would be."""

    def add(
        self,
        place: int,
        verb: Verb,
        lane: Lane,
        reads: Iterable[MemoryCells],
        writes: Iterable[MemoryCells],
        *,
        sweep: int | None = None,
        transfer: int | None = None,
        task: HostTask | None = None,
    ) -> None: ...


class Delivery:
    """Records the operations of one message, in the parts that `Plan` puts in order.

    It fills the halo of `version` in a step of the period: of the one that the message is planned
    for, or of one with the same readers.
    """

    def __init__(
        self, plan: Outline, recorder: Adds, transfer: Transfer, version: Version, phase: int
    ) -> None:
        message = transfer.message
        self._recorder = recorder
        self._transfer = transfer
        self._source = message.source
        self._target = message.target
        source, target = plan.locations[message.source], plan.locations[message.target]
        self._one_controller = source.same_controller(target)
        self._one_rank = source.rank == target.rank
        self._source_here = plan.only_rank in (None, source.rank)
        self._target_here = plan.only_rank in (None, target.rank)
        self._source_on_host = source.shares_host
        self._target_on_host = target.shares_host
        self._border = MemoryCells(plan.tile(version, phase, message.source), message.border)
        self._halo = MemoryCells(plan.tile(version, phase, message.target), message.halo)
        self._border_is_dense = contiguous(plan, transfer, message.source)
        self._halo_is_dense = contiguous(plan, transfer, message.target)

    def pack(self) -> None:
        """Pack on the device; this must not queue behind the kernel of the inner part."""
        if not (self._one_controller or self._source_on_host or self._border_is_dense):
            if self._source_here:
                on_device = self._staging("border", True)
                self._add(self._source, "pack", "compute", self._border, on_device)

    def copy(self) -> None:
        """Between places of one controller, or of one place with itself: no host takes part."""
        if self._source_here and self._one_controller:
            self._add(self._source, "copy", "compute", self._border, self._halo)

    def receive(self) -> None:
        """The message of another rank: straight into the tile where that is possible."""
        if self._target_here and not self._one_rank:
            arriving = self._arriving()
            self._add(self._target, "receive", "network", None, arriving)

    def leave(self) -> None:
        """From the border to host memory, and to the other rank."""
        if not self._source_here or self._one_controller:
            return
        if not self._source_on_host:
            packed = self._border if self._border_is_dense else self._staging("border", True)
            self._add(self._source, "download", "transfer", packed, self._staging("border"))
        elif not self._border_is_dense and not self._host_to_host():
            self._add(self._source, "pack", "host", self._border, self._staging("border"))
        if not self._one_rank:
            self._add(self._source, "send", "network", self._leaving(), None)

    def arrive(self) -> None:
        """From host memory into the halo."""
        if not self._target_here or self._one_controller:
            return
        if self._host_to_host():
            self._add(self._source, "copy", "host", self._border, self._halo)
            return
        arriving = self._leaving() if self._one_rank else self._arriving()
        if self._target_on_host:
            if arriving != self._halo:
                self._add(self._target, "unpack", "host", arriving, self._halo)
        elif self._halo_is_dense:
            self._add(self._target, "upload", "transfer", arriving, self._halo)
        else:
            on_device = self._staging("halo", True)
            self._add(self._target, "upload", "transfer", arriving, on_device)
            self._add(self._target, "unpack", "compute", on_device, self._halo)

    def _host_to_host(self) -> bool:
        return self._one_rank and self._source_on_host and self._target_on_host

    def _leaving(self) -> MemoryCells:
        """The packed cells in the source's host memory."""
        if self._source_on_host and self._border_is_dense:
            return self._border
        return self._staging("border")

    def _arriving(self) -> MemoryCells:
        """Where the target's rank receives."""
        if self._target_on_host and self._halo_is_dense:
            return self._halo
        return self._staging("halo")

    def _staging(self, end: str, on_device: bool = False) -> MemoryCells:
        key = StagingKey(self._transfer.number, "border" if end == "border" else "halo", on_device)
        return MemoryCells(key, (self._transfer.packed,))

    def _add(
        self,
        place: int,
        verb: str,
        lane: str,
        read: MemoryCells | None,
        written: MemoryCells | None,
    ) -> None:
        self._recorder.add(
            place,
            verb,  # type: ignore[arg-type]
            lane,  # type: ignore[arg-type]
            [read] if read else [],
            [written] if written else [],
            transfer=self._transfer.number,
        )


def record(exchanges: Sequence[Delivery]) -> None:
    """All of some exchanges but the packing on devices: what others wait for comes first."""
    for exchange in exchanges:
        exchange.copy()
    for exchange in exchanges:
        exchange.receive()
    for exchange in exchanges:
        exchange.leave()
    for exchange in exchanges:
        exchange.arrive()


def contiguous(plan: Outline, transfer: Transfer, place: int) -> bool:
    """Whether the cells of a message are one contiguous run of the tile at `place`."""
    message = transfer.message
    boxes = message.border if place == message.source else message.halo
    geometry = plan.geometry(transfer.field, place)
    return len(boxes) == 1 and geometry.strided(boxes[0]).contiguous
