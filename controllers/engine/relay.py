# SPDX-License-Identifier: MIT
"""Engines that relieve each other on the same tiles, each with a halo width of its own.

Halos are allocated for the widest.  Whoever takes over exchanges halos as wide as it needs them,
once, and goes on with the step at which the other one has stopped.
"""
# docs/decisions/0055-halos-of-several-launches.md
from __future__ import annotations

from collections.abc import Callable

from controllers.engine.driver import Engine


class Relay:
    """The engines of a computation by their halo widths; one of them runs at a time."""

    def __init__(self, widest: Engine, make: Callable[[Engine, int], Engine]) -> None:
        """`make` makes, collectively, an engine on the tiles of another one, with a halo width."""
        self.widest = widest.plan.halo_width
        self._make, self._engines, self._like = make, {self.widest: widest}, widest

    def engine(self, width: int) -> Engine:
        """The engine of a width; collective where there was none.

        ValueError where the halos are narrower, or launches do not make up so many steps.
        """
        if width > self.widest:
            raise ValueError(
                f"halos have room for {self.widest} steps between two exchanges, got {width}; make "
                f"the computation with halo_width={width}"
            )
        if width not in self._engines:
            self._engines[width] = self._make(self._like, width)
        return self._engines[width]

    def replaced(self, engine: Engine) -> None:
        """This one runs the steps of its width from now on, in another way."""
        self._engines[engine.plan.halo_width], self._like = engine, engine

    @property
    def widths(self) -> list[int]:
        """Those that have an engine, rising."""
        return sorted(self._engines)

    def leave(self, running: Engine) -> None:
        """No other engine holds the tiles any more; nor is there going to be any."""
        self._close([one for one in self._engines.values() if one is not running], running)
        self._engines, self._like = {running.plan.halo_width: running}, running
        self._make = lambda like, width: running

    def close(self, running: Engine) -> None:
        """Give back what belongs to MPI, that of the engine that runs now, too."""
        self._close([one for one in self._engines.values() if one is not running], running)
        running.close()

    def _close(self, others: list[Engine], running: Engine) -> None:
        if running in self._engines.values():       # else whoever has replaced them has done it
            for engine in others:
                engine.close()
