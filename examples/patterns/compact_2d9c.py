# SPDX-License-Identifier: MIT
"""2D Laplace equation, 9 points, compact: the fourth-order Mehrstellen scheme as a relaxation."""
shape = ((-1, 1), (-1, 1))
pattern = [
    [1, 4, 1],
    [4, 0, 4],
    [1, 4, 1],
]
factor = 20
