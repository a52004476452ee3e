// SPDX-License-Identifier: MIT
// Makes the cells of an array zero, before parts of a task are summed there.  VALUE stands for the type of its elements.
//
// total:   1 to 4 axes.
// Launch:  over its cells.

__kernel void zero_cells(__global VALUE *total, TILE(total), BOX)
{
    CELL;
    HERE(total) = 0;
}
