// SPDX-License-Identifier: MIT
// Sums the weighted bits of the cells of a box, modulo 2^64, and counts the NaNs; controllers/integrity/digest.py says
// what for.
//
// Macros to define: CELL     an unsigned integer type as wide as a cell (uchar to ulong): bits are taken, not numbers.
//                   INFINITE, NOT_A_NUMBER  of floats: the bits of infinity, and those that all NaNs count as.
//                   SEGMENT  cells of a row that have one factor.  KEY, KEY_OF_ROW, KEY_OF_SEGMENT  make the factors.
//                   GROUP    work-items of a group; one, which takes vectors of cells, on CPUs.
// cells:            the box lies at `first`, with `pitch_A` cells per step on axis A; axis 3 has no gaps.  Boxes of
//                   fewer axes have leading extents of 1.
// weights:          [SEGMENT], odd.
// found:            for each work-group the sum, and how many NaNs.
// row_first, row_A: the number of the box's first row; how many rows further a step on axis A is.
// column:           of the box's first cell, in its row.
// Work-items:       groups of one dimension; each takes segments of rows that follow each other.

// the factor of a segment: the finalizer of SplitMix64 (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195)
static inline ulong factor(const ulong row, const ulong segment)
{
    ulong mixed = KEY + row * KEY_OF_ROW + segment * KEY_OF_SEGMENT;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9UL;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBUL;
    return mixed ^ mixed >> 31 | 1;
}

// what a cell of these bits adds
static inline ulong term(CELL bits, const uint weight, long *n_nan)
{
#ifdef INFINITE
    if ((bits & (CELL)-1 >> 1) > INFINITE) {
        bits = NOT_A_NUMBER;
        ++*n_nan;
    }
#endif
    return ((ulong)bits ^ (ulong)bits >> 32) * weight;
}

#if GROUP == 1
#if SIZE == 8
#define LANES 8
typedef ulong8 lanes;
#else
#define LANES 16
typedef uint16 lanes;
#endif
#define JOINED(a, b) a##b
#define VECTOR_OF(type, n) JOINED(type, n)
typedef VECTOR_OF(CELL, LANES) vector;
typedef vector unaligned __attribute__((aligned(SIZE)));
typedef VECTOR_OF(uint, LANES) uints __attribute__((aligned(4)));

// How many of some cells, from the first on, were taken in vectors: none if one of them is a NaN.  Products are of
// numbers of 32 bits, of which there are instructions.
static inline long in_vectors(
    __global const CELL *cells, __global const uint *weights, const long count, ulong *sum)
{
    const ulong low = 0xffffffffUL;
    const long end = count & -(long)LANES;
    ulong8 some = 0, others = 0;    // of each long: its lower half, and its upper one
    lanes most = 0;
    for (long at = 0; at < end; at += LANES) {
        // into both caches, in time for each, from addresses that need not exist
        __builtin_prefetch((const void *)((ulong)(cells + at) + 12288), 0, 2);
        __builtin_prefetch((const void *)((ulong)(cells + at) + 3072), 0, 3);
        const lanes bits = __builtin_convertvector(*(__global const unaligned *)(cells + at), lanes);
#if SIZE == 8
        const ulong8 weight = __builtin_convertvector(*(__global const uints *)(weights + at), ulong8);
        const ulong8 high = bits >> 32;
        some += ((bits ^ high) & low) * weight;
        others += high * weight;
#else
        const ulong8 pairs = as_ulong8(bits), weight = as_ulong8(*(__global const uints *)(weights + at));
        some += (pairs & low) * (weight & low);
        others += (pairs >> 32) * (weight >> 32);
#endif
#ifdef INFINITE
        const lanes magnitude = bits & (CELL)-1 >> 1;
        most = most > magnitude ? most : magnitude;
#endif
    }
    const ulong8 all = some + (SIZE == 8 ? others << 32 : others);
    ulong found = 0;
    for (int lane = 0; lane < 8; ++lane)
        found += ((const ulong *)&all)[lane];
#ifdef INFINITE
    int n_nan = 0;
    for (int lane = 0; lane < LANES; ++lane)
        n_nan += ((const CELL *)&most)[lane] > INFINITE;
    if (n_nan)
        return 0;
#endif
    *sum += found;
    return end;
}
#endif

__kernel void digest(__global const CELL *restrict cells, __global const uint *restrict weights,
                     __global long *restrict found,
                     const long first, const long pitch_0, const long pitch_1, const long pitch_2,
                     const long row_first, const long row_0, const long row_1, const long row_2, const long column,
                     const long extent_0, const long extent_1, const long extent_2, const long extent_3)
{
    const long segment_first = column / SEGMENT;
    const long n_segments = (column + extent_3 - 1) / SEGMENT - segment_first + 1;
    const long n_parts = extent_0 * extent_1 * extent_2 * n_segments;
    const long n_groups = get_num_groups(0), group = get_group_id(0);
    ulong value = 0;
    long n_nan = 0;
    for (long part = group * n_parts / n_groups; part < (group + 1) * n_parts / n_groups; ++part) {
        const long i012 = part / n_segments, segment = segment_first + part - i012 * n_segments;
        const long i01 = i012 / extent_2, i2 = i012 - i01 * extent_2;
        const long i0 = i01 / extent_1, i1 = i01 - i0 * extent_1;
        const long start = max(column, segment * SEGMENT);
        const long count = min(column + extent_3, (segment + 1) * SEGMENT) - start;
        __global const CELL *const here = cells + first + i0 * pitch_0 + i1 * pitch_1 + i2 * pitch_2 + start - column;
        __global const uint *const weight = weights + start - segment * SEGMENT;
        ulong sum = 0;
        long at = get_local_id(0);
#if GROUP == 1
        at = in_vectors(here, weight, count, &sum);
#else
        #pragma unroll 4
#endif
        for (; at < count; at += GROUP)
            sum += term(here[at], weight[at], &n_nan);
        value += sum * factor(row_first + i0 * row_0 + i1 * row_1 + i2 * row_2, segment);
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
