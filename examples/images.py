# SPDX-License-Identifier: MIT
"""Map and reduce over images of unlike sizes: the histogram of all of them, corrected, by tasks.

    python examples/images.py
"""
import numpy as np

import controllers as ct

correct = ct.Task("correct", ("new", "old"), roles={"new": "writing"})


@correct.variant                # on cores of the host
def correct_on_host(new, old):
    np.multiply(old, old, out=new)


correct.variant(ct.Kernel.of("correct", """
    __kernel void correct(__global float *new, __global const float *old,
                          TILE(new), TILE(old), BOX)
    { CELL; HERE(new) = HERE(old) * HERE(old); }""", roles={"new": "writing"}))


def histogram(image):
    return np.histogram(image, bins=8, range=(0, 1))[0]


def main(images):
    corrected = [np.empty_like(image) for image in images]
    with ct.tasks() as pool:            # the devices of this rank, and its cores
        for new, old in zip(corrected, images):
            pool.submit(correct, new, old)              # where it ends first
        counts = pool.map_reduce(histogram, np.add, corrected)      # each after its image
        return counts.result(), corrected


if __name__ == "__main__":
    random = np.random.default_rng(1)
    sizes = random.integers(20, 400, (30, 2))
    found, _ = main([random.random(size, np.float32) for size in sizes])
    print(found, "of", int((sizes[:, 0] * sizes[:, 1]).sum()))
