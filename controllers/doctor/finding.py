# SPDX-License-Identifier: MIT
"""A finding: what is so, and, unless that is well, why it matters and what mends it."""
from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "error"]
_WIDTH = 100


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report; `hosts` are those it was found on, if there are several."""

    level: Level
    topic: str
    what: str
    why: str = ""
    remedy: str = ""
    hosts: tuple[str, ...] = ()


def as_text(findings: Sequence[Finding]) -> str:
    """The report for people: a line per finding, and two more where something is to be done.

    >>> print(as_text([Finding("warning", "binding", "1 core", "It is slow.", "bind to none")]))
    WARNING  binding   1 core
             why       It is slow.
             remedy    bind to none
    """
    lines = []
    for finding in findings:
        where = f" [{', '.join(finding.hosts)}]" if finding.hosts else ""
        level = finding.level if finding.level == "ok" else finding.level.upper()
        lines += _column(level, finding.topic, finding.what + where)
        if finding.why:
            lines += _column("", "why", finding.why)
        if finding.remedy:      # in one line, to be copied
            lines.append(f"{'':7}  {'remedy':8}  {finding.remedy}")
    return "\n".join(lines)


def _column(level: str, topic: str, text: str) -> list[str]:
    head = f"{level:7}  {topic:8}  "
    return textwrap.wrap(
        text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
