# SPDX-License-Identifier: MIT
"""Random graphs of hybrid tasks give what their tasks give one after another, with any shares."""
from __future__ import annotations

import numpy as np
import pytest
from random_hybrids import any_shares, submitted
from random_tasks import SOON_S, Graph, any_schedule
from sample import sample

import controllers as ct


@pytest.mark.parametrize("seed", sample(range(60), 15))
def test_a_random_graph_of_hybrid_tasks(seed: int) -> None:
    graph = Graph(seed)
    selector = ((), "cpu/1,1", "cpu/1")[seed % 3]
    with any_shares(seed), any_schedule(seed), ct.tasks(
        selector, cores=3, zero_copy=seed % 2 == 0
    ) as pool:
        arrays, futures, n_hybrid = submitted(graph, pool, seed)
        for future in futures[seed % 2 :: 2]:
            future.result(SOON_S)
        pool.wait(SOON_S)
    right, _ = graph.one_after_another()
    assert n_hybrid > 2
    for array, expected in zip(arrays, right, strict=True):
        assert np.array_equal(array, expected)
