# SPDX-License-Identifier: MIT
"""How the cells of a bundle travel: the operations from border to halo.

    memory of the source      path                                   memory of the target
    the same controller       copy                                   the same controller
    the host's                [pack]  [send, receive]  [unpack]      the host's
    a device's                [pack] download  ...  upload [unpack]  a device's

Packing is left out where the bundle is one transfer whose cells are contiguous in their tile, or
where a device copies rectangles (`ExchangeWay`), a message where both places belong to one rank.
Between two places in host memory one copy does it all: a command of the target's device, where this
can wait for what the source's does, else the host's work.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from controllers.plan.bundle import Bundle
from controllers.plan.operation import (
    HostTask,
    Lane,
    MemoryCells,
    StagingKey,
    Transfer,
    Verb,
)
from controllers.plan.outline import Outline


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
        bundle: int | None = None,
        transfers: tuple[Transfer, ...] = (),
        task: HostTask | None = None,
    ) -> None: ...


class Delivery:
    """Records the operations of one bundle, in the parts that `Plan` puts in order.

    It fills the halos of the versions of its transfers in a step of the period, or, as a step
    `opens`, of those that it begins with.
    """

    def __init__(
        self,
        plan: Outline,
        recorder: Adds,
        bundle: Bundle,
        phase: int,
        sweep: int | None = None,
        *,
        opens: bool = False,
    ) -> None:
        """`sweep` has just been launched: what it makes is packed, and after the last one all goes.

        Without a sweep all is packed and goes.
        """
        self._recorder = recorder
        self._bundle = bundle
        self._made = [
            transfer for transfer in bundle.transfers
            if sweep in (None, plan.sent_after(transfer.version))
        ]  # fmt: skip
        self._goes = sweep in (None, bundle.after)
        self._source, self._target = bundle.source, bundle.target
        source, target = plan.locations[bundle.source], plan.locations[bundle.target]
        self._one_controller = source.same_controller(target)
        self._one_rank = source.rank == target.rank
        self._one_context = source.same_context(target)
        self._host_to_host = self._one_rank and source.shares_host and target.shares_host
        self._source_here = plan.only_rank in (None, source.rank)
        self._target_here = plan.only_rank in (None, target.rank)
        self._source_on_host = source.shares_host
        self._target_on_host = target.shares_host
        self._borders: dict[Transfer, MemoryCells] = {}
        self._halos: dict[Transfer, MemoryCells] = {}
        for transfer in bundle.transfers:
            version, message = transfer.version, transfer.message
            if opens:
                version = plan.begun_as(version)
            ends = bundle.source, bundle.target
            border, halo = (plan.handed(version, phase, place) for place in ends)
            self._borders[transfer] = MemoryCells(border, message.border)
            self._halos[transfer] = MemoryCells(halo, message.halo)
        rectangles = plan.way.rectangles    # a copy takes cells as they lie on a device
        by_boxes = rectangles and not source.shares_host, rectangles and not target.shares_host
        self._border_is_dense = by_boxes[0] or contiguous(plan, bundle, bundle.source)
        self._halo_is_dense = by_boxes[1] or contiguous(plan, bundle, bundle.target)

    def pack(self) -> None:
        """Pack on the device; this must not queue behind the kernel of the inner part."""
        if not (self._one_controller or self._source_on_host or self._border_is_dense):
            if self._source_here:
                on_device = self._staging("border", self._made, True)
                self._add(self._source, "pack", "compute", self._border(), on_device, self._made)

    def copy(self) -> None:
        """Between places of one controller, or of one place with itself: no host takes part."""
        if self._source_here and self._one_controller and self._goes:
            self._add(self._source, "copy", "compute", self._border(), self._halo())

    def receive(self) -> None:
        """The message of another rank: straight into the tile where that is possible."""
        if self._target_here and not self._one_rank and self._goes:
            self._add(self._target, "receive", "network", [], self._arriving())

    def leave(self) -> None:
        """From the border to host memory, and to the other rank."""
        if not self._source_here or self._one_controller or self._host_to_host:
            return
        if self._source_on_host and not self._border_is_dense:
            packed = self._staging("border", self._made)
            self._add(self._source, "pack", "host", self._border(), packed, self._made)
        if not self._goes:
            return
        if not self._source_on_host:
            on_device = self._staging("border", on_device=True)
            packed = [*self._borders.values()] if self._border_is_dense else on_device
            self._add(self._source, "download", "transfer", packed, self._staging("border"))
        if not self._one_rank:
            self._add(self._source, "send", "network", self._leaving(), [])

    def arrive(self) -> None:
        """From host memory into the halo."""
        if not self._target_here or self._one_controller or not self._goes:
            return
        if self._host_to_host:
            lane: Lane = "compute" if self._one_context else "host"
            self._add(self._target, "copy", lane, self._border(), self._halo())
            return
        arriving = self._leaving() if self._one_rank else self._arriving()
        if self._target_on_host:
            if arriving != self._halo():
                self._add(self._target, "unpack", "host", arriving, self._halo())
        elif self._halo_is_dense:
            self._add(self._target, "upload", "transfer", arriving, self._halo())
        else:
            on_device = self._staging("halo", on_device=True)
            self._add(self._target, "upload", "transfer", arriving, on_device)
            self._add(self._target, "unpack", "compute", on_device, self._halo())

    def _border(self) -> list[MemoryCells]:
        """The cells in the tiles of the source, of what has just been made."""
        return [self._borders[transfer] for transfer in self._made]

    def _halo(self) -> list[MemoryCells]:
        """All cells in the tiles of the target."""
        return [*self._halos.values()]

    def _leaving(self) -> list[MemoryCells]:
        """The packed cells in the source's host memory."""
        if self._source_on_host and self._border_is_dense:
            return self._border()
        return self._staging("border")

    def _arriving(self) -> list[MemoryCells]:
        """Where the target's rank receives."""
        if self._target_on_host and self._halo_is_dense:
            return self._halo()
        return self._staging("halo")

    def _staging(
        self,
        end: Literal["border", "halo"],
        transfers: Sequence[Transfer] | None = None,
        on_device: bool = False,
    ) -> list[MemoryCells]:
        """The packed cells of all transfers, or of these."""
        parts = self._bundle.parts
        chosen = self._bundle.transfers if transfers is None else transfers
        key = StagingKey(self._bundle.number, end, on_device)
        return [MemoryCells(key, tuple(parts[transfer] for transfer in chosen))]

    def _add(
        self,
        place: int,
        verb: Verb,
        lane: Lane,
        read: Sequence[MemoryCells],
        written: Sequence[MemoryCells],
        transfers: Sequence[Transfer] | None = None,
    ) -> None:
        self._recorder.add(
            place,
            verb,
            lane,
            read,
            written,
            bundle=self._bundle.number,
            transfers=self._bundle.transfers if transfers is None else tuple(transfers),
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


def contiguous(plan: Outline, bundle: Bundle, place: int) -> bool:
    """Whether the cells of a bundle are one contiguous run of one tile at `place`."""
    if len(bundle.transfers) > 1:
        return False
    (transfer,) = bundle.transfers
    message = transfer.message
    boxes = message.border if place == message.source else message.halo
    geometry = plan.geometry(transfer.field, place)
    return len(boxes) == 1 and geometry.strided(boxes[0]).contiguous
