# SPDX-License-Identifier: MIT
"""2D, 5 points, asymmetric: the mean of cells behind, which drifts towards higher indices."""
shape = ((-2, 0), (-2, 0))
pattern = [
    [0, 0, 1],
    [0, 0.5, 2],
    [1, 2, 0],
]
factor = 6.5
