# SPDX-License-Identifier: MIT
"""Plans tied to tiles, kernels and messages: the engines of a computation, ready to step."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from controllers import check
from controllers.calls.watchdog import Watched
from controllers.engine import ChunkEngine, Engine, PacedEngine, RepeatingEngine
from controllers.engine.relay import Relay
from controllers.kernel.crash import labelled
from controllers.memory.tile import Tile
from controllers.placement.halo_width import replanned, replanned_pass
from controllers.placement.placement import Placement, failing_together
from controllers.plan import ChunkPlan, Plan, TileKey
from controllers.process.once import done_for_memory
from controllers.settings.execution import Execution
from controllers.tuning.settling import settle
from hitmap.comm import Communicator


def relay_of(
    plan: Plan, widths: Sequence[int], placement: Placement, execution: Execution,
    messages: Communicator, watched: Watched, tiles: Mapping[TileKey, Tile] | None = None,
) -> Relay:  # fmt: skip
    """The engines of some halo widths on the tiles of one, that of `plan`, which is the widest.

    tiles: those that hold fields already.  Collective.
    """
    widest = bind(plan, placement, execution, messages, watched, tiles)

    def of_width(like: Engine, width: int) -> Engine:
        narrow = replanned(like.plan, width, tiles_of=plan)
        return bind(narrow, placement, execution, messages, watched, like.tiles)

    relay = Relay(widest, of_width)
    for width in sorted(widths, reverse=True):
        engine = relay.engine(width)
        if tiles is None:
            warm(engine, placement, execution)
    watched.engine = relay.engine(widths[0])
    return relay


def bind(
    plan: Plan, placement: Placement, execution: Execution, messages: Communicator,
    watched: Watched, tiles: Mapping[TileKey, Tile] | None = None,
) -> Engine:  # fmt: skip
    """The plan tied to tiles, kernels and messages, and watched by the watchdog."""
    kind: type[Engine] = RepeatingEngine if plan.parts else Engine
    if plan.steps_are_rounds:
        kind = PacedEngine
    if execution.checked != "off":
        kind = check.CheckedRepeatingEngine if plan.parts else check.CheckedEngine
    with failing_together(messages):    # one driver may fail to compile
        if isinstance(plan, ChunkPlan):
            of_chunks = RepeatingEngine if plan.parts else ChunkEngine
            engine: Engine = of_chunks(
                plan, placement.executors, messages, tiles, shorter=replanned_pass
            )
        else:
            engine = kind(plan, placement.executors, messages, tiles)
    watched.engine = engine
    if execution.limit_s is not None:
        engine.watch()
    return engine


def warm(engine: Engine, placement: Placement, execution: Execution) -> None:
    """Every kernel launched and all memory touched, so that steps cost what they always will."""
    if execution.checked == "off":    # a checked engine wants cells that have been set
        with done_for_memory():
            labelled(placement.first_launches, engine.warm)()
        if not engine.plan.parts and not isinstance(engine, ChunkEngine):
            settle(engine)
