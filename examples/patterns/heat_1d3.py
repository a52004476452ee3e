# SPDX-License-Identifier: MIT
"""1D heat, 3 points: explicit Euler step with diffusion number 1/4."""
shape = ((-1, 1),)
pattern = [1, 2, 1]
factor = 4
