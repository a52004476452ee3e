# SPDX-License-Identifier: MIT
"""What was measured, as plain values: a table for people, rows for files."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields

from controllers.report.table import format_table


@dataclass(frozen=True)
class Figure:
    """One contestant in one case.

    cell_steps_per_s: cells that are computed times steps, per second; the median of the rounds.
    of_copy: bytes of a single sweep that are read and written once, per second, as a fraction of
        the copy rate; over 1 where several steps are computed at once.  ratio: speed relative to
        `Case.base`.  Both are medians over the rounds.
    launches_per_s: what counts for small fields.  error: the largest difference from the strict
        result after the check, 0.0 for its bits.  n_rounds: it took part in.
    """

    contestant: str
    cell_steps_per_s: float
    of_copy: float
    ratio: float
    steps_per_s: float
    steps_per_launch: int
    launches_per_s: float
    error: float
    n_rounds: int
    configuration: str


@dataclass(frozen=True)
class Case:
    """One problem on one device.

    copy_bytes_per_s: the device's own copy rate, read and written, the best of the ways to copy
    (`copied`).  base: what speeds are relative to.  notes: who was left out, and why.  wrong: who
    had a wrong result.  implausible: what would be the base, had it not been slower than NumPy.
    """

    device: str
    stencil: str
    dtype: str
    extent: tuple[int, ...]
    flops_per_cell: int
    bytes_per_cell: int
    base: str
    copied: str
    copy_bytes_per_s: float
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    implausible: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The problem, in a few words."""
        return f"{self.stencil} {self.dtype} {' x '.join(map(str, self.extent))}"

    def table(self) -> str:
        """For people."""
        head = ("", "Gcell-steps/s", "of copy", "speed", "steps/s", "at once", "launches/s",
                "result", "rounds", "configuration")  # fmt: skip
        rows = [_row(figure) for figure in self.figures]
        title = (
            f"{self.title} on {self.device}: copy {self.copy_bytes_per_s / 1e9:.3g} GB/s "
            f"({self.copied}); speed relative to {self.base}"
        )
        table = format_table(head, rows, left=("", "configuration", "result"))
        return "\n".join([title, table, *self.notes])

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return asdict(self)


COLUMNS = ("device", "stencil", "dtype", "extent", "copy_bytes_per_s", "base",
           *(field.name for field in fields(Figure)))  # fmt: skip


def rows(cases: Iterable[Case]) -> list[dict[str, object]]:
    """A row per figure, its columns COLUMNS; six digits are more than a measurement has."""
    found: list[dict[str, object]] = [
        {
            "device": case.device,
            "stencil": case.stencil,
            "dtype": case.dtype,
            "extent": "x".join(map(str, case.extent)),
            "copy_bytes_per_s": case.copy_bytes_per_s,
            "base": case.base,
            **asdict(figure),
        }
        for case in cases
        for figure in case.figures
    ]
    return [{name: _rounded(value) for name, value in row.items()} for row in found]


def _rounded(value: object) -> object:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def as_json(cases: Sequence[Case], version: str, date: str) -> dict[str, object]:
    """All cases, with what they were measured with."""
    return {"version": version, "date": date, "cases": [case.as_dict() for case in cases]}


def _row(figure: Figure) -> tuple[str, ...]:
    return (
        figure.contestant,
        f"{figure.cell_steps_per_s / 1e9:.4g}",
        f"{figure.of_copy:.2f}",
        f"{figure.ratio:.2f}",
        f"{figure.steps_per_s:.4g}",
        str(figure.steps_per_launch),
        f"{figure.launches_per_s:.4g}",
        f"within {figure.error:.0e}" if figure.error else "same bits",
        str(figure.n_rounds),
        figure.configuration,
    )
