// SPDX-License-Identifier: MIT
// Folds: what a work-item holds of a sum or an extreme, and how it is handed on.
//
// Of a sum of floats these are three doubles: a sum, what was rounded off when numbers were added to
// it, and what was rounded off of that.  What is left even then goes to digits of 32 bits in global
// memory, as the three do in the end: by whole numbers, whose order does not matter.  Every operation
// on the way is exact.
//
// `own` is a work-item's number in its group of `n`, a power of 2, which folds together.  What is in
// its `room` is of no use afterwards; before another fold all items wait.

#define KGT_INLINE static inline __attribute__((always_inline))
#define KGT_CALLED static __attribute__((noinline))
#define KGT_NEXT(left) ((left) > 16 ? (left) / 16 : 1)  // items that take what so many hold

// Items of NVIDIA's GPUs hand each other what they hold without local memory, 32 by 32.
#ifdef __NV_CL_C_VERSION
#define KGT_WARP 32

KGT_INLINE uint kgt_other_uint(const uint value, const int distance)
{
    uint other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;"
                 : "=r"(other) : "r"(value), "r"(distance));
    return other;
}

KGT_INLINE ulong kgt_other_ulong(const ulong value, const int distance)
{
    const uint2 halves = as_uint2(value);
    return as_ulong((uint2)(kgt_other_uint(halves.x, distance),
                            kgt_other_uint(halves.y, distance)));
}
#define KGT_HANDED(n) ((n) < KGT_WARP ? 1 : KGT_WARP)   // items of which one holds what all do
#else
#define KGT_HANDED(n) 1
#endif

// the largest of what the `n` items of a group hold, for the first one
#define KGT_MOST_OF_GROUP(type) \
KGT_INLINE type kgt_most_of_##type( \
    type most, __local type *words, const int own, const int n) \
{ \
    const int each = KGT_HANDED(n); \
    KGT_MOST_OF_WARP(type) \
    if (own % each == 0) \
        words[own / each] = most; \
    for (int left = n / each; left > 1; left = KGT_NEXT(left)) { \
        const int next = KGT_NEXT(left); \
        barrier(CLK_LOCAL_MEM_FENCE); \
        if (own < next) { \
            most = words[own]; \
            _Pragma("unroll 4") \
            for (int other = own + next; other < left; other += next) \
                most = max(most, words[other]); \
            words[own] = most; \
        } \
    } \
    return most; \
}
#ifdef KGT_WARP
#define KGT_MOST_OF_WARP(type) \
    for (int distance = each / 2; distance; distance /= 2) \
        most = max(most, kgt_other_##type(most, distance));
#else
#define KGT_MOST_OF_WARP(type)
#endif
KGT_MOST_OF_GROUP(uint)
KGT_MOST_OF_GROUP(ulong)

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
    for (int left = n; left > 1; left = KGT_NEXT(left)) {
        const int next = KGT_NEXT(left);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (own < next)
            for (int other = own + next; other < left; other += next) {
                room[own] += room[other];
                room[n + own] += room[n + other];
            }
    }
    if (own == 0) {
        const kgt_whole whole = {room[0], room[n]};
        kgt_whole_end(&whole, digits);
    }
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

// the same to a word that others have, too: its halves are 0, or a key of 32 bits from 0 on, and 1
KGT_INLINE void kgt_best_put(const kgt_best *best, __global long *word)
{
    volatile __global uint *halves = (volatile __global uint *)word;      // little-endian
    if (best->seen) {
        atomic_max(halves, (uint)min(best->key, (long)INT_MAX) ^ 1U << 31); // a NaN is the largest
        atomic_or(halves + 1, 1U);
    }
}

// that of a group to such a word: its items need no more than 32 bits of each other
KGT_INLINE void kgt_best_put_group(
    kgt_best *best, __global long *word, __local long *room, const int own, const int n)
{
    __local uint *keys = (__local uint *)room;
    const uint key = best->seen ? (uint)min(best->key, (long)INT_MAX) ^ 1U << 31 : 0;
    if (own == 0)
        keys[n] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (best->seen)
        keys[n] = 1;    // whoever writes it
    const uint most = kgt_most_of_uint(key, keys, own, n);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (own == 0) {
        const kgt_best all = {keys[n], (int)(most ^ 1U << 31), 0};
        kgt_best_put(&all, word);
    }
}

// the first item gets that of all
KGT_INLINE void kgt_best_group(kgt_best *best, __local long *room, const int own, const int n)
{
    room[own] = best->seen;
    room[n + own] = best->key;
    room[2 * n + own] = best->number;
    for (int left = n; left > 1; left = KGT_NEXT(left)) {
        const int next = KGT_NEXT(left);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (own < next) {
            for (int other = own + next; other < left; other += next)
                kgt_best_take(best, (kgt_best){room[other], room[n + other], room[2 * n + other]});
            room[own] = best->seen;
            room[n + own] = best->key;
            room[2 * n + own] = best->number;
        }
    }
}

// whole numbers in the order of floats; a NaN has the largest one
KGT_INLINE long kgt_key_of_float(const float value)
{
    const int bits = as_int(value);
    return value != value ? LONG_MAX : bits < 0 ? bits ^ INT_MAX : bits;
}

// the largest float, in the order of keys, and whether there is a NaN
#ifdef __NV_CL_C_VERSION    // whose maximum has 0 above -0, and what is no NaN above a NaN
typedef struct { float most; int nan; } kgt_most_float;
#define KGT_NO_float {NAN, 0}

KGT_INLINE void kgt_take_float(kgt_most_float *most, const float value, const int taken)
{
    const float other = taken ? value : NAN;
    asm("max.f32 %0, %1, %2;" : "=f"(most->most) : "f"(most->most), "f"(other));
    most->nan |= taken & (value != value);
}

KGT_INLINE int kgt_key_of_most(const kgt_most_float *most)
{
    const int bits = as_int(most->most);
    return most->most != most->most ? INT_MIN : bits ^ (bits >> 31 & INT_MAX);
}
#else
typedef struct { int key, nan; } kgt_most_float;
#define KGT_NO_float {INT_MIN, 0}

KGT_INLINE void kgt_take_float(kgt_most_float *most, const float value, const int taken)
{
    const int bits = as_int(value), key = bits ^ (bits >> 31 & INT_MAX);
    most->key = max(most->key, taken ? key : INT_MIN);
    most->nan |= taken & (value != value);
}

KGT_INLINE int kgt_key_of_most(const kgt_most_float *most)
{
    return most->key;
}
#endif

KGT_INLINE kgt_best kgt_best_of_float(const kgt_most_float most)
{
    const int key = kgt_key_of_most(&most);
    return (kgt_best){most.nan || key != INT_MIN, most.nan ? LONG_MAX : key, 0};
}

// it as a number that a word of digits has the largest of: 0 where there is no float
KGT_INLINE uint kgt_word_of_float(const kgt_most_float *most)
{
    return most->nan ? UINT_MAX : (uint)kgt_key_of_most(most) ^ 1U << 31;
}

KGT_INLINE void kgt_most_float_put(const kgt_most_float *most, __global long *word)
{
    atomic_max((volatile __global uint *)word, kgt_word_of_float(most));    // little-endian
}

// that of a group
KGT_INLINE void kgt_most_float_group(
    const kgt_most_float *most, __global long *word, __local long *room, const int own,
    const int n)
{
    const uint all = kgt_most_of_uint(kgt_word_of_float(most), (__local uint *)room, own, n);
    if (own == 0)
        atomic_max((volatile __global uint *)word, all);
}
