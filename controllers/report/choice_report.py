# SPDX-License-Identifier: MIT
"""Which devices a run has chosen, and what each of the others would have given."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from controllers.report.duration import duration

MOST_LINES = 8


@dataclass(frozen=True)
class ChoiceLine:
    """Some devices by their names, and the seconds of a step with them.

    model_s: as the model has it.  seen_s: as steps have shown; None where none were run.
    """

    devices: tuple[str, ...]
    model_s: float
    seen_s: float | None
    why: str

    def __str__(self) -> str:
        """
        >>> print(ChoiceLine(("a GPU", "a CPU"), 0.002, 0.0025, "slower"))
        a GPU and a CPU: 2.5 ms a step (2 ms by the model), slower
        >>> print(ChoiceLine(("a CPU",), 0.1, None, "cannot be faster"))
        a CPU: 100 ms a step by the model, cannot be faster
        """
        model = f"{duration(self.model_s)}"
        if self.seen_s is None:
            seconds = f"{model} a step by the model"
        else:
            seconds = f"{duration(self.seen_s)} a step ({model} by the model)"
        return f"{together(self.devices)}: {seconds}, {self.why}"


@dataclass(frozen=True)
class ChoiceReport:
    """What came of choosing among devices.

    chosen: those that compute now.  lines: all sets that there were, the best by the model first.
    source: from where the model has the rates of devices.  trials, spent_s: how many sets were
    tried, and what that has taken beyond the steps of the best one, about.
    """

    chosen: tuple[str, ...]
    lines: tuple[ChoiceLine, ...]
    source: str
    trials: int
    spent_s: float

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """
        >>> line = ChoiceLine(("a GPU",), 0.002, None, "chosen")
        >>> print(ChoiceReport(("a GPU",), (line,), "by the class of the devices", 0, 0.0))
        devices: a GPU, chosen without a trial; the rates are by the class of the devices
          a GPU: 2 ms a step by the model, chosen
        """
        trials = f"{self.trials} trial{'s' * (self.trials != 1)} for {duration(self.spent_s)}"
        how = f"after {trials}" if self.trials else "without a trial"
        head = f"devices: {together(self.chosen)}, chosen {how}; the rates are {self.source}"
        more = len(self.lines) - MOST_LINES
        rest = [f"  and {more} sets more"] if more > 0 else []
        return "\n".join([head, *(f"  {one}" for one in self.lines[:MOST_LINES]), *rest])


def together(names: Sequence[str]) -> str:
    """
    >>> together(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
