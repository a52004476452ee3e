// SPDX-License-Identifier: MIT
// Smooths a terrain and keeps its ridges: slopes steeper than some STEEP metres per cell hardly diffuse.
// After Perona and Malik 1990, doi:10.1109/34.56205.  It reads the cell and four of the neighbours that diffusion.py declares.
#define STEEP ((VALUE)8)
#define FLOW(d) ((d) / (1 + ((d) / STEEP) * ((d) / STEEP)))  // of a difference d to a neighbour

const VALUE h = HERE(u);
const VALUE north = NEAR(u, -1, 0) - h, south = NEAR(u, 1, 0) - h;
const VALUE west = NEAR(u, 0, -1) - h, east = NEAR(u, 0, 1) - h;
NEW(u) = h + (VALUE)0.125 * (FLOW(north) + FLOW(west) + FLOW(east) + FLOW(south));
