# SPDX-License-Identifier: MIT
"""A compressible gas on an unstructured mesh, as Rodinia's `cfd`: what neighbours hold is gathered.

    mpiexec -n 2 python examples/euler_mesh.py [ROWS] [STEPS]

Finite volumes, central fluxes, damped by the fastest wave of both sides; local steps, three stages.
"""
import sys

import numpy as np

import controllers as ct

GAMMA, MACH = 1.4, 1.2
FAR = np.array([1.4, 1.4 * MACH, 0, 1 / (GAMMA - 1) + 0.7 * MACH**2])   # density, momentum, energy


def carried(q, nx, ny):
    """What flows through a face, and how fast waves do."""
    u, v = q[1] / q[0], q[2] / q[0]
    p, through = (GAMMA - 1) * (q[3] - 0.5 * q[0] * (u * u + v * v)), u * nx + v * ny
    flux = [q[0] * through, q[1] * through + p * nx, q[2] * through + p * ny, (q[3] + p) * through]
    return flux, abs(through) + np.sqrt(GAMMA * p / q[0]) * np.sqrt(nx * nx + ny * ny)


@ct.each
def advanced(
    start: ct.Row, own: ct.Row, sides: ct.Row, normals: ct.Row, every: ct.All, *, part: float = 1
) -> ct.Row:
    total, fastest = [0.0] * 4, 0.0
    for face in range(4):
        normal = normals[2 * face], normals[2 * face + 1]
        other = np.where(sides[face] < 0, FAR.astype("float32"), every[np.maximum(sides[face], 0)])
        (here, speed), (there, its) = carried(own, *normal), carried(other, *normal)
        most = np.maximum(speed, its)
        total = [t + 0.5 * (h + o - most * (other[k] - own[k]))
                 for k, (t, h, o) in enumerate(zip(total, here, there))]
        fastest = fastest + most
    return np.stack([start[k] - part * total[k] / fastest for k in range(4)])


def mesh(n):
    """Quadrangles of a bent n x n grid, numbered at random: neighbours or -1, and normals."""
    number = np.random.default_rng(1).permutation(n * n).reshape(n, n)
    y, x = np.meshgrid(*[np.linspace(0, 1, n + 1)] * 2, indexing="ij")
    corners, near = [x + 0.05 * np.sin(6 * y), y + 0.05 * np.sin(5 * x)], np.pad(number + 1, 1) - 1
    (vx, vy), (hx, hy) = np.diff(corners, axis=1), np.diff(corners, axis=2)
    east, north = np.stack([vy, -vx]), np.stack([-hy, hx])
    faces = ((near[1:-1, 2:], east[:, :, 1:]), (near[1:-1, :-2], -east[:, :, :-1]),
             (near[2:, 1:-1], north[:, 1:]), (near[:-2, 1:-1], -north[:, :-1]))
    order = np.argsort(number, axis=None)
    sides = np.stack([side.ravel()[order] for side, _ in faces], axis=1)
    return sides, np.concatenate([one.reshape(2, -1)[:, order] for _, one in faces]).T


def main(n=100, n_steps=100, blob=0.5, **options):
    start = np.where(np.random.default_rng(2).random(n * n)[:, None] < 0.5, 1 + blob, 1) * FAR
    with ct.workspace(dtype="float32", **options) as on:
        q, sides, normals = map(on.array, (start, *mesh(n)))
        for _ in range(n_steps):
            stage = q
            for part in (1 / 3, 1 / 2, 1):
                stage = advanced(q, stage, sides, normals, stage, part=part)
            q = stage
        return np.asarray(q)


if __name__ == "__main__":
    density = main(*map(int, sys.argv[1:]))[:, 0]
    print(f"{len(density)} elements; density from {density.min():.4f} to {density.max():.4f}")
