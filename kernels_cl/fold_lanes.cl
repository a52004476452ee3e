// vectors of KGT_LANES cells: each lane has a sum of its own.  What is rounded off of `second` goes
// to further sums in memory, one after the other: they take wide ranges of numbers, which are rare.
typedef struct { KGT_DOUBLES first, second; } kgt_sums_of_lanes;

#define KGT_FURTHER 10
#define KGT_KEPT (1024 / KGT_LANES)      // vectors that are added together

// as kgt_two_sum
KGT_INLINE KGT_DOUBLES kgt_lanes_two_sum(KGT_DOUBLES *sum, const KGT_DOUBLES value)
{
    const KGT_DOUBLES before = *sum, after = before + value, added = after - before;
    *sum = after;
    return (before - (after - added)) + (value - added);
}

// any numbers; `one` takes what they leave of all sums of a lane, and what no sum of a lane takes
KGT_CALLED void kgt_lanes_any(
    kgt_sums_of_lanes *sum, KGT_DOUBLES *further, kgt_sum *one, __global long *digits,
    const int lowest, const KGT_DOUBLES value)
{
    kgt_sums_of_lanes after = *sum;
    KGT_DOUBLES others[KGT_FURTHER], rest = kgt_lanes_two_sum(&after.first, value);
    rest = kgt_lanes_two_sum(&after.second, rest);
    int n = 0, taken = 1;
    for (; n < KGT_FURTHER && kgt_rests(rest); ++n) {
        others[n] = further[n];
        rest = kgt_lanes_two_sum(others + n, rest);
    }
    if (kgt_rests(rest))
        for (int lane = 0; lane < KGT_LANES; ++lane)
            taken &= kgt_size(((const double *)&rest)[lane]) <= DBL_MAX;
    if (taken) {
        *sum = after;
        for (int i = 0; i < n; ++i)
            further[i] = others[i];
    }
    const KGT_DOUBLES left = taken ? rest : value;
    if (kgt_rests(left))
        for (int lane = 0; lane < KGT_LANES; ++lane)
            kgt_sum_any(one, digits, lowest, ((const double *)&left)[lane]);
}

// where the sum less what was added is the number, and less the number what it was, nothing is
// rounded off; where the second alone holds, what is rounded off is the number less what was added
KGT_INLINE void kgt_lanes_add_double(
    kgt_sums_of_lanes *sum, KGT_DOUBLES *further, kgt_sum *one, __global long *digits,
    const int lowest, const KGT_DOUBLES value)
{
    const KGT_DOUBLES first = sum->first + value, added = first - sum->first, rest = value - added;
    const KGT_DOUBLES second = sum->second + rest;
    if (kgt_differ(KGT_UNLIKE(first - added, sum->first)
                   | KGT_UNLIKE(second - sum->second, rest)
                   | KGT_UNLIKE(second - rest, sum->second))) {
        kgt_sums_of_lanes other = *sum;     // which has an address
        kgt_lanes_any(&other, further, one, digits, lowest, value);
        *sum = other;
        return;
    }
    sum->first = first;
    sum->second = second;
}

// float32 leaves a rest only where sizes are far apart
KGT_INLINE void kgt_lanes_add_float(
    kgt_sums_of_lanes *sum, KGT_DOUBLES *further, kgt_sum *one, __global long *digits,
    const int lowest, const KGT_FLOATS single)
{
    const KGT_DOUBLES value = __builtin_convertvector(single, KGT_DOUBLES);
    const KGT_DOUBLES first = sum->first + value;
    if (kgt_differ(KGT_UNLIKE(first - sum->first, value) | KGT_UNLIKE(first - value, sum->first)))
        kgt_lanes_add_double(sum, further, one, digits, lowest, value);
    else
        sum->first = first;
}

// A block of numbers of which the largest size and the least but 0 are noted: where these are near
// each other no addition is rounded.  At most KGT_BLOCK numbers in each lane, of a float64 two parts.
#define KGT_BLOCK 512
typedef struct { KGT_HALF(double) high; KGT_HALF(uint) most, least; } kgt_block_float;
typedef struct { KGT_DOUBLES high, low; KGT_HALF(double) most, least; } kgt_block_double;
#define KGT_NO_BLOCK_float {0, 0, UINT_MAX}
#define KGT_NO_BLOCK_double {0, 0, 0, INFINITY}

#if KGT_LANES > 2
#define KGT_WIDER(half) __builtin_convertvector(half, KGT_HALF(double))
#else
#define KGT_WIDER(half) (double)(half)
#endif

KGT_INLINE void kgt_block_take_float(kgt_block_float *block, const KGT_FLOATS value)
{
    const KGT_WHOLE(uint) size = KGT_BITS(uint, value) & INT_MAX, less = size - 1;   // 0 is large
    const KGT_HALF(uint) most = size.lo > size.hi ? size.lo : size.hi;
    const KGT_HALF(uint) least = less.lo < less.hi ? less.lo : less.hi;
    block->high += KGT_WIDER(value.lo) + KGT_WIDER(value.hi);
    block->most = most > block->most ? most : block->most;
    block->least = least < block->least ? least : block->least;
}

KGT_INLINE void kgt_block_take_double(kgt_block_double *block, const KGT_DOUBLES value)
{
    const KGT_DOUBLES high = KGT_MASKED(value, ~0x3ffffffL), size = KGT_MASKED(value, LONG_MAX);
    const KGT_DOUBLES some = KGT_BITS(double, KGT_BITS(long, size) | (value == 0));   // no 0
    const KGT_HALF(double) most = size.lo > size.hi ? size.lo : size.hi;
    block->high += high;
    block->low += value - high;
    block->most = most > block->most ? most : block->most;
    block->least = some.lo < block->least ? some.lo : block->least;
    block->least = some.hi < block->least ? some.hi : block->least;
}

// a block to the sums, unless something may be rounded, or is not finite
KGT_CALLED int kgt_block_end_float(
    const kgt_block_float *block, kgt_sums_of_lanes *sum, KGT_DOUBLES *further, kgt_sum *one,
    __global long *digits, const int lowest)
{
    uint most = 0, least = UINT_MAX;
    for (int lane = 0; lane < KGT_LANES / 2; ++lane) {
        most = max(most, ((const uint *)&block->most)[lane]);
        least = min(least, ((const uint *)&block->least)[lane]);
    }
    // 2 KGT_BLOCK numbers below 2^(most + 1) whose last bits are 2^(least - 23) or more have 53 bits
    if (least != UINT_MAX
            && (most >= 0x7f800000 || (int)(most >> 23) - (int)((least + 1) >> 23) > 19))
        return 0;
    const KGT_DOUBLES high = (KGT_DOUBLES)(block->high, (KGT_HALF(double))(0));
    kgt_lanes_add_double(sum, further, one, digits, lowest, high);
    return 1;
}

KGT_CALLED int kgt_block_end_double(
    const kgt_block_double *block, kgt_sums_of_lanes *sum, KGT_DOUBLES *further, kgt_sum *one,
    __global long *digits, const int lowest)
{
    ulong most = 0, least = ULONG_MAX;
    for (int lane = 0; lane < KGT_LANES / 2; ++lane) {
        most = max(most, ((const ulong *)&block->most)[lane]);
        least = min(least, ((const ulong *)&block->least)[lane]);
    }
    const KGT_DOUBLES high = block->high, low = block->low;
    // the high parts' last bits are 2^(least - 26) or more, the low parts are below 2^(most - 26)
    if ((int)(most >> 52) - (int)(least >> 52) > 17 || kgt_rests(high - high))
        return 0;
    kgt_lanes_add_double(sum, further, one, digits, lowest, high);
    kgt_lanes_add_double(sum, further, one, digits, lowest, low);
    return 1;
}

// Where the processor tells whether any addition was rounded, many numbers are added without a test,
// and in the usual way where it says so.  Of a float64 two parts of half the bits are added.
#ifdef __x86_64__
#define KGT_WATCHED 2048    // cells of a block
// a processor that foresees what such a loop reads; what is asked for besides keeps it from it
#if defined(__znver1__) || defined(__znver2__) || defined(__znver3__) || defined(__znver4__) \
    || defined(__znver5__)
#define KGT_FORESEEN
#endif
typedef struct { KGT_DOUBLES high, low; } kgt_parts_of_lanes;

// from now on it notes what is rounded; the parts are told, so that nothing is added before
KGT_INLINE void kgt_watch(kgt_parts_of_lanes *parts)
{
    uint state;
    __asm__ volatile("stmxcsr %0" : "=m"(state));
    state &= ~0x3fU;
    __asm__ volatile("ldmxcsr %1" : "+m"(*parts) : "m"(state));
}

KGT_INLINE void kgt_part_float(kgt_parts_of_lanes *parts, const KGT_FLOATS value)
{
    parts->high += __builtin_convertvector(value, KGT_DOUBLES);
}

KGT_INLINE void kgt_part_double(kgt_parts_of_lanes *parts, const KGT_DOUBLES value)
{
    const KGT_DOUBLES high = KGT_MASKED(value, ~0x3ffffffL);
    parts->high += high;
    parts->low += value - high;
}

// the parts to the sums, unless something was rounded since, or is not finite
KGT_CALLED int kgt_lanes_add_parts(
    kgt_sums_of_lanes *sum, KGT_DOUBLES *further, kgt_sum *one, __global long *digits,
    const int lowest, kgt_parts_of_lanes *parts)
{
    uint state;
    __asm__ volatile("stmxcsr %0" : "=m"(state), "+m"(*parts));
    const KGT_DOUBLES high = parts->high, low = parts->low;
    if (state & 0x20 || kgt_rests(high - high) || kgt_rests(low - low))
        return 0;
    kgt_lanes_add_double(sum, further, one, digits, lowest, high);
    kgt_lanes_add_double(sum, further, one, digits, lowest, low);
    return 1;
}

// `n` vectors
KGT_CALLED void kgt_lanes_add_kept_float(
    kgt_sums_of_lanes *sum, KGT_DOUBLES *further, kgt_sum *one, __global long *digits,
    const int lowest, const KGT_FLOATS *kept, const int n)
{
    kgt_parts_of_lanes watched = {0};
    kgt_watch(&watched);
    kgt_parts_of_lanes parts = watched;     // in registers
    for (int i = 0; i < n; ++i)
        kgt_part_float(&parts, kept[i]);
    watched = parts;
    if (kgt_lanes_add_parts(sum, further, one, digits, lowest, &watched))
        return;
    for (int i = 0; i < n; ++i)
        kgt_lanes_add_float(sum, further, one, digits, lowest, kept[i]);
}

KGT_CALLED void kgt_lanes_add_kept_double(
    kgt_sums_of_lanes *sum, KGT_DOUBLES *further, kgt_sum *one, __global long *digits,
    const int lowest, const KGT_DOUBLES *kept, const int n)
{
    kgt_parts_of_lanes watched = {0};
    kgt_watch(&watched);
    kgt_parts_of_lanes parts = watched;     // in registers
    for (int i = 0; i < n; ++i)
        kgt_part_double(&parts, kept[i]);
    watched = parts;
    if (kgt_lanes_add_parts(sum, further, one, digits, lowest, &watched))
        return;
    for (int i = 0; i < n; ++i)
        kgt_lanes_add_double(sum, further, one, digits, lowest, kept[i]);
}
#endif

// the sums of all lanes to one of them
KGT_CALLED void kgt_lanes_join(
    const KGT_DOUBLES *sums, const int n, kgt_sum *one, __global long *digits, const int lowest)
{
    for (int number = 0; number < n * KGT_LANES; ++number)
        if (((const double *)sums)[number] != 0)
            kgt_sum_any(one, digits, lowest, ((const double *)sums)[number]);
}

KGT_INLINE void kgt_lanes_end(
    const kgt_sums_of_lanes *sum, const KGT_DOUBLES *further, kgt_sum *one, __global long *digits,
    const int lowest)
{
    const KGT_DOUBLES both[2] = {sum->first, sum->second};
    kgt_lanes_join(both, 2, one, digits, lowest);
    kgt_lanes_join(further, KGT_FURTHER, one, digits, lowest);
}
