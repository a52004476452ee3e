# SPDX-License-Identifier: MIT
"""Recorded tables: the time of every configuration of a space, measured once and for all.

With one, searches can be compared without a device.  JSON: `title` says what was measured where,
`default_seconds` how long a step took with the first configuration, and `rows` holds each of them
with its time relative to the first, null if it cannot be used.
"""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from controllers import kgt
from controllers.tuning.trials import Outcome


@dataclass(frozen=True)
class Table:
    """`ratios`: the time relative to the first one, the default; None if it cannot be used."""

    title: str
    default_seconds: float
    ratios: Mapping[kgt.Config, float | None]

    @classmethod
    def read(cls, path: Path) -> Table:
        """The table that `write` has written."""
        found = json.loads(path.read_text("utf-8"))
        ratios = {kgt.config_from(row["configuration"]): row["ratio"]
                  for row in found["rows"]}  # fmt: skip
        return cls(found["title"], found["default_seconds"], ratios)

    def write(self, path: Path) -> None:
        """One row per line, for people and for differences."""
        rows = ",\n".join(
            json.dumps({"ratio": ratio and round(ratio, 4), "configuration": kgt.plain(config)})
            for config, ratio in self.ratios.items()
        )
        title, seconds = json.dumps(self.title), f"{self.default_seconds:.6g}"
        path.write_text(
            f'{{"title": {title},\n"default_seconds": {seconds},\n"rows": [\n{rows}\n]}}\n', "utf-8"
        )

    @property
    def optimum(self) -> float:
        """The shortest time, relative to the default."""
        return min(ratio for ratio in self.ratios.values() if ratio is not None)

    def measure(self, batch: Sequence[kgt.Config]) -> dict[kgt.Config, Outcome]:
        """What measuring them has given."""
        ratios = {config: self.ratios[config] for config in batch}
        return {
            config: "cannot be used" if ratio is None else ratio * self.default_seconds
            for config, ratio in ratios.items()
        }
