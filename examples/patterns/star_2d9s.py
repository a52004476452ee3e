# SPDX-License-Identifier: MIT
"""2D Laplace equation, star of radius 2: the fourth-order scheme as a relaxation."""
shape = ((-2, 2), (-2, 2))
pattern = [
    [0, 0, -1, 0, 0],
    [0, 0, 16, 0, 0],
    [-1, 16, 0, 16, -1],
    [0, 0, 16, 0, 0],
    [0, 0, -1, 0, 0],
]
factor = 60
