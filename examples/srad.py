# SPDX-License-Identifier: MIT
"""Speckle of ultrasound is diffused away, edges stay: SRAD, after Yu and Acton (2002).

    python examples/srad.py [ROWS] [STEPS] [PICTURE.png]
    mpiexec -n 2 python examples/srad.py

How much a pixel diffuses follows from how it varies, beside how a corner does where nothing is.
"""
import sys

import numpy as np

import controllers as ct


@ct.step
def diffused(image, *, y, x, rate=0.5):
    corner = (y < 0.15) & (x < 0.15)
    mean, square = (ct.mean(each, where=corner) for each in (image, image * image))
    noise = (square - mean * mean) / (mean * mean)
    sides = [image[at] - image for at in ((-1, 0), (1, 0), (0, -1), (0, 1))]
    slope, curve = sum(d * d for d in sides) / (image * image), sum(sides) / image
    q = (0.5 * slope - 0.0625 * curve**2) / (1 + 0.25 * curve) ** 2
    c = ct.stored(np.clip(1 / (1 + (q - noise) / (noise * (1 + noise))), 0, 1))
    flow = sides[0] * c + sides[1] * c[1, 0] + sides[2] * c + sides[3] * c[0, 1]
    return dict(image=image + rate / 4 * flow)


def speckled(y, x):
    speckle = np.random.default_rng(1).gamma(9, 1 / 9, np.broadcast(y, x).shape)
    return np.where((y - 0.5) ** 2 + (x - 0.5) ** 2 < 0.1, 3, 1) * speckle


def main(n=256, n_steps=60, picture=None, **options):
    grid = ct.Grid(y=n, x=n, lower=0, upper=1, boundary=ct.mirror())
    centres = (np.arange(n) + 0.5) / n
    start = speckled(centres[:, None], centres)
    with ct.Computation(diffused, grid, dtype="float32", image=start, **options) as run:
        run.run(n_steps)
        image = run.image.get()
    if picture and image is not None:       # rank 0 has it
        import matplotlib.pyplot as plt
        plt.imsave(picture, np.hstack([start, image]), cmap="gray", vmin=0, vmax=5)
    return start, image


if __name__ == "__main__":
    start, image = main(*map(int, sys.argv[1:3]), *sys.argv[3:4])
    if image is not None:
        before, after = (each[110:140, 110:140].std() for each in (start, image))
        print(f"speckle in the middle: {before:.3f}, then {after:.3f}")
