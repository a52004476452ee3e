# SPDX-License-Identifier: MIT
"""A candidate: one way to compute launches of a stage, among which tuning looks for the fastest.

It is a configuration of kgt, or a variant of a kernel of the user's own.
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from controllers import kgt
from controllers.kernel.variant import Variant
from controllers.kgt.kernel import WorkSizes
from controllers.program.program import Program, Stage
from hitmap.strided import Strided


class Candidate(Protocol):
    """What tuning asks of one; `controllers.kgt.Config` explains the answers."""

    @property
    def steps_per_launch(self) -> int: ...

    @property
    def digests(self) -> bool: ...

    def alike(self, extent: tuple[int, ...]) -> Iterator[Candidate]: ...

    def within(self, extent: tuple[int, ...]) -> Candidate: ...

    def suits(self, fields: Iterable[Strided]) -> bool: ...

    def local_bytes(self, program: Program, stage: Stage) -> int: ...

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes: ...

    def parameters(self) -> dict[str, Any]: ...

    def described(self) -> str: ...


@dataclass(frozen=True)
class OwnCandidate:
    """A variant of a user's kernel."""

    variant: Variant

    @property
    def steps_per_launch(self) -> int:
        return self.variant.form.steps_per_launch

    @property
    def digests(self) -> bool:
        return False

    def alike(self, extent: tuple[int, ...]) -> Iterator[OwnCandidate]:
        return iter(())     # each has a text, or a declaration, of its own

    def within(self, extent: tuple[int, ...]) -> OwnCandidate:
        return self

    def suits(self, fields: Iterable[Strided]) -> bool:
        like = self.variant.form.like
        return like is None or like.suits(fields)

    def local_bytes(self, program: Program, stage: Stage) -> int:
        return 0    # it is known once the kernel is built

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        return self.variant.form.planned_sizes(program, stage)

    def parameters(self) -> dict[str, Any]:
        return {"text": digest(self.variant.source.text), **self.variant.form.parameters()}

    def described(self) -> str:
        parts = [f"for {self.variant.device!r}" if self.variant.device else "for any device"]
        return ", ".join(filter(None, [*parts, self.variant.form.described()]))

    @property
    def kept(self) -> KeptCandidate:
        """What stands for it in a file."""
        source = repr((self.variant.source.text, self.variant.form))
        return KeptCandidate(digest(source), self.steps_per_launch)


@dataclass(frozen=True)
class KeptCandidate:
    """A variant that was found fastest, of which its text and form are known by their digest."""

    digest: str
    steps_per_launch: int


def digest(*parts: str) -> str:
    """A short text that differs where these do."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def plain(config: Candidate | KeptCandidate) -> dict[str, object]:
    """A candidate as plain data, for JSON."""
    if isinstance(config, OwnCandidate):
        config = config.kept
    if isinstance(config, KeptCandidate):
        return {"variant": config.digest, "steps_per_launch": config.steps_per_launch}
    return kgt.plain(config)    # type: ignore[arg-type]


def candidate_from(data: Mapping[str, object]) -> Candidate | KeptCandidate:
    """What plain data say; KeyError, TypeError or ValueError where they say nothing."""
    if "variant" in data:
        return KeptCandidate(str(data["variant"]), int(str(data["steps_per_launch"])))
    return kgt.config_from(data)
