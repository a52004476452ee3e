# SPDX-License-Identifier: MIT
"""The first choice of a run: configurations that share one text, tried before the first step.

They differ in the value of a scalar and in work sizes, such as the `length` of "streaming", so that
a trial takes a few launches and no build.  A model says which one is good for a box; how the groups
of a launch meet on a device, and what they leave in its caches, no model has told to 3 %.
"""
from __future__ import annotations

from statistics import median

from controllers.engine import Configurable
from controllers.kernel.candidate import Candidate
from controllers.process.once import done_once
from controllers.tuning.site import KeyedLaunches, chosen_launches
from controllers.tuning.timing import ROUNDS, turns

BUDGET_S = 0.15     # of launches of one stage on a device, about
MOST_LAUNCHES = 11   # of a configuration in a turn, the first of which does not count


@done_once()
def settle(engine: Configurable) -> None:
    """Let the launches of this rank take the fastest of what is alike; not collective.

    For an engine whose fields are not set yet: the launches that are timed write to its tiles.
    Launches as large as some that have settled on the same device, before a field was divided
    anew, take the same.
    """
    for launches in chosen_launches(engine):
        program, sweep = engine.plan.program, launches.sweep
        executor = launches.executor
        if launches.key in executor.choices.settled:
            continue
        executor.choices.settled.add(launches.key)
        launch = executor.launch_of(program, sweep, launches.placed)
        used = executor.choices.configuration(executor.offer(program, sweep), launch)
        others = [one for one in used.alike(launch.extent) if one.suits(launch.fields.values())]
        best = _fastest(engine, launches, [used, *others]) if others else used
        if best != used:
            executor.choices.use(launches.key, best)
            engine.rebind(launches.numbers)


def _fastest(engine: Configurable, launches: KeyedLaunches, configs: list[Candidate]) -> Candidate:
    """The one with the shortest launches; the first one where launches are long."""
    number = min(launches.largest)
    seconds = engine.timed(number, 2)[1]
    n_launches = min(MOST_LAUNCHES, int(BUDGET_S / (ROUNDS * len(configs) * max(seconds, 1e-6))))
    if n_launches < 2:      # launches so long that the model is good enough
        return configs[0]
    times: dict[Candidate, list[float]] = {config: [] for config in configs}
    for config in turns(configs):
        with launches.executor.choices.using(launches.key, config):
            times[config] += engine.timed(number, n_launches)[1:]
    typical = {config: median(its) for config, its in times.items()}
    return min(configs, key=typical.__getitem__)
