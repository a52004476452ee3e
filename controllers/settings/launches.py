# SPDX-License-Identifier: MIT
"""How many time steps a launch may have, and a round between two exchanges of halos."""
from __future__ import annotations

from typing import TypeAlias, Union

from controllers.program.identifier import short
from hitmap.argument import whole

HaloWidth: TypeAlias = Union[int, str, None]
WIDTH_SEARCHES = {
    "auto": "dichotomic", "auto:dichotomic": "dichotomic", "auto:hill_climb": "hill_climb",
    "auto:exhaustive": "exhaustive",
}  # fmt: skip
MOST_WIDTH = 1024   # steps between two exchanges; a plan lists the operations of all of them
MOST_STEPS = 256    # of a launch; no kernel has room for what so many reach


def check_steps(wanted: int) -> None:
    """ValueError where no launch computes so many steps, whatever the program."""
    if wanted < 1:
        raise ValueError(f"a launch computes at least 1 step, got {wanted}")
    if wanted > MOST_STEPS:
        raise ValueError(
            f"a launch computes at most {MOST_STEPS} steps, got {short(wanted)}; use fewer, or "
            f"leave it out"
        )


def check_width(width: HaloWidth, per_launch: int | None = None) -> None:
    """ValueError where halos are never so many steps wide, or no such launches make these."""
    if width is None:
        return
    if isinstance(width, str):
        if width not in WIDTH_SEARCHES:
            words = ", ".join(WIDTH_SEARCHES)
            raise ValueError(
                f"halo_width is a number of steps or one of {words}, got {short(width)}; use one "
                f"of these"
            )
        return
    if not 1 <= whole(width, "halo_width") <= MOST_WIDTH:
        raise ValueError(
            f"halos are 1 to {MOST_WIDTH} steps wide, got halo_width={short(width)}; use one of "
            f"these, or leave it out"
        )
    if per_launch is not None and width % per_launch:
        raise ValueError(
            f"launches of {per_launch} steps do not make up the {width} steps between two "
            f"exchanges; use a halo_width that is a multiple of steps_per_launch"
        )
