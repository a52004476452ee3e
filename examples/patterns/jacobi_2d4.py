# SPDX-License-Identifier: MIT
"""2D Laplace equation, Jacobi iteration: the mean of the 4 nearest neighbours."""
shape = ((-1, 1), (-1, 1))
pattern = [
    [0, 1, 0],
    [1, 0, 1],
    [0, 1, 0],
]
factor = 4
