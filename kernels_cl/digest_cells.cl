// SPDX-License-Identifier: MIT
// The digest of a part of a row, by one work-item of a CPU, in vectors; digest_term.cl stands before it.
//
// Macros to define: KGT_AHEAD  cells are asked for in advance: they lie in memory, and rows follow each other.

#if KGT_SIZE == 8
#define KGT_LANES 8
typedef ulong8 kgt_lanes;
#ifdef KGT_INFINITE
typedef double8 kgt_numbers;
#endif
#else
#define KGT_LANES 16
typedef uint16 kgt_lanes;
#ifdef KGT_INFINITE
typedef float16 kgt_numbers;
#endif
#endif
#define KGT_JOINED(a, b) a##b
#define KGT_VECTOR_OF(type, n) KGT_JOINED(type, n)
typedef KGT_VECTOR_OF(KGT_CELL, KGT_LANES) kgt_bits __attribute__((aligned(KGT_SIZE)));
typedef KGT_VECTOR_OF(uint, KGT_LANES) kgt_weights __attribute__((aligned(4)));

// How many of some cells, from the first on, were taken in vectors: none if one of them is a NaN, and perhaps if their
// sum is none.  Products are of numbers of 32 bits, of which there are instructions.
static inline long kgt_in_vectors(
    __global const KGT_CELL *cells, __global const uint *weights, const long count, ulong *sum)
{
    const ulong low = 0xffffffffUL;
    const long end = count & -(long)KGT_LANES;
    ulong8 some = 0, others = 0;    // of each long: its lower half, and its upper one
#ifdef KGT_INFINITE
    kgt_numbers total = 0;      // a NaN in it stays
#endif
    for (long at = 0; at < end; at += KGT_LANES) {
#ifdef KGT_AHEAD
        // into both caches, in time for each, from addresses that need not exist
        __builtin_prefetch((const void *)((ulong)(cells + at) + 12288), 0, 2);
        __builtin_prefetch((const void *)((ulong)(cells + at) + 3072), 0, 3);
#endif
        const kgt_lanes bits = __builtin_convertvector(*(__global const kgt_bits *)(cells + at), kgt_lanes);
#if KGT_SIZE == 8
        const ulong8 weight = __builtin_convertvector(*(__global const kgt_weights *)(weights + at), ulong8);
        const ulong8 high = bits >> 32;
        some += ((bits ^ high) & low) * weight;
        others += high * weight;
#else
        const ulong8 pairs = as_ulong8(bits), weight = as_ulong8(*(__global const kgt_weights *)(weights + at));
        some += (pairs & low) * (weight & low);
        others += (pairs >> 32) * (weight >> 32);
#endif
#ifdef KGT_INFINITE
        total += *(const kgt_numbers *)&bits;
#endif
    }
    const ulong8 all = some + (KGT_SIZE == 8 ? others << 32 : others);
    ulong found = 0;
    for (int lane = 0; lane < 8; ++lane)
        found += ((const ulong *)&all)[lane];
#ifdef KGT_INFINITE
    int n_nan = 0;
    for (int lane = 0; lane < KGT_LANES; ++lane)
        n_nan += total[lane] != total[lane];
    if (n_nan)
        return 0;
#endif
    *sum += found;
    return end;
}

// What these cells of a row, which begin in a column, add to a digest.
static inline ulong kgt_of_cells(__global const KGT_CELL *cells, __global const uint *const weights, const ulong row,
                                 const long column, const long count, long *n_nan)
{
    ulong value = 0;
    for (long done = 0; done < count;) {
        const long segment = (column + done) / KGT_SEGMENT, first = column + done - segment * KGT_SEGMENT;
        const long some = min(count - done, KGT_SEGMENT - first);
        ulong sum = 0;
        for (long at = kgt_in_vectors(cells + done, weights + first, some, &sum); at < some; ++at)
            sum += kgt_term(cells[done + at], weights[first + at], n_nan);
        value += sum * kgt_factor(row, segment);
        done += some;
    }
    return value;
}
