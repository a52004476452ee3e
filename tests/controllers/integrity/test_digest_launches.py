# SPDX-License-Identifier: MIT
"""Digests that launches take of what they read: the numbers that kernels of their own give."""
from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import sample

import controllers as ct
from controllers.integrity.digest import Digest, digest_of
from controllers.integrity.digest_kernel import DigestKernels
from hitmap import Shape

DTYPES = ("float32", "float64", "uint8", "int16", "int32", "int64")
EXTENTS = ((701,), (37, 90), (11, 9, 90), (5, 6, 7, 99), (9, 5000))


@ct.step
def heat(u: Any, *, rate: float = 0.1) -> dict[str, Any]:
    return dict(u=u + rate * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u))


def digest(values: npt.NDArray[Any]) -> Digest:
    whole = Shape.of_extent(values.shape)
    return digest_of(values, whole, whole)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Gets a word for each field and place of which a kernel of its own takes the digest."""
    words: list[str] = []
    start = DigestKernels.start

    def noted(self: DigestKernels, *arguments: Any) -> Any:
        words.append("a kernel")
        return start(self, *arguments)

    monkeypatch.setattr(DigestKernels, "start", noted)
    yield words


def random_stencil(rng: random.Random, extent: tuple[int, ...]) -> ct.Stencil:
    """Of small weights; it may reach to one side only, or one cell further than it reads."""
    sides = [(-rng.randint(0, 2), rng.randint(0, 2)) for _ in extent]
    shape = tuple(high - low + 1 for low, high in sides)
    weights = np.array([rng.choice([0, 0, 1, 2]) for _ in range(int(np.prod(shape)))])
    weights = weights.reshape(shape)
    weights[tuple(-low for low, _ in sides)] = 1
    return ct.Stencil.of("random", sides, weights.reshape(-1).tolist(), int(weights.sum()))


@pytest.mark.parametrize("number", sample(range(60), 10))
def test_random_programs_have_the_digests_of_their_fields(
    number: int, started: list[str]
) -> None:
    rng = random.Random(number)
    extent, dtype = rng.choice(EXTENTS), rng.choice(DTYPES)
    program, per_launch = random_stencil(rng, extent).program(dtype), rng.randint(2, 4)
    options: dict[str, Any] = {
        "boundary": rng.choice(["keep", "periodic"]), "steps_per_launch": per_launch,
        "places_per_controller": rng.choice([1, 1, 2, 3]),
        "partition": rng.choice(["bands", "blocks"]),
    }  # fmt: skip
    values = np.random.default_rng(number).integers(0, 90, extent).astype(dtype)
    if values.dtype.kind == "f":
        values.reshape(-1)[[rng.randrange(values.size) for _ in range(3)]] = np.nan
    every = rng.choice([per_launch + 1, 2 * per_launch + 1])
    with ct.Computation(program, extent, digest_every=every, **options) as run:
        run.scatter(values)
        run.run(every + 1)
        started.clear()
        run.run(2 * every + per_launch - 1)
        places = run.plan.places
        if all(not run.plan.updated(run.plan.sweeps[0], place).empty for place in places):
            assert not started
        result, report = run.gather(), run.report()
    assert report.digests is not None
    taken = report.digests.taken
    assert [step for step, _ in taken] == [every, 2 * every, 3 * every]
    with ct.Computation(program, extent, **options) as run:
        run.scatter(values)
        for step, found in taken:
            run.run(step - run.step)
            assert found["u"] == digest(run.gather()) == run.digest()["u"]
        run.run(per_launch)
        np.testing.assert_array_equal(result, run.gather())
    assert values.dtype.kind != "f" or taken[-1][1]["u"].n_nan > 0


def run_of(**options: Any) -> ct.Computation:
    return ct.Computation(
        heat, (40, 50), boundary="periodic", u=lambda y, x: y * x % 7, steps_per_launch=4,
        digest_every=10, **options,
    )  # fmt: skip


def right() -> dict[int, Digest]:
    """By step, of the same."""
    found = {}
    with run_of(devices="reference") as run:
        for step in range(0, 70, 10):
            found[step] = digest(run.gather())
            run.run(10)
    return found


def taken(run: ct.Computation) -> dict[int, Digest]:
    found = run.report().digests
    assert found is not None
    return {step: digests["u"] for step, digests in found.taken}


@pytest.mark.parametrize("width", [2048, 2050, 2056])
def test_cells_of_tiles_that_overlap_count_once(width: int, started: list[str]) -> None:
    # the last tile of a row has fewer cells than a vector, and begins in the one before it
    options: dict[str, Any] = {
        "boundary": "periodic", "u": lambda y, x: y * x % 7, "dtype": "float32",
        "steps_per_launch": 4,
    }  # fmt: skip
    with ct.Computation(heat, (150, width), digest_every=4, **options) as run:
        run.run(16)
        assert len(started) == 2    # the first, and the last
        found = taken(run)
    with ct.Computation(heat, (150, width), **options) as run:
        for step in (8, 12):
            run.run(step - run.step)
            assert found[step] == digest(run.gather())


def test_only_what_no_launch_reads_takes_a_kernel(started: list[str]) -> None:
    known = right()
    with run_of() as run:
        run.run(45)
        assert started == ["a kernel"]      # the first time all is built
        assert taken(run) == {step: known[step] for step in (10, 20, 30, 40)}
        run.run(5)
        assert len(started) == 2            # nothing comes after it
        run.run(12)
        assert len(started) == 3            # less than a launch comes after it
        assert taken(run) == {step: known[step] for step in (10, 20, 30, 40, 50, 60)}
        run.digest()
        assert len(started) == 4
        assert run.digest()["u"] == digest(run.gather())


def test_a_field_that_is_set_between_runs_has_the_digests_of_then() -> None:
    with run_of() as run:
        run.run(30)
        run.u[...] = 1.0
        run.run(15)
        found = taken(run)
    assert [*found] == [10, 20, 30, 40]
    assert found[30] == right()[30] and found[40] == digest(np.ones((40, 50)))


def test_all_that_digests_are_told_in_has_those_that_were_under_way(tmp_path: Path) -> None:
    known = right()
    with run_of() as run:
        run.run(until=lambda now: now.step == 40, check_every=20, at_most=60)
        assert taken(run) == {step: known[step] for step in (10, 20, 30, 40)}
        run.run(15, stop_if=True)
        run.redistribute(places_per_controller=2)
        run.run(11)
        assert [*taken(run)] == [10, 20, 30, 40, 50, 60]
        assert taken(run)[60] == known[60]
    with run_of() as run:
        run.run(25, checkpoint=(str(tmp_path / "kept"), ct.every(steps=20)))
        assert [*taken(run)] == [10, 20]
    with run_of(places_per_controller=3) as run:
        kept = (str(tmp_path / "kept"), ct.every(steps=20))
        run.run(45, checkpoint=kept, restart="require")
        assert taken(run) == {step: known[step] for step in (10, 20, 30, 40)}
    with run_of() as run:
        moments = [now.step for now in run.steps(45, every=15)]
        assert moments == [15, 30, 45]
        assert taken(run) == {step: known[step] for step in (10, 20, 30, 40)}


def test_a_look_that_fails_leaves_the_digests_before_it() -> None:
    def fails(now: Any) -> bool:
        if now.step == 40:
            raise RuntimeError("enough")
        return False

    with run_of() as run:
        with pytest.raises(RuntimeError, match="enough"):
            run.run(until=fails, check_every=20, at_most=60)
        known = right()
        assert taken(run) == {step: known[step] for step in (10, 20, 30, 40)}
        run.u[...] = 0
        run.run(11)
        assert taken(run)[50] == digest(np.zeros((40, 50)))


def test_one_with_other_scalars_is_of_the_field_that_they_made() -> None:
    with run_of() as run:
        run.run(25, rate=0.2)
        found = taken(run)
    with run_of() as run:
        run.run(10, rate=0.2)
        assert found[10] == run.digest()["u"]
        run.run(10)
        assert found[20] == run.digest()["u"]


RANKS = """
import json, sys
import numpy as np
import controllers as ct
from test_digest_launches import heat
with ct.Computation(
    heat, (90, 70), boundary="periodic", u=lambda y, x: np.cos(y * x), digest_every=10,
    partition=sys.argv[1], places_per_controller=int(sys.argv[2]), dtype="float32",
    devices=sys.argv[3].split(","), steps_per_launch=4, verify_messages=True,
) as run:
    run.run(25)
    run.u[2:4, 5] = np.nan
    run.run(20)
    found = run.report().digests.as_dict()
    if run.comm.rank == 0:
        print(json.dumps(found))
"""


@pytest.mark.parametrize(("ranks", "partition", "places"), sample([
    (2, "blocks", "2"), (3, "bands", "1"), (4, "blocks", "3"),
], 3))  # fmt: skip
def test_ranks_have_the_same(ranks: int, partition: str, places: str) -> None:
    outputs = []
    for n, *words in ((1, "bands", "1", "reference"), (ranks, partition, places, "cpu")):
        job = run_ranks(n, ["-c", RANKS, *words], env=helpers_path(Path(__file__).parent))
        assert job.returncode == 0, job.stderr
        outputs.append(json.loads(job.stdout))
    assert outputs[0] == outputs[1]
    assert [one["step"] for one in outputs[0]["taken"]] == [10, 20, 30, 40]
    assert outputs[0]["taken"][-1]["u"][1] > 2


@ct.step
def leap(u: Any, old: Any) -> dict[str, Any]:
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=1.9 * u - 0.9 * old + 0.25 * around, old=u)


def test_of_two_fields_the_one_that_leads_is_taken_by_launches(started: list[str]) -> None:
    options: dict[str, Any] = {
        "boundary": "periodic", "u": lambda y, x: y * x % 7, "old": lambda y, x: y % 5 + x % 3,
        "dtype": "float32",
    }  # fmt: skip
    grid = ct.Grid(y=40, x=60)
    with ct.Computation(leap, grid, digest_every=8, steps_per_launch=4, **options) as run:
        run.run(9)
        started.clear()
        run.run(20)
        assert len(started) == 2    # of the one that follows
        report = run.report().digests
    assert report is not None
    with ct.Computation(leap, grid, devices="reference", **options) as run:
        for step, found in report.taken:
            run.run(step - run.step)
            assert found == {name: digest(run[name].gather()) for name in ("u", "old")}, step
