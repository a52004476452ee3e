// SPDX-License-Identifier: MIT
// Folds: what a work-item holds of a sum or an extreme, and how it is handed on.
//
// Of a sum of floats these are three doubles: a sum, what was rounded off when numbers were added to
// it, and what was rounded off of that.  What is left even then goes to digits of 32 bits in global
// memory, as the three do in the end: by whole numbers, whose order does not matter.  Every operation
// on the way is exact.
//
// `own` is a work-item's number in its group of `n`, a power of 2, which folds together.

#define KGT_INLINE static inline __attribute__((always_inline))
#define KGT_CALLED static __attribute__((noinline))

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

KGT_INLINE void kgt_whole_group(
    kgt_whole *sum, __global long *digits, __local long *room, const int own, const int n)
{
    room[own] = sum->low;
    room[n + own] = sum->high;
    for (int step = n / 2; step; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (own < step) {
            room[own] += room[own + step];
            room[n + own] += room[n + own + step];
        }
    }
    if (own == 0) {
        const kgt_whole whole = {room[0], room[n]};
        kgt_whole_end(&whole, digits);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
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

KGT_INLINE void kgt_best_group(
    kgt_best *best, __global long *slot, __local long *room, const int own, const int n)
{
    for (int step = n / 2; step; step /= 2) {
        if (own >= step && own < 2 * step) {
            room[own - step] = best->seen;
            room[n + own - step] = best->key;
            room[2 * n + own - step] = best->number;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (own < step)
            kgt_best_take(best, (kgt_best){room[own], room[n + own], room[2 * n + own]});
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (own == 0)
        kgt_best_end(best, slot);
}

// whole numbers in the order of floats; a NaN has the largest one
KGT_INLINE long kgt_key_of_float(const float value)
{
    const int bits = as_int(value);
    return value != value ? LONG_MAX : bits < 0 ? bits ^ INT_MAX : bits;
}

// the largest float, in the order of keys, and whether there is a NaN
typedef struct { int key, nan; } kgt_most_float;
#define KGT_NO_float {INT_MIN, 0}

KGT_INLINE void kgt_take_float(kgt_most_float *most, const float value, const int taken)
{
    const int bits = as_int(value), key = bits ^ (bits >> 31 & INT_MAX);
    most->key = max(most->key, taken ? key : INT_MIN);
    most->nan |= taken & (value != value);
}

KGT_INLINE kgt_best kgt_best_of_float(const kgt_most_float most)
{
    return (kgt_best){most.nan || most.key != INT_MIN, most.nan ? LONG_MAX : most.key, 0};
}
