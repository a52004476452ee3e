#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// A sum is all of them, and what is in the digits: `second` has what was rounded off of `first`,
// and `third` what was rounded off of that.  It is empty where they are 0.
typedef struct { double first, second, third; } kgt_sum;

#define KGT_WIDEST 16               // numbers at once

// What is rounded off when a number is added (Knuth, The Art of Computer Programming 2, 4.2.2): it
// is exact, whatever the sizes, and not finite where the sum or the number is not.
KGT_INLINE double kgt_two_sum(double *sum, const double value)
{
    const double before = *sum, after = before + value, added = after - before;
    *sum = after;
    return (before - (after - added)) + (value - added);
}

// its absolute value: kernels may call another function fabs
KGT_INLINE double kgt_size(const double value)
{
    return as_double(as_long(value) & LONG_MAX);
}

// a finite number, as digits from 2^lowest on, which lie behind three counts; 0 costs nothing
KGT_CALLED void kgt_carry(__global long *digits, const int lowest, const double value)
{
    const ulong bits = as_ulong(value);
    const int power = (int)(bits >> 52) & 0x7ff;
    ulong whole = bits & 0xfffffffffffffUL;
    if (power)
        whole |= 1UL << 52;
    if (!whole)
        return;
    int at = (power ? power : 1) - 1075 - lowest;
    if (at < 0) {   // these bits are 0
        whole = at > -64 ? whole >> -at : 0;
        at = 0;
    }
    const ulong low = (whole & 0xffffffff) << (at & 31), high = (whole >> 32) << (at & 31);
    const long sign = bits >> 63 ? -1 : 1;
    digits += 3 + (at >> 5);
    kgt_put(digits, sign * (long)(low & 0xffffffff));
    kgt_put(digits + 1, sign * (long)((low >> 32) + (high & 0xffffffff)));
    kgt_put(digits + 2, sign * (long)(high >> 32));
}

// any number: it may be not finite, or too large, or something may be left of it for the digits
KGT_CALLED void kgt_sum_any(
    kgt_sum *sum, __global long *digits, const int lowest, const double value)
{
    kgt_sum after = *sum;
    double rest = kgt_two_sum(&after.first, value);
    rest = kgt_two_sum(&after.second, rest);
    rest = kgt_two_sum(&after.third, rest);
    if (kgt_size(rest) <= DBL_MAX) {
        *sum = after;
        kgt_carry(digits, lowest, rest);
    }
    else if (kgt_size(value) <= DBL_MAX)
        kgt_carry(digits, lowest, value);
    else
        kgt_put(digits + (value != value ? 0 : value > 0 ? 1 : 2), 1);
}

// `n` numbers, which are lost
KGT_INLINE void kgt_sum_add(
    kgt_sum *sum, __global long *digits, const int lowest, double *value, const int n)
{
    double first = sum->first, second = sum->second, rest[KGT_WIDEST];
    int left = 0;
    #pragma unroll
    for (int i = 0; i < n; ++i) {
        rest[i] = kgt_two_sum(&first, value[i]);
        left |= rest[i] != 0;
    }
    if (left) {
        left = 0;
        #pragma unroll
        for (int i = 0; i < n; ++i)
            left |= kgt_two_sum(&second, rest[i]) != 0;
    }
    if (!left) {
        sum->first = first;
        sum->second = second;
        return;
    }
    kgt_sum other = *sum;   // which has an address, so that the sum itself may lie in registers
    #pragma unroll
    for (int i = 0; i < n; ++i)
        kgt_sum_any(&other, digits, lowest, value[i]);
    *sum = other;
}

// all of it to the digits
KGT_CALLED void kgt_sum_end(const kgt_sum *sum, __global long *digits, const int lowest)
{
    kgt_carry(digits, lowest, sum->first);
    kgt_carry(digits, lowest, sum->second);
    kgt_carry(digits, lowest, sum->third);
}

KGT_INLINE void kgt_sum_group(
    kgt_sum *sum, __global long *digits, const int lowest, __local long *room, const int own,
    const int n)
{
    __local double *held = (__local double *)room;
    kgt_sum all = *sum;     // which has an address
    for (int step = n / 2; step; step /= 2) {
        if (own >= step && own < 2 * step) {
            held[own - step] = all.first;
            held[n + own - step] = all.second;
            held[2 * n + own - step] = all.third;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (own < step) {
            double values[3] = {held[own], held[n + own], held[2 * n + own]};
            kgt_sum_add(&all, digits, lowest, values, 3);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (own == 0)
        kgt_sum_end(&all, digits, lowest);
}

KGT_INLINE long kgt_key_of_double(const double value)
{
    const long bits = as_long(value);
    return value != value ? LONG_MAX : bits < 0 ? bits ^ LONG_MAX : bits;
}

// the largest double, in the order of keys, and whether there is a NaN
typedef struct { long key; int nan; } kgt_most_double;
#define KGT_NO_double {LONG_MIN, 0}

KGT_INLINE void kgt_take_double(kgt_most_double *most, const double value, const int taken)
{
    const long bits = as_long(value), key = bits ^ (bits >> 63 & LONG_MAX);
    most->key = max(most->key, taken ? key : LONG_MIN);
    most->nan |= taken & (value != value);
}

KGT_INLINE kgt_best kgt_best_of_double(const kgt_most_double most)
{
    return (kgt_best){most.nan || most.key != LONG_MIN, most.nan ? LONG_MAX : most.key, 0};
}
