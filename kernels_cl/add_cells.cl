// SPDX-License-Identifier: MIT
// Adds an array to another one of as many cells, for sums of parts of a task.  VALUE stands for the type of their elements.
//
// total, value:  of the same extent, 1 to 4 axes.
// Launch:        over the cells of `total`.

__kernel void add_cells(__global VALUE *total, __global const VALUE *value, TILE(total), TILE(value), BOX)
{
    CELL;
    HERE(total) += HERE(value);
}
