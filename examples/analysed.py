# SPDX-License-Identifier: MIT
"""Heat spreads on the devices while cores of the host look at what came out before.

    python examples/analysed.py
"""
import numpy as np

import controllers as ct


@ct.step
def heat(u):
    return dict(u=u + 0.2 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u))


def spectrum(u):
    """How much of the heat is in waves of each length along the first axis."""
    return abs(np.fft.rfft(u - u.mean(), axis=0)).sum(axis=1)


def main(u, n_steps=200, every=20):
    spectra = []
    on = dict(boundary="periodic", u=u)
    with ct.Computation(heat, u.shape, **on) as run, ct.tasks((), cores=1) as pool:
        for now in run.steps(n_steps, every=every):
            whole = now.u.get()               # on rank 0
            if whole is not None:
                spectra.append(pool.submit(spectrum, whole))    # beside the next steps
        return [future.result() for future in spectra]


if __name__ == "__main__":
    start = np.random.default_rng(1).random((300, 200), np.float32)
    for number, waves in enumerate(main(start), 1):
        print(20 * number, waves[:4].round(1))
