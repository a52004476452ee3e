#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// limit: the largest size of a number that the bins take.  unit: where the first of them starts.
typedef struct { double limit, unit, bin_0, bin_1, bin_2, bin_3; int count; } kgt_sum;

#define KGT_BIN 0x1p-40             // of a bin, the unit of the one below it
#define KGT_HUGE 0x1p900
#define KGT_MOST 4000               // numbers after which bins are emptied

// a finite number, as digits from 2^lowest on, which lie behind three counts
static __attribute__((noinline)) void kgt_carry(__global long *digits, const int lowest, const double value)
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

KGT_INLINE void kgt_sum_end(kgt_sum *sum, __global long *digits, const int lowest)
{
    double unit = sum->unit;
    kgt_carry(digits, lowest, sum->bin_0 - unit);
    sum->bin_0 = unit;
    unit *= KGT_BIN;
    kgt_carry(digits, lowest, sum->bin_1 - unit);
    sum->bin_1 = unit;
    unit *= KGT_BIN;
    kgt_carry(digits, lowest, sum->bin_2 - unit);
    sum->bin_2 = unit;
    unit *= KGT_BIN;
    kgt_carry(digits, lowest, sum->bin_3 - unit);
    sum->bin_3 = unit;
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

KGT_INLINE void kgt_sum_bins(kgt_sum *sum, __global long *digits, const int lowest, const double value)
{
    double bin = sum->bin_0 + value, rest = value - (bin - sum->bin_0);
    sum->bin_0 = bin;
    if (rest != 0) {
        bin = sum->bin_1 + rest;
        rest -= bin - sum->bin_1;
        sum->bin_1 = bin;
        if (rest != 0) {
            bin = sum->bin_2 + rest;
            rest -= bin - sum->bin_2;
            sum->bin_2 = bin;
            bin = sum->bin_3 + rest;
            rest -= bin - sum->bin_3;
            sum->bin_3 = bin;
            if (rest != 0)
                kgt_carry(digits, lowest, rest);
        }
    }
}

// a number that the bins do not take: not finite, huge, or other bins are needed
KGT_INLINE void kgt_sum_beyond(kgt_sum *sum, __global long *digits, const int lowest, const double value)
{
    if (!(fabs(value) <= DBL_MAX))
        kgt_put(digits + (value != value ? 0 : value > 0 ? 1 : 2), 1);
    else if (fabs(value) > KGT_HUGE)
        kgt_carry(digits, lowest, value);
    else {
        kgt_sum_end(sum, digits, lowest);
        kgt_sum_open(sum, (int)(as_ulong(value) >> 52) & 0x7ff);
        kgt_sum_bins(sum, digits, lowest, value);
    }
}

KGT_INLINE void kgt_sum_add(kgt_sum *sum, __global long *digits, const int lowest, const double value)
{
    if (fabs(value) <= sum->limit)
        kgt_sum_bins(sum, digits, lowest, value);
    else
        kgt_sum_beyond(sum, digits, lowest, value);
}

// the same, any number of times
KGT_INLINE void kgt_sum_take(kgt_sum *sum, __global long *digits, const int lowest, const double value)
{
    if (++sum->count > KGT_MOST)
        kgt_sum_end(sum, digits, lowest);
    kgt_sum_add(sum, digits, lowest, value);
}

KGT_INLINE long kgt_key_of_double(const double value)
{
    const long bits = as_long(value);
    return value != value ? LONG_MAX : bits < 0 ? bits ^ LONG_MAX : bits;
}

KGT_INLINE long kgt_low_key_of_double(const double value)
{
    return value != value ? LONG_MAX : ~kgt_key_of_double(value);
}
