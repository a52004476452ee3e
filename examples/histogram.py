# SPDX-License-Identifier: MIT
"""A data-parallel program that is no stencil: a histogram by rows over weighted bands.

    python examples/histogram.py
    python examples/histogram.py "gpu cpu" 9,1       # two devices, the first one gets 9/10
    mpiexec -n 2 python examples/histogram.py cpu 1,2

Each device counts the values of its rows: work-groups count in local memory and then add to the
device's histogram; the host adds these.  Whole numbers, so any division has the same result.
"""
import sys

import numpy as np

from controllers import Controller, Kernel
from hitmap import Layout, Shape, default_communicator

EXTENT, N_BINS, GROUP = (1200, 1000), 64, (1, 64)

COUNT = Kernel.of("count_values", f"""
    __kernel void count_values(__global const float *restrict u, TILE(u), BOX,
                               volatile __global int *bins, __local volatile int *mine)
    {{
        const long row = get_global_id(1), column = get_global_id(0);
        const int item = get_local_id(0);       // as many items as bins
        mine[item] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (row < EXTENT(0) && column < EXTENT(1))
            atomic_inc(&mine[min({N_BINS} - 1, (int)(AT_LOCAL(u, row, column) * {N_BINS}))]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (mine[item]) atomic_add(&bins[item], mine[item]);
    }}""")  # fmt: skip


def rows(shape: Shape) -> np.ndarray:
    """Some rows of a field that every rank can make: values from 0 to 1."""
    index = np.arange(shape.lower[0], shape.upper[0])[:, None] * EXTENT[1] + np.arange(EXTENT[1])
    return (np.modf(np.sin(index * 12.9898) * 43758.5453)[0] ** 2).astype(np.float32)


def main(selectors: str = "", weights: str = "") -> None:
    comm = default_communicator()
    controllers = Controller.each(selectors.split(), comm)
    counts = comm.allgather(len(controllers))
    first, n_places = sum(counts[: comm.rank]), sum(counts)
    parts = [float(part) for part in weights.split(",")] if weights else [1.0] * n_places
    layout = Layout.weighted(Shape.of_extent(EXTENT), parts)

    bins = []
    for controller, owned in zip(controllers, layout.owned[first:]):
        u, count = controller.tile(owned), controller.tile((N_BINS,), "int32")
        u.write(rows(owned))
        controller.launch(COUNT, u, group=GROUP, u=u, bins=count, mine=N_BINS)
        bins.append(count)                      # all devices count at the same time
    mine = sum(count.read() for count in bins)
    total = sum(comm.allgather(mine))

    right, _ = np.histogram(rows(layout.domain), N_BINS, (0, 1))
    assert np.array_equal(total, right), "the histogram of NumPy"
    if comm.rank == 0:
        print(layout)
        print(f"{total.sum()} values, {total[0]} of them below 1/{N_BINS}")
    for controller in controllers:
        controller.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
