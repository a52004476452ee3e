// SPDX-License-Identifier: MIT
// Digests of parts of rows: the sum of the weighted bits of some cells, modulo 2^64, and how many of them are NaN;
// controllers/integrity/digest.py says what for.  It stands before the kernels that take digests.
//
// Macros to define: KGT_CELL   an unsigned integer type as wide as a cell (uchar to ulong): bits are taken, not numbers.
//                   KGT_SIZE   its bytes.
//                   KGT_INFINITE, KGT_NAN  of floats: the bits of infinity, and those that all NaNs count as.

#define KGT_SEGMENT 4096    // cells of a row that have one factor

// of a segment: the finalizer of SplitMix64 (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195)
static inline ulong kgt_factor(const ulong row, const ulong segment)
{
    ulong mixed = 0x9E3779B97F4A7C15UL + row * 0xBF58476D1CE4E5B9UL + segment * 0x94D049BB133111EBUL;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9UL;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBUL;
    return mixed ^ mixed >> 31 | 1;
}

// what a cell of these bits adds
static inline ulong kgt_term(KGT_CELL bits, const uint weight, long *n_nan)
{
#ifdef KGT_INFINITE
    if ((bits & (KGT_CELL)-1 >> 1) > KGT_INFINITE) {
        bits = KGT_NAN;
        ++*n_nan;
    }
#endif
    return ((ulong)bits ^ (ulong)bits >> 32) * weight;
}
