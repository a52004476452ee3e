# SPDX-License-Identifier: MIT
"""3D, 27 points: binomial smoothing (1 2 1) on every axis."""
shape = ((-1, 1), (-1, 1), (-1, 1))
pattern = [
    [
        [1, 2, 1],
        [2, 4, 2],
        [1, 2, 1],
    ],
    [
        [2, 4, 2],
        [4, 8, 4],
        [2, 4, 2],
    ],
    [
        [1, 2, 1],
        [2, 4, 2],
        [1, 2, 1],
    ],
]
factor = 64
