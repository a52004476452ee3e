# SPDX-License-Identifier: MIT
"""What a program has found by a step: the named results that the host sees."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, Union

import numpy as np

Number: TypeAlias = Union[float, int, bool]


class Results(Mapping[str, Number]):
    """Results by name, as of a step: `now.residual` or `now["residual"]`, `now.step`, `now.time`.

    repeats: how often each repeated step was done in it.
    """

    def __init__(
        self,
        step: int,
        time: float,
        values: Mapping[str, Number | np.generic],
        repeats: Mapping[str, int] | None = None,
    ) -> None:
        self.step, self.time = step, time
        self.repeats = {**(repeats or {})}
        self._values = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in values.items()
        }

    def __getitem__(self, name: str) -> Number:
        if name not in self._values:
            raise KeyError(f"there is no result {name!r}; there are {', '.join(self) or 'none'}")
        return self._values[name]

    def __getattr__(self, name: str) -> Number:
        if name.startswith("_") or name not in self._values:
            known = "" if name.startswith("_") else f"; there are {', '.join(self) or 'none'}"
            raise AttributeError(f"there is no result {name!r}{known}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        """
        >>> Results(20, 0.1, {"residual": np.float32(0.5)})
        Results(step=20, time=0.1, residual=0.5)
        """
        shown = {"step": self.step, "time": self.time, **self._values}
        return f"Results({', '.join(f'{name}={value}' for name, value in shown.items())})"
