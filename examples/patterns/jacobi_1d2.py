# SPDX-License-Identifier: MIT
"""1D Laplace equation, Jacobi iteration: the mean of the 2 nearest neighbours."""
shape = ((-1, 1),)
pattern = [1, 0, 1]
factor = 2
