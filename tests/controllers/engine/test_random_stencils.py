# SPDX-License-Identifier: MIT
"""Random stencils, divided in all ways, equal the reference bit for bit."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import pytest
from case_server import Name, Outcome, command, run_job
from mpi_jobs import HANGS_S
from stencil_cases import RANKS, Combination, possible_combinations, random_case

FIRST = 29          # of few cases: it has one axis and five steps, on one rank and on two
BATCH = 20          # cases per job: the time limit of a test holds for one batch
N_JOBS = 2          # jobs at a time


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "number" in metafunc.fixturenames:
        count = metafunc.config.getoption("stencil_cases")
        numbers = range(count) if count > FIRST else range(FIRST, FIRST + count)
        metafunc.parametrize("number", numbers, ids=[f"case-{number}" for number in numbers])


class Jobs:
    """The outcomes of the chosen cases: computed batch by batch, when first asked for."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._outcomes: dict[tuple[int, int], Outcome] = {}  # of each batch and number of ranks

    def problem(self, name: Name, ranks: int) -> str | None:
        """What is wrong with one combination, None if nothing is."""
        batch = name[0] // BATCH
        if (batch, ranks) not in self._outcomes:
            self._run(batch)
        return self._outcomes[batch, ranks].problem(name)

    def _run(self, batch: int) -> None:
        cases = {n: random_case(n) for n in self._numbers if n // BATCH == batch}
        names = {
            ranks: [
                (number, position)
                for number, case in cases.items()
                for position, combination in enumerate(case.combinations)
                if combination.ranks == ranks
            ]
            for ranks in RANKS
        }
        with ThreadPoolExecutor(N_JOBS) as pool:
            needed = [ranks for ranks in RANKS if names[ranks]]
            outcomes = pool.map(lambda ranks: run_job(ranks, names[ranks], 2 * HANGS_S), needed)
            self._outcomes |= {(batch, ranks): o for ranks, o in zip(needed, outcomes)}


@pytest.fixture(scope="module")
def jobs(request: pytest.FixtureRequest) -> Jobs:
    """One MPI job per number of ranks runs all cases that were selected."""
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    items = (item for item in items if item.module is request.module)
    chosen = [item.callspec.params["number"] for item in items if "jobs" in item.fixturenames]
    return Jobs(chosen)


def test_a_random_stencil_equals_the_reference_bit_for_bit(number: int, jobs: Jobs) -> None:
    case = random_case(number)
    wrong = []
    for position, combination in enumerate(case.combinations):
        name = (number, position)
        problem = jobs.problem(name, combination.ranks)
        if problem is not None:
            wrong.append(f"{combination}\n{command(name, combination.ranks)}\n{problem}")
    assert not wrong, "\n\n".join([f"case {number}: {case}", *wrong])


def pairs(combination: Combination) -> Iterator[object]:
    return combinations(combination.factors, 2)


def test_all_pairs_that_are_possible_occur_in_sixty_cases() -> None:
    possible = {pair for combination in possible_combinations() for pair in pairs(combination)}
    occurring = {
        pair
        for number in range(60)
        for combination in random_case(number).combinations
        for pair in pairs(combination)
    }
    assert occurring == possible
    impossible = [(("places", 1), ("ranks", 2)), (("controllers", 2), ("ranks", 4))]
    assert not possible & set(impossible)


def test_every_case_has_four_combinations_and_follows_from_its_number() -> None:
    for number in (0, 59, 1000):
        case = random_case(number)
        assert case == random_case(number)
        assert len(set(case.combinations)) == 4


def test_the_cases_are_as_various_as_they_should_be() -> None:
    cases = [random_case(number) for number in range(60)]
    assert {case.stencil.n_axes for case in cases} == {1, 2, 3, 4}
    assert {case.dtype for case in cases} == {"float32", "float64"}
    assert {case.boundary for case in cases if case.stencil.n_axes == 2} == {
        ("fixed", "fixed"), ("fixed", "periodic"), ("periodic", "fixed"), ("periodic", "periodic"),
    }
    assert {end for case in cases for pair in case.stencil.shape for end in pair} == {*range(-3, 4)}
    assert {sum(case.runs) for case in cases} == {*range(8)}
    ratios = [
        max(combination.division.weights) / (min(filter(None, combination.division.weights)))
        for case in cases
        for combination in case.combinations
        if combination.division.weights
    ]
    assert 45 < max(ratios) <= 50
