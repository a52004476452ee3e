// SPDX-License-Identifier: MIT
// Copies a box of cells from one buffer to another: packs a border, unpacks a halo, or closes a periodic axis.
//
// Macro to define:  CELL  an unsigned integer type as wide as a cell (uchar to ulong): bits are copied, not numbers.
// source, target:   buffers of cells.  A box lies at `first`, with `pitch_A` cells per step on axis A; axis 3 is the
//                   fastest.  Boxes of fewer axes have leading extents of 1.  All scalars are counted in cells.
// Global size:      (extent_3, extent_2, extent_0 * extent_1); one item copies one cell.
__kernel void copy_box(__global const CELL *restrict source, __global CELL *restrict target,
                       const long source_first, const long source_pitch_0, const long source_pitch_1,
                       const long source_pitch_2, const long source_pitch_3,
                       const long target_first, const long target_pitch_0, const long target_pitch_1,
                       const long target_pitch_2, const long target_pitch_3,
                       const long extent_1)
{
    const long i3 = get_global_id(0);
    const long i2 = get_global_id(1);
    const long i1 = get_global_id(2) % extent_1;
    const long i0 = get_global_id(2) / extent_1;
    target[target_first + i0 * target_pitch_0 + i1 * target_pitch_1 + i2 * target_pitch_2 + i3 * target_pitch_3] =
        source[source_first + i0 * source_pitch_0 + i1 * source_pitch_1 + i2 * source_pitch_2 + i3 * source_pitch_3];
}
