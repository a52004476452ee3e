# SPDX-License-Identifier: MIT
"""How many time steps there are in a launch of a plan, in one of its steps, between exchanges."""
from __future__ import annotations


class Cadence:
    """What follows from the steps of a launch, and from the launches between two exchanges."""

    steps_per_launch: int
    n_launches = 1      # between two exchanges
    computes_alike = False  # in each step of the period the same operations, on the same tiles
    steps_are_rounds = False    # of launches that places divide them into, each in its own way
    lengths: tuple[int, ...] | None = None  # steps of a launch that suit each place, if unlike

    @property
    def longest(self) -> tuple[int, ...]:
        """The time steps of the longest launch at each place, where places are unlike; else none.
        """
        return ()

    @property
    def halo_width(self) -> int:
        """Time steps between two exchanges."""
        return self.n_launches * self.steps_per_launch

    @property
    def span(self) -> int:
        """Time steps of one step of the plan."""
        return self.steps_per_launch

    @property
    def n_turns(self) -> int:
        """How often scalars may change within a step of the plan, its beginning included."""
        return 1

    def launch_of(self, phase: int, place: int) -> int:
        """Which launch of its round at a place a step of the period is."""
        return 0

    def first_of(self, phase: int, place: int) -> int:
        """The step of the period, as tiles turn at a place, with which a step begins there."""
        return phase

    def last_of(self, phase: int, place: int) -> int:
        """The step of the period, as tiles turn at a place, in which a step hands over there."""
        return phase

    def launches_text(self, place: int) -> str:
        """The launches of a round at a place, for people, where places are unlike; else nothing."""
        return ""

    @property
    def step_name(self) -> str:
        """What a step of the plan is, for people."""
        return "step" if self.steps_per_launch == 1 else f"launch of {self.steps_per_launch} steps"

    @property
    def round_name(self) -> str:
        """What comes between two exchanges, for people."""
        return self.step_name if self.n_launches == 1 else f"round of {self.halo_width} steps"
