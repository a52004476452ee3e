# SPDX-License-Identifier: MIT
"""Random programs that repeat some of their stages: checked, traced and tuned, as the reference."""
from __future__ import annotations

import random
from itertools import cycle
from typing import Any

import pytest
from engine_runs import check_engine, layout_of
from fold_programs import N_CASES
from repeat_programs import random_repeats
from sample import sample
from small_kernels import opencl

from controllers.check import CheckedRepeatingEngine
from controllers.device import reference_device
from controllers.engine import Engine, RepeatingEngine
from controllers.executor.executor import Executor
from controllers.executor.reference import ReferenceExecutor
from controllers.report.timings import Timings
from controllers.report.trace import Trace
from controllers.tuning import Tuner
from hitmap import SerialCommunicator

N_PLACES = (1, 2, 3, 5)


class Traced(RepeatingEngine):
    """Tells a trace of its runs."""

    def run(self, n_steps: int, *_: Any, **more: Any) -> None:
        trace = Trace(SerialCommunicator())
        trace.begin(self)
        super().run(n_steps, log=trace)
        trace.end(self)
        timeline = trace.timeline()
        assert timeline is not None and timeline.n_steps == n_steps
        assert {span.step for span in timeline.spans} <= {*range(n_steps)}


class Tuned(RepeatingEngine):
    """Tries configurations while it runs."""

    def run(self, n_steps: int, *_: Any, **more: Any) -> None:
        if more or hasattr(self, "_under_way"):
            super().run(n_steps, *_, **more)
            return
        self._under_way = True
        Tuner(self, SerialCommunicator(), 0.3).run(n_steps, Timings())
        del self._under_way


WAYS: dict[str, type[Engine]] = {
    "plain": RepeatingEngine, "checked": CheckedRepeatingEngine, "traced": Traced, "tuned": Tuned,
}  # fmt: skip

TURNS = ("plain", "checked", "traced") * 3 + ("tuned",)     # which builds most


@pytest.mark.parametrize(("number", "way"), sample([*zip(range(N_CASES), cycle(TURNS))], 60))
def test_repeats_give_what_the_reference_gives(number: int, way: str) -> None:
    rng = random.Random(f"{number} {way}")
    n_places = rng.choice(N_PLACES)
    case = random_repeats(number)
    if way == "tuned":
        executors: list[Executor] = [opencl(True, "cpu")] * n_places
    else:
        one = ReferenceExecutor(reference_device())
        executors = [rng.choice([one, ReferenceExecutor(reference_device())])
                     for _ in range(n_places)]  # fmt: skip
    check_engine(case, executors, layout_of(case, n_places, rng), WAYS[way])


@pytest.mark.parametrize("number", sample(range(60), 30))
def test_repeats_exchange_wide_halos_after_several_turns(number: int) -> None:
    rng, case = random.Random(number), random_repeats(number)
    executors: list[Executor] = [
        ReferenceExecutor(reference_device()) for _ in range(rng.choice(N_PLACES))
    ]
    layout = layout_of(case, len(executors), rng)
    check_engine(case, executors, layout, RepeatingEngine, n_launches=rng.randint(2, 4))
