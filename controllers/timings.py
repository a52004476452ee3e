# SPDX-License-Identifier: MIT
"""What steps cost, counted while they run."""
from __future__ import annotations

from controllers.engine import Engine
from controllers.report import PlaceReport


class Timings:
    """Seconds and steps since the start; kernels and gaps of each place of this rank.

    Figures of places begin anew when the field is divided anew.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.n_steps = 0
        self.new_places()

    def new_places(self) -> None:
        """Forget the figures of places: they are others from now on."""
        self._steps_of_places = 0
        self._compute_s: dict[int, float] = {}
        self._gap_s: dict[int, float] = {}

    def add(self, engine: Engine, n_steps: int, seconds: float, seconds_here: float) -> None:
        """`n_steps` steps have taken `seconds` on the slowest rank and `seconds_here` on this."""
        self.seconds += seconds
        self.n_steps += n_steps
        self._steps_of_places += n_steps
        for place, run in engine.places.items():
            compute_s = min(run.samples.compute_s * n_steps, seconds_here)  # samples: some steps
            gap_s = min(run.samples.gap_s * n_steps, seconds_here - compute_s)
            self._compute_s[place] = self._compute_s.get(place, 0.0) + compute_s
            self._gap_s[place] = self._gap_s.get(place, 0.0) + gap_s

    def place(self, engine: Engine, place: int) -> PlaceReport:
        """The figures of one place of this rank."""
        plan = engine.plan
        location = plan.locations[place]
        neighbours = [
            other
            for other in plan.places
            if other != place and plan.locations[other].same_controller(location)
        ]
        compute_s = self._compute_s.get(place, 0.0)
        gap_s = self._gap_s.get(place, 0.0) - sum(self._compute_s.get(p, 0.0) for p in neighbours)
        talks = any(operation.verb != "launch" for operation in plan.operations
                    if operation.place == place)
        n_cells = plan.layout.owned[place].n_cells
        return PlaceReport(
            place=place,
            rank=location.rank,
            device=location.device,
            cells=n_cells,
            share=n_cells / plan.layout.domain.n_cells,
            cells_per_s=n_cells * self._steps_of_places / compute_s if compute_s else 0.0,
            compute_s=compute_s,
            exposed_s=max(0.0, gap_s) if talks else 0.0,
            memory=plan.memory(place),
        )
