// SPDX-License-Identifier: MIT
// Copies a box of cells from one buffer to another: packs a border, unpacks a halo, or closes a periodic axis.
//
// Macro to define:  CELL  an unsigned integer type as wide as a cell (uchar to ulong): bits are copied, not numbers.
// source, target:   buffers of cells.  A box lies at `first`, with `pitch_A` cells per step on axis A; axis 3 is the
//                   fastest.  Boxes of fewer axes have leading extents of 1.  All scalars are counted in cells.
// Work-items:       one cell each; OpenCL dimensions 0, 1, 2 are axis 3, axis 2, and axes 0 and 1 together.  The number
//                   of work-groups is rounded up; the last group of a dimension starts early, so that it ends with
//                   the box: some cells are copied twice.

#define START(dimension, extent) \
    min((long)get_group_id(dimension) * (long)get_local_size(dimension), (extent) - (long)get_local_size(dimension))

__kernel void copy_box(__global const CELL *restrict source, __global CELL *restrict target,
                       const long source_first, const long source_pitch_0, const long source_pitch_1,
                       const long source_pitch_2, const long source_pitch_3,
                       const long target_first, const long target_pitch_0, const long target_pitch_1,
                       const long target_pitch_2, const long target_pitch_3,
                       const long extent_0, const long extent_1, const long extent_2, const long extent_3)
{
    const long i3 = START(0, extent_3) + get_local_id(0);
    const long i2 = START(1, extent_2) + get_local_id(1);
    const long i01 = START(2, extent_0 * extent_1) + get_local_id(2);
    const long i0 = i01 / extent_1;
    const long i1 = i01 - i0 * extent_1;
    target[target_first + i0 * target_pitch_0 + i1 * target_pitch_1 + i2 * target_pitch_2 + i3 * target_pitch_3] =
        source[source_first + i0 * source_pitch_0 + i1 * source_pitch_1 + i2 * source_pitch_2 + i3 * source_pitch_3];
}
