# SPDX-License-Identifier: MIT
"""Bundles: the transfers that go to one neighbour in one message.

What one sweep is the first to read goes together, fields of unlike dtypes too: their cells are
packed one field after another.  What is copied from one place to another without the host is no
message, and is never bundled.
"""
# docs/decisions/0034-one-message-per-neighbour.md
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from controllers.plan.operation import Transfer
from controllers.plan.overlap import LATE_NBYTES
from controllers.program.program import Program
from controllers.program.sweep import Version
from hitmap.message import Message
from hitmap.shape import Shape


@dataclass(frozen=True)
class Bundle:
    """Transfers that leave together, in the order in which their cells are packed.

    number: over all bundles of a plan.  after: the sweep that makes the last of the versions, -1
    where no sweep makes any.  dtype: of the staging memories, that of the cells if they have one in
    common, else bytes.
    """

    number: int
    transfers: tuple[Transfer, ...]
    after: int
    dtype: str

    @property
    def source(self) -> int:
        """The place that they leave."""
        return self.transfers[0].message.source

    @property
    def target(self) -> int:
        """The place where they arrive."""
        return self.transfers[0].message.target

    @property
    def n_cells(self) -> int:
        """Of all fields together."""
        return sum(transfer.message.n_cells for transfer in self.transfers)

    @property
    def nbytes(self) -> int:
        """Of all cells; there is nothing between them."""
        return sum(transfer.nbytes for transfer in self.transfers)

    @property
    def n_elements(self) -> int:
        """Of its staging memories."""
        return self.nbytes // np.dtype(self.dtype).itemsize

    @cached_property
    def parts(self) -> dict[Transfer, Shape]:
        """The elements of the staging memories that hold each transfer."""
        itemsize, first, found = np.dtype(self.dtype).itemsize, 0, {}
        for transfer in self.transfers:
            last = first + transfer.nbytes // itemsize
            found[transfer] = Shape((first,), (last,))
            first = last
        return found

    def only(self, versions: Collection[Version]) -> Bundle | None:
        """The transfers of these versions, packed into the same memory; None without any."""
        chosen = tuple(t for t in self.transfers if t.version in versions)
        return Bundle(self.number, chosen, self.after, self.dtype) if chosen else None


def bundles(
    transfers: Sequence[Transfer],
    sent_after: Callable[[Version], int],
    program: Program,
    is_alone: Callable[[Message], bool],
    first_reader: Callable[[Version], int | None],
) -> tuple[Bundle, ...]:
    """All transfers, each in one bundle; `is_alone` says which go by themselves, as copies do.

    sent_after: the sweep after which a version can be sent, -1 where that is no sweep's.
    What a place copies to its own halo of all that a sweep makes, where an axis is periodic, is one
    bundle.
    """
    groups: dict[object, list[Transfer]] = {}
    for transfer in transfers:
        message, version = transfer.message, transfer.version
        key: object = transfer.number
        if message.source == message.target:
            key = message.source, sent_after(version)
        elif not is_alone(message):
            key = message.source, message.target, message.shift, first_reader(version)
        groups.setdefault(key, []).append(transfer)
    together = (part for group in groups.values() for part in _leaving(group, sent_after))
    return tuple(_bundle(n, part, sent_after, program) for n, part in enumerate(together))


def _leaving(
    group: Sequence[Transfer], sent_after: Callable[[Version], int]
) -> Iterator[Sequence[Transfer]]:
    """What leaves together of transfers with one first reader."""

    def made(transfer: Transfer) -> int:
        return sent_after(transfer.version)

    last = max(map(made, group))
    if sum(transfer.nbytes for transfer in group if made(transfer) < last) <= LATE_NBYTES:
        yield group
        return
    for _, part in groupby(sorted(group, key=made), key=made):
        yield [*part]


def _bundle(
    number: int,
    transfers: Sequence[Transfer],
    sent_after: Callable[[Version], int],
    program: Program,
) -> Bundle:
    """Larger cells come first, so that all of them lie at multiples of their size."""
    dtypes = {program.field(transfer.field).dtype for transfer in transfers}
    return Bundle(
        number,
        tuple(sorted(transfers, key=lambda transfer: -transfer.itemsize)),
        max(sent_after(transfer.version) for transfer in transfers),
        dtypes.pop() if len(dtypes) == 1 else "uint8",
    )
