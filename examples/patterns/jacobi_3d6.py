# SPDX-License-Identifier: MIT
"""3D Laplace equation, Jacobi iteration: the mean of the 6 nearest neighbours."""
shape = ((-1, 1), (-1, 1), (-1, 1))
pattern = [
    [
        [0, 0, 0],
        [0, 1, 0],
        [0, 0, 0],
    ],
    [
        [0, 1, 0],
        [1, 0, 1],
        [0, 1, 0],
    ],
    [
        [0, 0, 0],
        [0, 1, 0],
        [0, 0, 0],
    ],
]
factor = 6
