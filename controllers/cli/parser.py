# SPDX-License-Identifier: MIT
"""A parser of options that raises what is wrong, for all ranks to end together.

An option that does not exist is named first, with the one that was meant: `argparse` would
first complain of those that are missing.
"""
from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from controllers.cli.outcome import USAGE, Failure
from controllers.program.identifier import short

_NEGATIVE = re.compile(r"-[\d.]")


class CommandParser(argparse.ArgumentParser):
    """Every error is a `Failure`."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        raise Failure(USAGE, f"{message}; see {self.prog} --help")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As `argparse` does, but no unknown word is left over by the parser of a command."""
        words = list(sys.argv[1:] if args is None else args)
        if self._subparsers is not None:
            return super().parse_known_args(words, namespace)
        known = [word for word in self._option_string_actions if word.startswith("--")]
        for word in words:
            option = word.partition("=")[0]
            if option.startswith("--") and option not in known:
                near = get_close_matches(option, known, 1)
                hint = f", did you mean {near[0]}?" if near else ""
                self.error(f"unknown option {short(option)}{hint}")
        found, others = super().parse_known_args(self._joined(words), namespace)
        if others:
            self.error(f"unknown words: {short(' '.join(others))}")
        return found, others

    def _joined(self, words: list[str]) -> list[str]:
        """-1,2 after an option is its value, though it looks like an option; one word with it."""
        joined: list[str] = []
        for word in words:
            if joined and joined[-1] in self._option_string_actions and _NEGATIVE.match(word):
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        return joined
