# SPDX-License-Identifier: MIT
"""Arrays of which every rank has the whole, and every place that asks for it."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.array.owner import Owner
from controllers.space.whole_tiles import WholeTiles


class WholeArray(np.ndarray[Any, np.dtype[Any]]):
    """An array of a workspace, whole everywhere: `on.array(values, split=None)`.

    It is one of NumPy's that cannot be written, since places keep copies of it; what is computed of
    it is an array like any other.
    owner: of the workspace; None of what was computed.
    """

    owner: Owner | None
    copies: WholeTiles | None   # at each place, once a function has read it

    @classmethod
    def of(cls, owner: Owner, values: npt.NDArray[Any]) -> WholeArray:
        """In the memory of `values`, which nobody else may write."""
        made = values.view(cls)
        made.owner = owner
        made.flags.writeable = False
        return made

    def __array_finalize__(self, other: object) -> None:
        self.owner, self.copies = None, None

    def apply_each(
        self, function: Any, arrays: Mapping[str, Any], numbers: Mapping[str, float]
    ) -> Any:
        """What a function of items (`controllers.each`) makes of arrays, this being one of them."""
        if self.owner is not None:
            return self.owner.apply_each(function, arrays, numbers)
        plain = {n: np.asarray(one) if one is self else one for n, one in arrays.items()}
        return function(**plain, **numbers)
