// SPDX-License-Identifier: MIT
// The digest of the cells of a box.
//
// Macros to define: GROUP    work-items of a group; one, which takes vectors of cells, on CPUs.
// Before it stand digest_term.cl and, for groups of one, digest_cells.cl.
// cells:            the box lies at `first`, with `pitch_A` cells per step on axis A; axis 3 has no gaps.  Boxes of
//                   fewer axes have leading extents of 1.
// weights:          [4096], odd.
// found:            for each work-group the sum, and how many NaNs.
// row_first, row_A: the number of the box's first row; how many rows further a step on axis A is.
// column:           of the box's first cell, in its row.
// Work-items:       groups of one dimension; each takes segments of rows that follow each other.

__kernel void digest(__global const KGT_CELL *restrict cells, __global const uint *restrict weights,
                     __global long *restrict found,
                     const long first, const long pitch_0, const long pitch_1, const long pitch_2,
                     const long row_first, const long row_0, const long row_1, const long row_2, const long column,
                     const long extent_0, const long extent_1, const long extent_2, const long extent_3)
{
    const long segment_first = column / KGT_SEGMENT;
    const long n_segments = (column + extent_3 - 1) / KGT_SEGMENT - segment_first + 1;
    const long n_parts = extent_0 * extent_1 * extent_2 * n_segments;
    const long n_groups = get_num_groups(0), group = get_group_id(0);
    ulong value = 0;
    long n_nan = 0;
    for (long part = group * n_parts / n_groups; part < (group + 1) * n_parts / n_groups; ++part) {
        const long i012 = part / n_segments, segment = segment_first + part - i012 * n_segments;
        const long i01 = i012 / extent_2, i2 = i012 - i01 * extent_2;
        const long i0 = i01 / extent_1, i1 = i01 - i0 * extent_1;
        const long start = max(column, segment * KGT_SEGMENT);
        const long count = min(column + extent_3, (segment + 1) * KGT_SEGMENT) - start;
        __global const KGT_CELL *const here = cells + first + i0 * pitch_0 + i1 * pitch_1 + i2 * pitch_2 + start - column;
        const long row = row_first + i0 * row_0 + i1 * row_1 + i2 * row_2;
#if GROUP == 1
        value += kgt_of_cells(here, weights, row, start, count, &n_nan);
#else
        ulong sum = 0;
        #pragma unroll 4
        for (long at = get_local_id(0); at < count; at += GROUP)
            sum += kgt_term(here[at], weights[start - segment * KGT_SEGMENT + at], &n_nan);
        value += sum * kgt_factor(row, segment);
#endif
    }
    __local ulong values[GROUP];
    __local long nans[GROUP];
    const int item = get_local_id(0);
    values[item] = value;
    nans[item] = n_nan;
    for (int step = GROUP / 2; step; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < step) {
            values[item] += values[item + step];
            nans[item] += nans[item + step];
        }
    }
    if (item == 0) {
        found[2 * group] = values[0];
        found[2 * group + 1] = nans[0];
    }
}
