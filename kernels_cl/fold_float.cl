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

// `n` numbers
KGT_INLINE void kgt_sum_add(
    kgt_sum *sum, __global long *digits, const int lowest, const double *value, const int n)
{
    double first = sum->first, second = sum->second, down = 0, up = 0;
    #pragma unroll
    for (int i = 0; i < n; ++i) {
        const double part = KGT_SINGLE(lowest) ? value[i] : kgt_two_sum(&first, value[i]);
        down = kgt_down(down, part);
        up = kgt_up(up, part);
    }
    const double rest = KGT_SINGLE(lowest) ? kgt_two_sum(&first, down) : down;
    const int exact = down == up;
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

// what items of a group hold at `n` places, `step` apart
KGT_INLINE void kgt_sum_others(
    kgt_sum *sum, __global long *digits, const int lowest, __local const double *firsts,
    __local const double *seconds, const int n, const int step)
{
    double first = sum->first, down = KGT_SINGLE(lowest) ? first : sum->second, up = down;
    #pragma unroll 5
    for (int i = 1; i <= n; ++i) {
        double part = firsts[i * step];
        if (!KGT_SINGLE(lowest)) {
            part = kgt_two_sum(&first, part);
            down = kgt_down(down, seconds[i * step]);
            up = kgt_up(up, seconds[i * step]);
        }
        down = kgt_down(down, part);
        up = kgt_up(up, part);
    }
    if (down == up) {
        sum->first = KGT_SINGLE(lowest) ? down : first;
        if (!KGT_SINGLE(lowest))
            sum->second = down;
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

KGT_INLINE void kgt_sum_group(
    const kgt_sum *sum, __global long *digits, const int lowest, __local long *room,
    const int own, const int n)
{
    __local double *firsts = (__local double *)room, *seconds = firsts + n;
    kgt_sum all = *sum;     // which has an address
    kgt_sum_cut(&all, digits, lowest);
    firsts[own] = all.first;
    if (!KGT_SINGLE(lowest))
        seconds[own] = all.second;
    for (int left = n; left > 1; left = KGT_NEXT(left)) {
        const int next = KGT_NEXT(left);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (own < next) {
            kgt_sum_others(
                &all, digits, lowest, firsts + own, seconds + own, left / next - 1, next);
            firsts[own] = all.first;
            if (!KGT_SINGLE(lowest))
                seconds[own] = all.second;
        }
    }
    if (own == 0) {
        kgt_carry(digits, lowest, all.first);
        if (!KGT_SINGLE(lowest))
            kgt_carry(digits, lowest, all.second);
    }
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
    __local ulong *words = (__local ulong *)room;
    words[own] = kgt_word_of_double(most);
    KGT_MOST_OF_GROUP(ulong, words, own, n)
    if (own == 0)
        kgt_put_most(word, words[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
}
