// vectors of KGT_LANES cells: each lane has a sum of its own
typedef struct { KGT_DOUBLES first, second, third; } kgt_sums_of_lanes;

// as kgt_two_sum
KGT_INLINE KGT_DOUBLES kgt_lanes_two_sum(KGT_DOUBLES *sum, const KGT_DOUBLES value)
{
    const KGT_DOUBLES before = *sum, after = before + value, added = after - before;
    *sum = after;
    return (before - (after - added)) + (value - added);
}

// as kgt_sum_any
KGT_CALLED void kgt_lanes_any(
    kgt_sums_of_lanes *sum, __global long *digits, const int lowest, const KGT_DOUBLES value)
{
    kgt_sums_of_lanes after = *sum;
    KGT_DOUBLES rest = kgt_lanes_two_sum(&after.first, value);
    rest = kgt_lanes_two_sum(&after.second, rest);
    rest = kgt_lanes_two_sum(&after.third, rest);
    if (!kgt_rests(rest)) {
        *sum = after;
        return;
    }
    for (int lane = 0; lane < KGT_LANES; ++lane) {
        double *const first = (double *)&sum->first + lane;
        double *const second = (double *)&sum->second + lane;
        double *const third = (double *)&sum->third + lane;
        kgt_sum one = {*first, *second, *third};
        kgt_sum_any(&one, digits, lowest, ((const double *)&value)[lane]);
        *first = one.first;
        *second = one.second;
        *third = one.third;
    }
}

KGT_INLINE void kgt_lanes_add_double(
    kgt_sums_of_lanes *sum, __global long *digits, const int lowest, const KGT_DOUBLES value)
{
    KGT_DOUBLES first = sum->first, second = sum->second;
    const KGT_DOUBLES rest = kgt_lanes_two_sum(&first, value);
    if (kgt_rests(kgt_lanes_two_sum(&second, rest))) {
        kgt_sums_of_lanes other = *sum;     // which has an address
        kgt_lanes_any(&other, digits, lowest, value);
        *sum = other;
        return;
    }
    sum->first = first;
    sum->second = second;
}

// float32 leaves a rest where sizes are far apart alone
KGT_INLINE void kgt_lanes_add_float(
    kgt_sums_of_lanes *sum, __global long *digits, const int lowest, const KGT_FLOATS single)
{
    const KGT_DOUBLES value = __builtin_convertvector(single, KGT_DOUBLES);
    KGT_DOUBLES first = sum->first;
    if (kgt_rests(kgt_lanes_two_sum(&first, value)))
        kgt_lanes_add_double(sum, digits, lowest, value);
    else
        sum->first = first;
}

// all lanes to one sum
KGT_CALLED void kgt_lanes_end(
    const kgt_sums_of_lanes *sum, kgt_sum *one, __global long *digits, const int lowest)
{
    for (int lane = 0; lane < KGT_LANES; ++lane) {
        kgt_sum_any(one, digits, lowest, ((const double *)&sum->first)[lane]);
        kgt_sum_any(one, digits, lowest, ((const double *)&sum->second)[lane]);
        kgt_sum_any(one, digits, lowest, ((const double *)&sum->third)[lane]);
    }
}
