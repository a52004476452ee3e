// SPDX-License-Identifier: MIT
// Adds rows of one array to rows of another one, for sums of parts of a task: total[at[i], j] += value[i, j].  VALUE stands
// for the type of their elements.
//
// total:  1 or 2 axes.
// value:  as many axes, and a row for each row that is added to.
// at:     the numbers of these rows, none twice; with two axes where the others have two, one number in each of its rows.
// Launch: over the cells of `value`.

#if AXES == 1
#define ADDED_TO AT(total, AT(at, INDEX(0)))
#else
#define ADDED_TO AT(total, AT(at, INDEX(0), 0), INDEX(1))
#endif

__kernel void add_rows(__global VALUE *total, __global const VALUE *value, __global const long *at,
                       TILE(total), TILE(value), TILE(at), BOX)
{
    CELL;
    ADDED_TO += HERE(value);
}
