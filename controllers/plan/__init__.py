# SPDX-License-Identifier: MIT
"""Plans: recorded once, then executed, printed and tested as one and the same object."""
from controllers.plan.bundle import Bundle
from controllers.plan.chunks.chunk_parts import PartedChunks
from controllers.plan.chunks.chunk_plan import ChunkPlan
from controllers.plan.chunks.skewed_plan import SkewedPlan
from controllers.plan.ends import ExchangeEnds
from controllers.plan.memory import PlaceMemory, PlanMemory
from controllers.plan.operation import (
    Edge,
    HostTask,
    Location,
    MemoryCells,
    Operation,
    RoomKey,
    SlotKey,
    StagingKey,
    TileKey,
    Transfer,
)
from controllers.plan.overlap import Overlap
from controllers.plan.plan import Plan
from controllers.plan.rounds.round_plan import PacedPlan, RepeatedRounds, RoundPlan
from controllers.plan.way import ExchangeWay

__all__ = [
    "Bundle",
    "ChunkPlan",
    "MemoryCells",
    "Edge",
    "ExchangeEnds",
    "ExchangeWay",
    "HostTask",
    "Location",
    "Operation",
    "Overlap",
    "PacedPlan",
    "PartedChunks",
    "PlaceMemory",
    "Plan",
    "PlanMemory",
    "RepeatedRounds",
    "RoomKey",
    "RoundPlan",
    "SkewedPlan",
    "SlotKey",
    "StagingKey",
    "TileKey",
    "Transfer",
]
