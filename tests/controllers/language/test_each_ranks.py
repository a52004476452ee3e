# SPDX-License-Identifier: MIT
"""Functions of items on two ranks, whose whole arrays are gathered by messages."""
from __future__ import annotations

import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import sample

NAMES = ["nearest", "turned", "pull", "gather", "outer", "blurred"]
JOB = """
import numpy as np
from item_functions import FUNCTIONS, arrays_for
from item_runs import ItemRun, opened
import controllers as ct
from hitmap.comm import default_communicator

comm = default_communicator()
zero_copy = True
for name in NAMES:
    function = ct.each(FUNCTIONS[name])
    arrays = arrays_for(function, "float32")
    right = function(*arrays.values())
    executors = [opened("cpu", zero_copy)]
    for weights in ((1, 2), (2, 1, 0, 1)):
        run = ItemRun(
            function, arrays, executors, ranks=(0, 1), weights=weights, comm=comm,
        )
        for _ in range(2):
            found = run.results()["result"]
            whole = sum(comm.allgather(found))
            assert np.array_equal(whole, right), (name, weights)
        run.run.close()

@ct.each
def moments(x: ct.Row, every: ct.All) -> ct.Row:
    return dict(centre=ct.accumulate(x / 3), near=ct.accumulate(((every - x) ** 2).sum(axis=1) < 1))

arrays = arrays_for(moments, "float64")
right = moments(*arrays.values())
for weights in ((1, 2), (2, 1, 0, 1), (0, 1)):
    found = ItemRun(
        moments, arrays, [opened("cpu", zero_copy)], ranks=(0, 1), weights=weights, comm=comm
    ).results()
    assert all(np.array_equal(found[name], one) for name, one in right.items()), weights
print("done")
"""


@pytest.mark.whole
@pytest.mark.parametrize(
    ("zero_copy", "names"), sample([(True, NAMES[:1]), (True, NAMES[1:]), (False, NAMES)], 3),
    ids=["shared", "shared, others", "apart"],
)
def test_items_on_two_ranks_have_the_bits_of_the_reference(
    zero_copy: bool, names: list[str]
) -> None:
    job = JOB.replace("zero_copy = True", f"zero_copy, NAMES = {zero_copy}, {names}")
    done = run_ranks(2, job, env=helpers_path())
    assert done.returncode == 0 and done.stdout.count("done") == 2, done.stderr
