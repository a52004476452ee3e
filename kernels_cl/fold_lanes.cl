// vectors of KGT_LANES cells: each lane has bins of its own, of the same units
typedef struct {
    double limit, unit;
    KGT_DOUBLES bin_0, bin_1, bin_2, bin_3;
    int count, most;    // how many numbers; the largest float that is taken, as a whole number
} kgt_sums_of_lanes;

// all bins to the digits
KGT_CALLED void kgt_lanes_end(
    const kgt_sums_of_lanes *sum, __global long *digits, const int lowest)
{
    const KGT_DOUBLES bins[4] = {sum->bin_0, sum->bin_1, sum->bin_2, sum->bin_3};
    double unit = sum->unit;
    for (int bin = 0; bin < 4; ++bin) {
        for (int lane = 0; lane < KGT_LANES; ++lane)
            kgt_carry(digits, lowest, ((const double *)&bins[bin])[lane] - unit);
        unit *= KGT_BIN;
    }
}

// the bins of `one` sum that is empty, for all lanes
KGT_INLINE void kgt_lanes_open(kgt_sums_of_lanes *sum, const kgt_sum one)
{
    sum->limit = one.limit;
    sum->unit = one.unit;
    sum->bin_0 = (KGT_DOUBLES)(one.bin_0);
    sum->bin_1 = (KGT_DOUBLES)(one.bin_1);
    sum->bin_2 = (KGT_DOUBLES)(one.bin_2);
    sum->bin_3 = (KGT_DOUBLES)(one.bin_3);
    sum->count = 0;
    sum->most = as_int((float)(one.limit < FLT_MAX ? one.limit : FLT_MAX));
}

// what is left of some numbers for the bins, which take it then
KGT_CALLED KGT_DOUBLES kgt_lanes_beyond(
    kgt_sums_of_lanes *sum, __global long *digits, const int lowest, KGT_DOUBLES value)
{
    double most = 0, *each = (double *)&value;
    for (int lane = 0; lane < KGT_LANES; ++lane) {
        const double size = kgt_size(each[lane]);
        if (size <= KGT_HUGE) {
            most = most < size ? size : most;
            continue;
        }
        if (size <= DBL_MAX)
            kgt_carry(digits, lowest, each[lane]);
        else
            kgt_put(digits + (size != size ? 0 : each[lane] > 0 ? 1 : 2), 1);
        each[lane] = 0;
    }
    if (most > sum->limit || sum->count > KGT_MOST) {
        kgt_lanes_end(sum, digits, lowest);
        kgt_sum one = {0};
        if (most > 0 || sum->limit > 0)
            kgt_sum_open(
                &one, max((int)(as_ulong(most) >> 52), (int)(as_ulong(sum->limit) >> 52) - 4));
        kgt_lanes_open(sum, one);
    }
    return value;
}

KGT_CALLED void kgt_lanes_carry(__global long *digits, const int lowest, const KGT_DOUBLES value)
{
    for (int lane = 0; lane < KGT_LANES; ++lane)
        kgt_carry(digits, lowest, ((const double *)&value)[lane]);
}

// whether a number is not 0
KGT_INLINE int kgt_rests(const KGT_DOUBLES value)
{
    return (kgt_or_long(KGT_AS_LONGS(value)) & LONG_MAX) != 0;
}

// numbers that the bins take
KGT_INLINE void kgt_lanes_bins(
    kgt_sums_of_lanes *sum, __global long *digits, const int lowest, KGT_DOUBLES value)
{
    KGT_DOUBLES bin = sum->bin_0 + value;
    value -= bin - sum->bin_0;
    sum->bin_0 = bin;
    if (kgt_rests(value)) {
        bin = sum->bin_1 + value;
        value -= bin - sum->bin_1;
        sum->bin_1 = bin;
        if (kgt_rests(value)) {
            bin = sum->bin_2 + value;
            value -= bin - sum->bin_2;
            sum->bin_2 = bin;
            bin = sum->bin_3 + value;
            value -= bin - sum->bin_3;
            sum->bin_3 = bin;
            if (kgt_rests(value))
                kgt_lanes_carry(digits, lowest, value);
        }
    }
}

// any numbers; sizes are compared as whole numbers, in the order of which they are
KGT_INLINE void kgt_lanes_add_double(
    kgt_sums_of_lanes *sum, __global long *digits, const int lowest, KGT_DOUBLES value)
{
    const KGT_LONGS size = KGT_AS_LONGS(value) & LONG_MAX;
    if (++sum->count > KGT_MOST || kgt_or_long(as_long(sum->limit) - size) < 0) {
        kgt_sums_of_lanes other = *sum;     // which has an address
        value = kgt_lanes_beyond(&other, digits, lowest, value);
        *sum = other;
    }
    kgt_lanes_bins(sum, digits, lowest, value);
}

KGT_INLINE void kgt_lanes_add_float(
    kgt_sums_of_lanes *sum, __global long *digits, const int lowest, const KGT_FLOATS single)
{
    const KGT_INTS size = KGT_AS_INTS(single) & INT_MAX;
    KGT_DOUBLES value = __builtin_convertvector(single, KGT_DOUBLES);
    if (++sum->count > KGT_MOST || kgt_or_int(sum->most - size) < 0) {
        kgt_sums_of_lanes other = *sum;
        value = kgt_lanes_beyond(&other, digits, lowest, value);
        *sum = other;
    }
    kgt_lanes_bins(sum, digits, lowest, value);
}
