#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#ifdef cl_khr_int64_extended_atomics
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#endif

// A sum is all of them, and what is in the digits: `second` has what was rounded off of `first`,
// and `third` what was rounded off of that.  It is empty where they are 0.
typedef struct { double first, second, third; } kgt_sum;

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

// The sum rounded down, and rounded up, or another number than it where that is not exact: of many
// additions all were exact if both ways lead to the same.
#ifdef __NV_CL_C_VERSION
KGT_INLINE double kgt_down(const double a, const double b)
{
    double sum;
    asm("add.rm.f64 %0, %1, %2;" : "=d"(sum) : "d"(a), "d"(b));
    return sum;
}

KGT_INLINE double kgt_up(const double a, const double b)
{
    double sum;
    asm("add.rp.f64 %0, %1, %2;" : "=d"(sum) : "d"(a), "d"(b));
    return sum;
}
#else
KGT_INLINE double kgt_down(const double a, const double b)
{
    return a + b;
}

KGT_INLINE double kgt_up(const double a, const double b)
{
    double sum = a;
    return kgt_two_sum(&sum, b) != 0 ? NAN : sum;
}
#endif

// Whether numbers are float32, whose digits begin higher: some of them have an exact sum, mostly,
// and some float64 numbers' rests have.
#define KGT_SINGLE(lowest) ((lowest) > -1000)

// `n` numbers, 16 at most
KGT_INLINE void kgt_sum_add(
    kgt_sum *sum, __global long *digits, const int lowest, const double *value, const int n)
{
    double first = sum->first, second = sum->second, all[16], down = 0, up = 0;
    #pragma unroll
    for (int i = 0; i < n; ++i) {
        all[i] = value[i];
        if (KGT_SINGLE(lowest)) {
            down = kgt_down(down, value[i]);
            up = kgt_up(up, value[i]);
        }
    }
    #pragma unroll
    for (int step = 1; step < n && !KGT_SINGLE(lowest); step *= 2)
        #pragma unroll
        for (int i = 0; i + step < n; i += 2 * step) {
            const double part = kgt_two_sum(all + i, all[i + step]);
            down = kgt_down(down, part);
            up = kgt_up(up, part);
        }
    double rest = kgt_two_sum(&first, KGT_SINGLE(lowest) ? down : all[0]);
    int exact = down == up;
    if (!KGT_SINGLE(lowest)) {
        up = kgt_up(up, rest);
        rest = kgt_down(down, rest);
        exact = exact && rest == up;
    }
    if (exact && rest == 0) {
        sum->first = first;
        return;
    }
    if (kgt_two_sum(&second, rest) == 0 && exact) {
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

// to the digits what no other items take: of float32 all but `first`
KGT_INLINE void kgt_sum_cut(kgt_sum *sum, __global long *digits, const int lowest)
{
    if (sum->third != 0)
        kgt_carry(digits, lowest, sum->third);
    sum->third = 0;
    if (KGT_SINGLE(lowest)) {
        if (sum->second != 0)
            kgt_carry(digits, lowest, sum->second);
        sum->second = 0;
    }
}

// The sum of what several items hold, which is exact where both ways to round it agree.
typedef struct { double first, down, up; } kgt_trial;

KGT_INLINE kgt_trial kgt_trial_of(const kgt_sum *sum, const int lowest)
{
    const double least = KGT_SINGLE(lowest) ? sum->first : sum->second;
    return (kgt_trial){sum->first, least, least};
}

KGT_INLINE void kgt_trial_add(
    kgt_trial *trial, const int lowest, const double first, const double second)
{
    double part = first;
    if (!KGT_SINGLE(lowest)) {
        part = kgt_two_sum(&trial->first, first);
        trial->down = kgt_down(trial->down, second);
        trial->up = kgt_up(trial->up, second);
    }
    trial->down = kgt_down(trial->down, part);
    trial->up = kgt_up(trial->up, part);
}

// what items of a group hold at `n` places, `step` apart
KGT_INLINE void kgt_sum_others(
    kgt_sum *sum, __global long *digits, const int lowest, __local const double *firsts,
    __local const double *seconds, const int n, const int step)
{
    kgt_trial trial = kgt_trial_of(sum, lowest);
    #pragma unroll 5
    for (int i = 1; i <= n; ++i)
        kgt_trial_add(&trial, lowest, firsts[i * step], KGT_SINGLE(lowest) ? 0 : seconds[i * step]);
    if (trial.down == trial.up) {
        sum->first = KGT_SINGLE(lowest) ? trial.down : trial.first;
        if (!KGT_SINGLE(lowest))
            sum->second = trial.down;
        return;
    }
    kgt_sum other = *sum;
    for (int i = 1; i <= n; ++i) {
        kgt_sum_any(&other, digits, lowest, firsts[i * step]);
        if (!KGT_SINGLE(lowest))
            kgt_sum_any(&other, digits, lowest, seconds[i * step]);
    }
    kgt_sum_cut(&other, digits, lowest);
    *sum = other;
}

// what `n` items have left in local memory goes to the digits; all items of the group come here
KGT_INLINE void kgt_sum_left(
    __global long *digits, const int lowest, __local double *firsts, __local double *seconds,
    const int own, const int n)
{
    for (int left = n; left > 1; left = KGT_NEXT(left)) {
        const int next = KGT_NEXT(left);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (own < next) {
            kgt_sum all = {firsts[own], KGT_SINGLE(lowest) ? 0 : seconds[own], 0};
            kgt_sum_others(
                &all, digits, lowest, firsts + own, seconds + own, left / next - 1, next);
            firsts[own] = all.first;
            if (!KGT_SINGLE(lowest))
                seconds[own] = all.second;
        }
    }
    if (own == 0) {
        kgt_carry(digits, lowest, firsts[0]);
        if (!KGT_SINGLE(lowest))
            kgt_carry(digits, lowest, seconds[0]);
    }
}

#ifdef KGT_WARP
KGT_INLINE double kgt_other_double(const double value, const int distance)
{
    return as_double(kgt_other_ulong(as_ulong(value), distance));
}

// The sum of what 32 items hold, which is no number where it is not exact.  Items that hand on must
// take the same way, so there are no branches.
KGT_INLINE kgt_sum kgt_sum_warp(kgt_sum all, const int lowest)
{
    #pragma unroll
    for (int distance = KGT_WARP / 2; distance; distance /= 2) {
        kgt_trial trial = kgt_trial_of(&all, lowest);
        kgt_trial_add(&trial, lowest, kgt_other_double(all.first, distance),
                      KGT_SINGLE(lowest) ? 0 : kgt_other_double(all.second, distance));
        all.first = KGT_SINGLE(lowest) ? trial.down : trial.first;
        all.first = trial.down == trial.up ? all.first : NAN;
        all.second = KGT_SINGLE(lowest) ? 0 : trial.down;
    }
    return all;
}

// 1 where the sums that `n` items of a group have left in local memory are numbers
KGT_INLINE int kgt_are_numbers(__local const double *firsts, const int n)
{
    int numbers = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (int i = 0; i < n; ++i)
        numbers &= firsts[i] == firsts[i];
    return numbers;
}
#endif

KGT_INLINE void kgt_sum_group(
    const kgt_sum *sum, __global long *digits, const int lowest, __local long *room,
    const int own, const int n)
{
    __local double *firsts = (__local double *)room, *seconds = firsts + n;
    kgt_sum all = *sum;     // which has an address
    kgt_sum_cut(&all, digits, lowest);
#ifdef KGT_WARP
    if (n >= KGT_WARP) {
        const kgt_sum handed = kgt_sum_warp(all, lowest);
        if (own % KGT_WARP == 0) {
            firsts[own / KGT_WARP] = handed.first;
            seconds[own / KGT_WARP] = handed.second;
        }
        if (kgt_are_numbers(firsts, n / KGT_WARP)) {
            kgt_sum_left(digits, lowest, firsts, seconds, own, n / KGT_WARP);
            return;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
    firsts[own] = all.first;
    if (!KGT_SINGLE(lowest))
        seconds[own] = all.second;
    kgt_sum_left(digits, lowest, firsts, seconds, own, n);
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

// it as a number that a word has the largest of: 0 where there is no double
KGT_INLINE ulong kgt_word_of_double(const kgt_most_double *most)
{
    return most->nan ? ULONG_MAX : (ulong)most->key ^ 1UL << 63;
}

// to one word of two: by the other one a device without such an operation keeps others away
KGT_INLINE void kgt_put_most(__global long *word, const ulong value)
{
#ifdef cl_khr_int64_extended_atomics
    atom_max((volatile __global ulong *)word, value);
#else
    volatile __global uint *taken = (volatile __global uint *)(word + 1);
    while (atomic_xchg(taken, 1U))
        ;
    volatile __global ulong *most = (volatile __global ulong *)word;
    if (*most < value)
        *most = value;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_xchg(taken, 0U);
#endif
}

KGT_INLINE void kgt_most_double_put(const kgt_most_double *most, __global long *word)
{
    kgt_put_most(word, kgt_word_of_double(most));
}

// that of a group
KGT_INLINE void kgt_most_double_group(
    const kgt_most_double *most, __global long *word, __local long *room, const int own,
    const int n)
{
    const ulong all = kgt_most_of_ulong(kgt_word_of_double(most), (__local ulong *)room, own, n);
    if (own == 0)
        kgt_put_most(word, all);
}
