# SPDX-License-Identifier: MIT
"""Waves on a mesh, in the shape of SPECFEM3D's time step: 25 sums between two replicated parts.

    python examples/wave_mesh.py [DEVICE ...]
"""
import sys

import numpy as np

import controllers as ct

STIFF = np.array([[4, -1, -2, -1], [-1, 4, -1, -2], [-2, -1, 4, -1], [-1, -2, -1, 4]]) / 6
foresee = ct.Task("foresee", ("u", "a", "v", "dt"), roles={"u": "updating", "a": "updating"})
forces = ct.Task("forces", ("out", "u", "node", "stiff"), roles={"out": "writing"})
correct = ct.Task("correct", ("v", "a", "mass", "dt"), roles={"v": "updating"})
def kernel(task, text):
    given = ", ".join(f"__global {'' if one in task.roles else 'const '}double *{one}, TILE({one})"
                      for one in task.parameters[:-1])
    head = f"__kernel void {task.name}({given}, BOX, const double dt)"
    task.variant(ct.Kernel.of(task.name, f"{head} {{ CELL; {text} }}"))
kernel(foresee, "HERE(u) += dt * HERE(v); HERE(a) = 0;")
kernel(correct, "HERE(v) += dt * (HERE(a) / HERE(mass));")
forces.variant(ct.Kernel.of("forces", """
    __kernel void forces(__global double *out, __global const double *u, __global const long *node,
        __global const double *stiff, TILE(out), TILE(u), TILE(node), TILE(stiff), BOX)
    {   CELL; double sum = 0;
        for (long at = INDEX(0); at < 16 * EXTENT(0); at += EXTENT(0))
            sum -= AT(stiff, at) * AT(u, AT(node, at));
        HERE(out) = sum;    }""", roles={"out": "writing"}))

@foresee.variant
def foresee_on_host(u, a, v, dt):
    u += dt * v
    a[...] = 0

@forces.variant         # of a patch on its nodes, by the corners of up to four squares around each
def forces_on_host(out, u, node, stiff):
    out[...] = 0
    for corner, factor in zip(node.reshape(16, -1), stiff.reshape(16, -1)):
        out -= factor * u[corner]

@correct.variant
def correct_on_host(v, a, mass, dt):
    v += dt * (a / mass)

def mesh(n):
    """n x n squares, of nodes numbered at random: their mass; by patch nodes, corners, factors."""
    number = np.random.default_rng(1).permutation((n + 1) ** 2).reshape(n + 1, n + 1)
    squares = np.stack([number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]], -1)
    found = []
    for part in (p for row in np.array_split(squares, 5) for p in np.array_split(row, 5, axis=1)):
        nodes, local = np.unique(part, return_inverse=True)
        corner, factor = np.zeros((4, 4, len(nodes)), int), np.zeros((4, 4, len(nodes)))
        for i, at in enumerate(local.reshape(-1, 4).T):
            corner[i][:, at], factor[i][:, at] = part.reshape(-1, 4).T, STIFF[i][:, None]
        found.append((nodes, corner.ravel(), factor.ravel()))
    return np.bincount(squares.ravel()) / 4, *map(list, zip(*found))

def main(pool, u, mass, at, corners, factors, steps=20, dt=0.3, **series):
    middle, v, a = ct.series(forces, at, **series), np.zeros_like(u), np.zeros_like(u)
    for _ in range(steps):
        pool.submit(ct.replicated(foresee), u, a, v, dt)
        pool.submit(middle, a, u, corners, factors)         # added to a in their order
        pool.submit(ct.replicated(correct), v, a, mass, dt)

if __name__ == "__main__":
    parts = mesh(200)
    with ct.tasks(sys.argv[1:] or None) as pool:
        main(pool, np.random.default_rng(2).random(len(parts[0])), *parts)
    print(pool.report())
