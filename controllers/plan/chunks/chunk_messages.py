# SPDX-License-Identifier: MIT
"""What chunks get of those of other ranks and other runs: rows of images, from host to host.

They leave when a pass has brought the chunks that own them back to the host, from the images
themselves where they are runs of memory, and wait where they arrive until the next pass uploads
them.  Within a rank they are copied.
"""
# docs/decisions/0066-images-in-files.md, 0103-rows-leave-from-their-images.md,
# 0105-rows-between-devices-lie-aside.md
from __future__ import annotations

from typing import Literal

from controllers.plan.bundle import Bundle
from controllers.plan.chunks.chunks import ChunkOutline
from controllers.plan.operation import MemoryCells, SlotKey, StagingKey, Transfer
from controllers.plan.recorder import Recorder
from hitmap.message import Message


def record_messages(
    plan: ChunkOutline, recorder: Recorder, phase: int, *, opens: bool = False
) -> None:
    """Exchange what the pass `phase` begins with; as it `opens`, of fields only read, too."""
    bundles = [bundle for bundle in plan.bundles if opens or bundle.after >= 0]
    for bundle in bundles:
        if bundle.target in plan.places and not plan.stays(bundle):
            arriving = [_packed(bundle, "halo")]
            recorder.add(
                bundle.target, "receive", "network", [], arriving,
                bundle=bundle.number, transfers=bundle.transfers,
            )  # fmt: skip
    for bundle in bundles:
        if bundle.source in plan.places:
            _send(plan, recorder, bundle, phase)


def _send(plan: ChunkOutline, recorder: Recorder, bundle: Bundle, phase: int) -> None:
    """What a place has in its images."""
    source = bundle.source
    leaving = rows = [
        MemoryCells(plan.image(_field(plan, each), phase, source), each.message.border)
        for each in bundle.transfers
    ]
    number, transfers = bundle.number, bundle.transfers
    if plan.stays(bundle):
        kept = [_packed(bundle, "halo")]
        recorder.add(source, "pack", "host", rows, kept, bundle=number, transfers=transfers)
        return
    if plan.packs(bundle):
        leaving = [_packed(bundle, "border")]
        recorder.add(source, "pack", "host", rows, leaving, bundle=number, transfers=transfers)
    recorder.add(source, "send", "network", leaving, [], bundle=number, transfers=transfers)


def record_arrival(
    plan: ChunkOutline, recorder: Recorder, field: str, message: Message, room: SlotKey, now: int
) -> None:
    """To the slot or parcel of a chunk, from where a message has brought it; in the turn of `now`.
    """
    bundle, transfer = next(
        (bundle, transfer) for bundle in plan.bundles for transfer in bundle.transfers
        if transfer.message == message and _field(plan, transfer) == field
    )  # fmt: skip
    packed = MemoryCells(StagingKey(bundle.number, "halo"), (bundle.parts[transfer],))
    recorder.add(
        now, "upload", "transfer", [packed], [MemoryCells(room, message.halo)],
        bundle=bundle.number, transfers=(transfer,),
    )  # fmt: skip


def _field(plan: ChunkOutline, transfer: Transfer) -> str:
    """What field a pass begins with the cells that a transfer brings."""
    return plan.begun_as(transfer.version).field


def _packed(bundle: Bundle, end: Literal["border", "halo"]) -> MemoryCells:
    return MemoryCells(StagingKey(bundle.number, end), tuple(bundle.parts.values()))
