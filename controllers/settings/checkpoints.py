# SPDX-License-Identifier: MIT
"""Where and how often the state of a run is kept, and what becomes of what is there."""
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, Union, get_args

from controllers.settings.every import Every
from hitmap.argument import file_name, wrong

Restart = Literal["auto", "require", "no"]
RESTARTS: tuple[str, ...] = get_args(Restart)


USUAL = Every(seconds=600.0)
Checkpoint: TypeAlias = Union[
    "str | os.PathLike[str] | tuple[str | os.PathLike[str], Every] | None"
]


@dataclass(frozen=True)
class Checkpoints:
    """Those of a run, in `folder`.

    restart: "auto" goes on where the newest one was written, if there is one; "require" says that
    there must be one; "no" begins anew.  anyway: also where scalars or records are others now.
    """

    folder: Path
    every: Every = USUAL
    restart: Restart = "auto"
    anyway: bool = False

    @classmethod
    def of(
        cls, checkpoint: Checkpoint, restart: str | None = None, anyway: bool = False
    ) -> Checkpoints | None:
        """From the arguments of `Computation.run`; None where there are to be none.

        ValueError or TypeError for what they cannot be.

        >>> Checkpoints.of(("a.checkpoint", Every(steps=5)), "require").restart
        'require'
        """
        if restart is not None and restart not in RESTARTS:
            raise ValueError(f"restart is one of {', '.join(RESTARTS)}, got {restart!r}")
        if not isinstance(anyway, bool):
            raise wrong("restart_anyway", "True or False", anyway)
        if checkpoint is None:
            if restart is not None or anyway:
                name = "restart" if restart is not None else "restart_anyway"
                raise ValueError(f"{name}= is of checkpoints; give checkpoint= their folder, too")
            return None
        often = USUAL
        if isinstance(checkpoint, Sequence) and not isinstance(checkpoint, str):
            if len(checkpoint) != 2 or not isinstance(checkpoint[1], Every):
                raise wrong(
                    "checkpoint", 'a folder, or ("FOLDER", ct.every(seconds=600))', checkpoint
                )
            checkpoint, often = checkpoint
            if often.time is not None:
                raise ValueError(
                    "checkpoints are written every so many steps= or seconds=, got time="
                )
        file_name(checkpoint, "checkpoint")
        return cls(Path(checkpoint), often, restart or "auto", anyway)  # type: ignore[arg-type]

    def left(self, done: int) -> int | None:
        """Steps to the next one after so many of the run; None where a clock says when.

        >>> Checkpoints(Path("a"), Every(steps=5)).left(8)
        2
        """
        steps = self.every.steps
        return None if steps is None else steps - done % steps

    def is_due(self, done: int, newest: int) -> bool:
        """Whether one is due after so many steps of the run, by the newest of them.

        >>> Checkpoints(Path("a"), Every(steps=5)).is_due(11, newest=2)
        True
        """
        steps = self.every.steps
        return steps is not None and done // steps > (done - newest) // steps

    @property
    def facts(self) -> dict[str, object]:
        """What all ranks must give alike."""
        return {"checkpoint": self.folder, "every": self.every, "restart": self.restart,
                "restart_anyway": self.anyway}  # fmt: skip
