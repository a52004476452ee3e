# SPDX-License-Identifier: MIT
"""Ways in which one rank does something else than the others; each must be an error on all.

    mpiexec -n 3 python tests/support/disagreements.py "other number of steps"

Rank 2 is the odd one, and what the others do comes first.  Ranks catch the error and go on, so
that one job tries them all; afterwards a computation must still work.
"""
from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import controllers
from controllers import Computation, Stencil, stencil_computation
from controllers.process.environment import environment
from hitmap import Layout, Redistribution, Shape, gather, scatter
from hitmap.comm import Communicator, default_communicator

ODD = 2     # the rank
MEAN = Stencil.of("mean", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
TWICE = Stencil.of("mean", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 8)
OPTIONS: dict[str, Any] = {"devices": "reference"}
Action = Callable[["Scene"], object]


class Scene:
    """What the actions are done to: two computations, on all ranks."""

    def __init__(self, comm: Communicator) -> None:
        self.comm = comm
        self.first, self.second = (self.computation() for _ in range(2))
        self.layout = Layout.bands(Shape.of_extent((9, 8)), comm.size)

    def computation(self, program: Any = None, sizes: Any = (9, 8), **options: Any) -> Computation:
        program = MEAN.program("float32") if program is None else program
        return Computation(program, sizes, comm=self.comm, **{**OPTIONS, **options})

    def parts(self, dtype: str) -> dict[int, np.ndarray[Any, Any]]:
        return {self.comm.rank: np.zeros(self.layout.owned[self.comm.rank].extent, dtype)}


def run(n_steps: Any, scene: Scene) -> None:
    scene.first.run(n_steps)


def made(scene: Scene, *arguments: Any, **options: Any) -> None:
    scene.computation(*arguments, **options).close()


def with_options(**options: Any) -> Action:
    return lambda scene: made(scene, **options)


def other_build_options(scene: Scene) -> None:
    with environment({"PYOPENCL_BUILD_OPTIONS": "-DOTHER"}):
        made(scene, math="fast")


def skeleton(iterations: int, scene: Scene) -> None:
    stencil_computation((9, 8), MEAN.shape, MEAN.weights, 4, iterations, comm=scene.comm, **OPTIONS)


def one_loads(scene: Scene) -> None:
    scene.first.run(2)
    if scene.comm.rank == ODD:
        scene.first.load(lambda tile: None)
    scene.first.run(1)


def redistributed(weights: Sequence[float], scene: Scene) -> None:
    scene.first.redistribute(weights=weights)


def gathered(scene: Scene) -> object:
    return scene.first.gather()


def saved(name: str, scene: Scene) -> None:
    scene.first.save(name)


def loaded(name: str, scene: Scene) -> None:
    scene.first.load_file(name)


def loaded_elsewhere(name: str, scene: Scene) -> None:
    """A file of the same name in another folder, as on another node."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / name, np.full((9, 8), 2, np.float32))
        os.chdir(folder)
        try:
            loaded(name, scene)
        finally:
            os.chdir(before)


def made_by_another_version(scene: Scene) -> None:
    version, controllers.__version__ = controllers.__version__, "0.0.1"
    try:
        made(scene)
    finally:
        controllers.__version__ = version


def torn(scene: Scene) -> None:
    """A load that fails half-way, on this rank alone."""
    with suppress(ZeroDivisionError):
        scene.first.load(lambda tile: 1 // 0)
    scene.first.run(1)


def reported(scene: Scene) -> object:
    return scene.first.report()


def hit_scatter(root: int, scene: Scene) -> object:
    return scatter(np.zeros((9, 8)), scene.layout, range(scene.comm.size), scene.comm, root)


def hit_gather(dtype: str, scene: Scene) -> object:
    ranks = range(scene.comm.size)
    return gather(scene.parts(dtype), scene.layout, ranks, scene.comm, dtype)


def hit_redistribute(weights: Sequence[float], scene: Scene) -> object:
    ranks = tuple(range(scene.comm.size))
    new = Layout.weighted(scene.layout.domain, weights)
    moves = Redistribution(scene.layout, new, ranks, ranks)
    return moves.apply(scene.parts("f4"), scene.comm, "f4")


# what is done by most, by the odd rank, and what the error must hold
CASES: dict[str, tuple[Action, Action, tuple[str, ...]]] = {
    "other number of steps": (partial(run, 5), partial(run, 7), ("n_steps", "5", "7")),
    "run and save": (partial(run, 5), partial(saved, "a.npy"), ("run", "save")),
    "run and gather": (partial(run, 5), gathered, ("run", "gather")),
    "report and redistribute": (reported, partial(redistributed, (1, 1, 2)), ("redistribute",)),
    "load_file and run": (partial(loaded, "in.npy"), partial(run, 1), ("load_file", "run")),
    "a new one and run": (lambda s: made(s), partial(run, 1), ("set-up", "run")),
    "close and run": (lambda s: s.first.close(), partial(run, 1), ("close", "run")),
    "other order of two computations": (
        lambda s: (s.first.run(3), s.second.run(3)),
        lambda s: (s.second.run(3), s.first.run(3)),
        ("has run of computation",),
    ),
    "other file to write": (partial(saved, "a.npy"), partial(saved, "b.npy"), ("save of", "b.npy")),
    "other file to read": (partial(loaded, "in.npy"), partial(loaded, "b.npy"), ("path", "b.npy")),
    "other content of a file": (
        partial(loaded, "in.npy"), partial(loaded_elsewhere, "in.npy"), ("the content", "bytes"),
    ),
    "other version of the package": (made, made_by_another_version, ("package", "'0.0.1'")),
    "one load fails": (partial(run, 1), torn, ("torn by", "'load'")),
    "other root": (lambda s: s.first.gather(0), lambda s: s.first.gather(1), ("root",)),
    "other weights of a new division": (
        partial(redistributed, (1, 1, 2)), partial(redistributed, (1, 1, 3)), ("weights", "3"),
    ),
    "other program": (
        lambda s: made(s), lambda s: made(s, TWICE.program("float32")), ("program", "mean"),
    ),
    "other dtype": (
        lambda s: made(s), lambda s: made(s, MEAN.program("float64")), ("program", "float64"),
    ),
    "other sizes": (lambda s: made(s), lambda s: made(s, None, (8, 9)), ("sizes", "(8, 9)")),
    "other number of axes": (lambda s: made(s), lambda s: made(s, None, (8,)), ("sizes", "(8)")),
    "other boundary": (with_options(), with_options(boundary="periodic"), ("boundary",)),
    "other overlap": (with_options(), with_options(overlap="on"), ("overlap", "'on'")),
    "other partition": (with_options(), with_options(partition="blocks"), ("'blocks'",)),
    "other weights": (
        with_options(weights=(1, 1, 1)), with_options(weights=(1, 1, 2)), ("weights", "(1, 1, 2)"),
    ),
    "other alignment": (with_options(), with_options(align=2), ("align", "2")),
    "other blocks": (
        with_options(partition="cyclic", block=4),
        with_options(partition="cyclic", block=5),
        ("block", "5"),
    ),
    "other number of places": (
        with_options(), with_options(places_per_controller=2), ("places_per_controller", "2"),
    ),
    "other kernel": (with_options(), with_options(kernel="generic"), ("kernel", "generic")),
    "other watchdog": (with_options(), with_options(watchdog=60), ("watchdog", "60")),
    "other build options": (
        with_options(math="fast"), other_build_options, ("build options", "-DOTHER"),
    ),
    "other iterations": (partial(skeleton, 3), partial(skeleton, 4), ("n_steps", "4")),
    "one loads": (one_loads, one_loads, ("steps so far", "have 2", "has 0")),
    "scatter and gather": (
        partial(hit_scatter, 0), partial(hit_gather, "f4"), ("scatter", "gather"),
    ),
    "scatter from another root": (partial(hit_scatter, 0), partial(hit_scatter, 1), ("root",)),
    "gather of another dtype": (partial(hit_gather, "f4"), partial(hit_gather, "f8"), ("dtype",)),
    "other redistribution": (
        partial(hit_redistribute, (1, 1, 2)), partial(hit_redistribute, (1, 2, 1)), ("layouts",),
    ),
}  # fmt: skip


def main(names: Sequence[str]) -> None:
    """Try the cases; rank 0 prints what each rank was told.  Collective."""
    comm = default_communicator()
    for name in names or CASES:
        usual, unusual, _ = CASES[name]
        told = _told(Scene(comm), unusual if comm.rank == ODD else usual)
        everyone = comm.allgather(told)
        if comm.rank == 0:
            print(json.dumps({"name": name, "told": everyone}), flush=True)
    scene = Scene(comm)
    scene.first.run(3)
    scene.first.close()


def _told(scene: Scene, action: Action) -> str:
    if scene.comm.rank == 0 and not Path("in.npy").exists():
        np.save("in.npy", np.ones((9, 8), np.float32))
    try:
        action(scene)
    except ValueError as error:
        return str(error)
    return "nothing"


if __name__ == "__main__":
    main(sys.argv[1:])
