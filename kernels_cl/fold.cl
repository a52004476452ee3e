// SPDX-License-Identifier: MIT
// Folds: what a work-item holds of a sum or an extreme, and how it is handed on.
//
// Of a sum of floats these are four bins of 40 bits, side by side.  A bin is a double that starts
// at 1.5 * 2^52 of its unit and stays in that binade, so that adding a number to it rounds to whole
// units, and what was rounded off is exact: the bin below takes it.  What lies above all bins or
// below them, and the bins themselves in the end, go to digits of 32 bits in global memory, by
// whole numbers, whose order does not matter.  Every operation on the way is exact.

#define KGT_INLINE static inline __attribute__((always_inline))

#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif

KGT_INLINE void kgt_put(__global long *at, const long value)
{
    if (value) {
#ifdef cl_khr_int64_base_atomics
        atom_add((volatile __global long *)at, value);
#else
        volatile __global uint *word = (volatile __global uint *)at;    // little-endian
        const uint low = (uint)value, before = atomic_add(word, low);
        atomic_add(word + 1, (uint)(value >> 32) + (before + low < low));
#endif
    }
}

// whole numbers: in two parts, which do not overflow
typedef struct { long low, high; } kgt_whole;

KGT_INLINE void kgt_whole_add(kgt_whole *sum, const long value)
{
    sum->low += value & 0xffffffff;
    sum->high += value >> 32;
}

KGT_INLINE void kgt_whole_end(const kgt_whole *sum, __global long *digits)
{
    kgt_put(digits + 3, sum->low & 0xffffffff);
    kgt_put(digits + 4, sum->high + (sum->low >> 32));
}

// the largest key, and the least number of a cell that has it
typedef struct { long seen, key, number; } kgt_best;

KGT_INLINE void kgt_best_take(kgt_best *best, const kgt_best other)
{
    if (other.seen && (!best->seen || other.key > best->key
                       || (other.key == best->key && other.number < best->number)))
        *best = other;
}

KGT_INLINE void kgt_best_end(const kgt_best *best, __global long *slot)
{
    slot[0] = best->seen;
    slot[1] = best->key;
    slot[2] = best->number;
}

// whole numbers in the order of floats; a NaN has the largest one
KGT_INLINE long kgt_key_of_float(const float value)
{
    const int bits = as_int(value);
    return value != value ? LONG_MAX : bits < 0 ? bits ^ INT_MAX : bits;
}

KGT_INLINE long kgt_low_key_of_float(const float value)
{
    return value != value ? LONG_MAX : ~kgt_key_of_float(value);
}
