"""Diffusion of a terrain: soil creeps downhill, and each cell moves towards its neighbours' mean.

One step adds 1/100 of the Laplacian, in its isotropic 9-point form; the weights are positive and
their sum is the factor, so heights never leave their range, and any number of steps is stable.
N steps smooth over about sqrt(N / 50) cells.  The outermost cells keep their height.

elevation.npy (float32, 344 x 403 cells of 3 arc seconds, metres) shows the Jacksboro fault in
Tennessee.  tools/make_terrain.py made it from the sample data of matplotlib, and says more.
"""
shape = ((-1, 1), (-1, 1))
pattern = [[1, 4, 1],
           [4, 580, 4],
           [1, 4, 1]]
factor = 600
