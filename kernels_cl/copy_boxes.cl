// SPDX-License-Identifier: MIT
// Copies boxes of cells between up to eight pairs of buffers, or within some, in one launch: what periodic axes bring to
// all sides of all fields.
//
// Macro to define:  CELL  an unsigned integer type as wide as a cell (uchar to ulong): bits are copied, not numbers.
// source, target:   buffers of cells; no cell that is written is read, or written twice.  Those that are not needed may
//                   be any.
// boxes:            for each pair where its part begins, which is: how many cells it has; then for each box 18 numbers,
//                   counted in cells: how many cells it has; where it lies in the source, the first cell and then the
//                   cells per step on four axes, the last one being the fastest; the same in the target; its extent,
//                   leading ones of 1 where it has fewer axes; the cells of a row after which it goes on elsewhere, and
//                   the first cell there in the source and in the target: two boxes whose rows are taken together.
// Work-items:       one cell of a pair each, of one box after another, the pair by the second axis; those beyond the last
//                   box have none.  Fewer than 2^32 of a pair, as devices divide so many faster.

__kernel void copy_boxes(__global const CELL *source_0, __global CELL *target_0,
                         __global const CELL *source_1, __global CELL *target_1,
                         __global const CELL *source_2, __global CELL *target_2,
                         __global const CELL *source_3, __global CELL *target_3,
                         __global const CELL *source_4, __global CELL *target_4,
                         __global const CELL *source_5, __global CELL *target_5,
                         __global const CELL *source_6, __global CELL *target_6,
                         __global const CELL *source_7, __global CELL *target_7,
                         __global const long *boxes)
{
    __global const CELL *source = source_0;
    __global CELL *target = target_0;
    switch (get_global_id(1)) {
    case 1: source = source_1; target = target_1; break;
    case 2: source = source_2; target = target_2; break;
    case 3: source = source_3; target = target_3; break;
    case 4: source = source_4; target = target_4; break;
    case 5: source = source_5; target = target_5; break;
    case 6: source = source_6; target = target_6; break;
    case 7: source = source_7; target = target_7; break;
    }
    __global const long *box = boxes + boxes[get_global_id(1)];
    uint left = get_global_id(0);
    if (left >= *box++)
        return;
    while (left >= box[0]) {
        left -= (uint)box[0];
        box += 18;
    }
    const uint length = box[14];
    const uint turn = box[15];
    uint rows = left / length;
    const uint along = left - rows * length;    // of / and % clang makes what Oclgrind does not know
    long from = along < turn ? box[1] + along * box[5] : box[16] + (along - turn) * box[5];
    long to = along < turn ? box[6] + along * box[10] : box[17] + (along - turn) * box[10];
    for (int axis = 2; axis > 0; --axis) {
        const uint extent = box[11 + axis];
        const uint above = rows / extent;
        const uint i = rows - above * extent;
        rows = above;
        from += i * box[2 + axis];
        to += i * box[7 + axis];
    }
    target[to + rows * box[7]] = source[from + rows * box[2]];
}
