# SPDX-License-Identifier: MIT
"""Reverse Edge: edges of a photograph are detected, and Jacobi iterations lead back from them.

    python examples/reverse_edge.py [ITERATIONS] [PICTURE.png]
    mpiexec -n 4 python examples/reverse_edge.py

The photograph is that of Grace Hopper, by the US Navy and in the public domain, which comes with
matplotlib; its edges are its Laplacian on a torus.  They and the mean brightness say all of it: an
iteration leaves of each wave by which a picture differs its (cos ky + cos kx) / 2.
"""
import sys

import numpy as np

import controllers as ct


def around(f):
    return f[-1, 0] + f[0, -1] + f[0, 1] + f[1, 0]


detect = ct.step(lambda image, edges: dict(edges=around(image) - 4 * image))
reverse = ct.step(lambda image, edges: dict(image=(around(image) - edges) / 4))


def photograph(y, x):                   # how bright it is, at so many points
    import matplotlib.pyplot as plt
    from matplotlib import cbook
    pixels = plt.imread(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
    rows, columns = (np.arange(n) * size // n for n, size in zip((y, x), pixels.shape))
    return pixels[np.ix_(rows, columns)] @ np.float32([0.299, 0.587, 0.114]) / 255


def computation(y=600, x=512, **options):
    image, grid = photograph(y, x), ct.Grid(y=y, x=x, boundary="periodic")
    options = {"dtype": "float32", **options}
    with ct.Computation(detect, grid, image=image, edges=0, **options) as run:
        run.run(1)
        edges = np.asarray(run.edges)
    return ct.Computation(reverse, grid, image=image.mean(), edges=edges, **options)


def expected(image, n):
    ky, kx = (2 * np.pi * np.fft.fftfreq(size) for size in image.shape)
    left = ((np.cos(ky[:, None]) + np.cos(kx)) / 2) ** n * np.fft.fft2(image.mean() - image)
    return image + np.fft.ifft2(left).real


def main(n=3000, picture=None):
    with computation() as run:
        run.run(n)
        image, edges = run.image.get(), run.edges.get()
    if image is None:                   # rank 0 has it
        return
    photo = photograph(*image.shape)
    print(f"the photograph is {np.std(image - photo) / np.std(photo):.0%} off")
    assert abs(image - expected(photo, n)).max() < 1e-4, "what the waves say"
    if picture:
        import matplotlib.pyplot as plt
        shown = [(one - one.min()) / np.ptp(one) for one in (photo, -abs(edges), image)]
        plt.imsave(picture, np.hstack(shown), cmap="gray")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
