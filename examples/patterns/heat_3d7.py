# SPDX-License-Identifier: MIT
"""3D heat, 7 points: explicit Euler step with diffusion number 1/8."""
shape = ((-1, 1), (-1, 1), (-1, 1))
pattern = [
    [
        [0, 0, 0],
        [0, 1, 0],
        [0, 0, 0],
    ],
    [
        [0, 1, 0],
        [1, 2, 1],
        [0, 1, 0],
    ],
    [
        [0, 0, 0],
        [0, 1, 0],
        [0, 0, 0],
    ],
]
factor = 8
