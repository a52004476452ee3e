# SPDX-License-Identifier: MIT
"""1D, radius 2: the mean of the 4 nearest neighbours, the nearer ones counted four times."""
shape = ((-2, 2),)
pattern = [1, 4, 0, 4, 1]
factor = 10
