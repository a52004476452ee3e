# SPDX-License-Identifier: MIT
"""2D advection towards higher indices, upwind, Courant numbers 0.3 and 0.2: reads one side."""
shape = ((-1, 0), (-1, 0))
pattern = [
    [0, 0.3],
    [0.2, 0.5],
]
factor = 1
