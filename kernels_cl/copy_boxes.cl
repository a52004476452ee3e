// SPDX-License-Identifier: MIT
// Copies boxes of cells between two buffers, or within one, in one launch: what a periodic axis brings to all sides.
//
// Macro to define:  CELL  an unsigned integer type as wide as a cell (uchar to ulong): bits are copied, not numbers.
// source, target:   buffers of cells; no cell that is written is read, or written twice.
// boxes:            15 numbers each, counted in cells: how many cells it has; where it lies in the source, the first
//                   cell and then the cells per step on four axes, the last one being the fastest; the same in the
//                   target; its extent, leading ones of 1 where it has fewer axes.
// Work-items:       one cell each, of one box after another; those beyond the last box have none.

__kernel void copy_boxes(__global const CELL *source, __global CELL *target, __global const long *boxes,
                         const long n_cells)
{
    long left = get_global_id(0);
    if (left >= n_cells)
        return;
    __global const long *box = boxes;
    while (left >= box[0]) {
        left -= box[0];
        box += 15;
    }
    long from = box[1];
    long to = box[6];
    for (int axis = 3; axis >= 0; --axis) {
        const long rows = left / box[11 + axis];
        const long i = left - rows * box[11 + axis];    // of / and % clang makes what Oclgrind does not know
        left = rows;
        from += i * box[2 + axis];
        to += i * box[7 + axis];
    }
    target[to] = source[from];
}
