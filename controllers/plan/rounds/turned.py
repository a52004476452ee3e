# SPDX-License-Identifier: MIT
"""Where a plan goes on with fields that another one, on the same tiles, has left somewhere."""
from __future__ import annotations

from controllers.plan.operation import TileKey
from controllers.plan.plan import Plan


def taken_over(plan: Plan, other: Plan, n_done: int) -> tuple[int, list[tuple[TileKey, TileKey]]]:
    """The step of its period at which `plan` goes on after `n_done` steps of `other`.

    And the tiles of its places whose cells have to be copied to others: where places have divided
    rounds by themselves their buffers may stand as no step of `plan` finds them.  As few cells as
    there can be; of several steps that are as good an early one of a round.  The same on all ranks.
    """
    fields = [field.name for field in plan.program.fields]
    owned = [place for place, box in enumerate(plan.layout.owned) if not box.empty]

    def apart(step: int) -> list[tuple[TileKey, TileKey]]:
        pairs = [
            (other.newest(field, n_done, place), plan.newest(field, step, place))
            for field in fields for place in owned
        ]  # fmt: skip
        return [(source, target) for source, target in pairs if source != target]

    def cost(step: int) -> tuple[int, int]:
        n_cells = sum(plan.owned(one.field, one.place).n_cells for one, _ in apart(step))
        return n_cells, step % plan.n_launches

    step = min(range(plan.n_phases), key=cost)
    mine = {*plan.places}
    return step, [(source, target) for source, target in apart(step) if source.place in mine]
