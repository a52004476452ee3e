#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// limit: the largest size of a number that the bins take.  unit: where the first of them starts.
typedef struct { double limit, unit, bin_0, bin_1, bin_2, bin_3; int count; } kgt_sum;

#define KGT_BIN 0x1p-40             // of a bin, the unit of the one below it
#define KGT_HUGE 0x1p900
#define KGT_MOST 4000               // numbers after which bins are emptied
#define KGT_WIDEST 16               // numbers at once

// its absolute value: kernels may call another function fabs
KGT_INLINE double kgt_size(const double value)
{
    return as_double(as_long(value) & LONG_MAX);
}

// a finite number, as digits from 2^lowest on, which lie behind three counts
KGT_CALLED void kgt_carry(__global long *digits, const int lowest, const double value)
{
    const ulong bits = as_ulong(value);
    const int power = (int)(bits >> 52) & 0x7ff;
    ulong whole = bits & 0xfffffffffffffUL;
    if (power)
        whole |= 1UL << 52;
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

// all bins to the digits
KGT_INLINE void kgt_sum_end(kgt_sum *sum, __global long *digits, const int lowest)
{
    const double unit = sum->unit, second = unit * KGT_BIN, third = second * KGT_BIN;
    const double fourth = third * KGT_BIN;
    const double held[4] = {
        sum->bin_0 - unit, sum->bin_1 - second, sum->bin_2 - third, sum->bin_3 - fourth};
    #pragma unroll 1
    for (int i = 0; i < 4; ++i)
        kgt_carry(digits, lowest, held[i]);
    sum->bin_0 = unit;
    sum->bin_1 = second;
    sum->bin_2 = third;
    sum->bin_3 = fourth;
    sum->count = 0;
}

// bins whose first one takes numbers of 2^(power - 1023) times 8; 4096 of them fit
KGT_INLINE void kgt_sum_open(kgt_sum *sum, const int power)
{
    const int unit = max(power - 1058, -954);
    sum->limit = as_double((ulong)(unit + 1062) << 52);
    sum->unit = as_double((ulong)(unit + 1075) << 52 | 1UL << 51);
    sum->bin_0 = sum->unit;
    sum->bin_1 = sum->unit * KGT_BIN;
    sum->bin_2 = sum->bin_1 * KGT_BIN;
    sum->bin_3 = sum->bin_2 * KGT_BIN;
}

// `n` numbers that the bins take
KGT_INLINE void kgt_sum_bins(
    kgt_sum *sum, __global long *digits, const int lowest, double *rest, const int n)
{
    int left = 0;
    #pragma unroll
    for (int i = 0; i < n; ++i) {
        const double bin = sum->bin_0 + rest[i];
        rest[i] -= bin - sum->bin_0;
        sum->bin_0 = bin;
        left |= rest[i] != 0;
    }
    if (!left)
        return;
    left = 0;
    #pragma unroll
    for (int i = 0; i < n; ++i) {
        const double bin = sum->bin_1 + rest[i];
        rest[i] -= bin - sum->bin_1;
        sum->bin_1 = bin;
        left |= rest[i] != 0;
    }
    if (!left)
        return;
    left = 0;
    #pragma unroll
    for (int i = 0; i < n; ++i) {
        double bin = sum->bin_2 + rest[i];
        rest[i] -= bin - sum->bin_2;
        sum->bin_2 = bin;
        bin = sum->bin_3 + rest[i];
        rest[i] -= bin - sum->bin_3;
        sum->bin_3 = bin;
        left |= rest[i] != 0;
    }
    if (left) {
        double others[KGT_WIDEST];  // of which any is taken, so that `rest` may lie in registers
        #pragma unroll
        for (int i = 0; i < n; ++i)
            others[i] = rest[i];
        #pragma unroll 1
        for (int i = 0; i < n; ++i)
            kgt_carry(digits, lowest, others[i]);
    }
}

// any number: it may be not finite, huge, or other bins may be needed
KGT_CALLED void kgt_sum_any(
    kgt_sum *sum, __global long *digits, const int lowest, const double value)
{
    double rest[1] = {value};
    if (!(kgt_size(value) <= DBL_MAX))
        kgt_put(digits + (value != value ? 0 : value > 0 ? 1 : 2), 1);
    else if (kgt_size(value) > KGT_HUGE)
        kgt_carry(digits, lowest, value);
    else {
        if (kgt_size(value) > sum->limit) {
            kgt_sum_end(sum, digits, lowest);
            kgt_sum_open(sum, (int)(as_ulong(value) >> 52) & 0x7ff);
        }
        kgt_sum_bins(sum, digits, lowest, rest, 1);
    }
}

// `n` numbers, which are lost
KGT_INLINE void kgt_sum_add(
    kgt_sum *sum, __global long *digits, const int lowest, double *value, const int n)
{
    int fit = 1;
    #pragma unroll
    for (int i = 0; i < n; ++i)
        fit &= kgt_size(value[i]) <= sum->limit;
    if (fit) {
        kgt_sum_bins(sum, digits, lowest, value, n);
        return;
    }
    kgt_sum other = *sum;   // which has an address, so that the sum itself may lie in registers
    double others[KGT_WIDEST];
    #pragma unroll
    for (int i = 0; i < n; ++i)
        others[i] = value[i];
    #pragma unroll 1
    for (int i = 0; i < n; ++i)
        kgt_sum_any(&other, digits, lowest, others[i]);
    *sum = other;
}

// the same, any number of times
KGT_INLINE void kgt_sum_take(
    kgt_sum *sum, __global long *digits, const int lowest, double *value, const int n)
{
    sum->count += n;
    if (sum->count > KGT_MOST)
        kgt_sum_end(sum, digits, lowest);
    kgt_sum_add(sum, digits, lowest, value, n);
}

KGT_INLINE void kgt_sum_group(
    kgt_sum *sum, __global long *digits, const int lowest, __local long *room, const int own,
    const int n)
{
    __local int *most = (__local int *)room;
    __local double *bins = (__local double *)(room + 1);
    if (own == 0)
        *most = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int power = (int)(as_ulong(sum->unit) >> 52);
    if (power)
        atomic_max(most, power);
    barrier(CLK_LOCAL_MEM_FENCE);
    double unit = sum->unit;
    double rest[4];
    rest[0] = sum->bin_0 - unit;
    unit *= KGT_BIN;
    rest[1] = sum->bin_1 - unit;
    unit *= KGT_BIN;
    rest[2] = sum->bin_2 - unit;
    unit *= KGT_BIN;
    rest[3] = sum->bin_3 - unit;
    kgt_sum_open(sum, *most - 5);   // 12 bits above the highest bins, whose sums they take
    kgt_sum_add(sum, digits, lowest, rest, 4);
    unit = sum->unit;
    bins[own] = sum->bin_0 - unit;
    unit *= KGT_BIN;
    bins[n + own] = sum->bin_1 - unit;
    unit *= KGT_BIN;
    bins[2 * n + own] = sum->bin_2 - unit;
    unit *= KGT_BIN;
    bins[3 * n + own] = sum->bin_3 - unit;
    for (int step = n / 2; step; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (own < step) {
            bins[own] += bins[own + step];
            bins[n + own] += bins[n + own + step];
            bins[2 * n + own] += bins[2 * n + own + step];
            bins[3 * n + own] += bins[3 * n + own + step];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int bin = own; bin < 4; bin += n)
        kgt_carry(digits, lowest, bins[bin * n]);
    barrier(CLK_LOCAL_MEM_FENCE);
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
