# SPDX-License-Identifier: MIT
"""Fields in a file or a folder, at one or several steps, as whoever looks at them sees them."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from controllers.fields.selection import Selection
from controllers.settings.initial import Place


@dataclass(frozen=True)
class Stored:
    """A field: what each cell holds, and where the cells lie."""

    dtype: np.dtype[Any]
    place: Place


@dataclass(frozen=True)
class Instant:
    """A step of which fields are there, and its time; None where nobody knows them."""

    step: int | None = None
    time: float | None = None


class Content(Protocol):
    """What was opened.

    kind: what it is, in words.  facts: what it says of where it comes from.  fields: by name.
    instants: in order.  notes: what else there is to say, in lines.
    """

    kind: str
    facts: dict[str, str]
    fields: dict[str, Stored]
    instants: list[Instant]
    notes: list[str]

    def read(self, number: int, field: str, selection: Selection) -> npt.NDArray[Any]:
        """The cells of a selection at the instant of this number, [cells along each axis].

        OSError or ValueError where they cannot be read, or are not as they were written.
        """
