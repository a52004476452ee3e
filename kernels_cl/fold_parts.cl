// SPDX-License-Identifier: MIT
// One work-group makes one result of the parts of several folds; GROUP is its size, a power of 2.
//
// digits: `n_copies` vectors of `n_words`, which are added, and are 0 afterwards.
// slots: of each work-item or group that folded an extreme, seen, key and number for each of
//     `n_extremes`; afterwards none is seen.  firsts: of each of `n_boxes` boxes its first slot, then the end of all slots.
// result: the sum of the vectors, then of each box and extreme seen, key and number.

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void fold_parts(
    __global long *restrict digits, __global long *restrict slots,
    __global const long *restrict firsts, __global long *restrict result,
    const long n_copies, const long n_words, const long n_boxes, const long n_extremes)
{
    __local long seen[GROUP], key[GROUP], number[GROUP];
    const int own = get_local_id(0);
    for (long word = own; word < n_words; word += GROUP) {
        long sum = 0;
        for (long copy = 0; copy < n_copies; ++copy) {
            sum += digits[copy * n_words + word];
            digits[copy * n_words + word] = 0;
        }
        result[word] = sum;
    }
    for (long part = 0; part < n_boxes * n_extremes; ++part) {
        const long box = part / n_extremes, extreme = part - box * n_extremes;
        long found = 0, most = 0, least = 0;
        for (long slot = firsts[box] + own; slot < firsts[box + 1]; slot += GROUP) {
            __global long *at = slots + (slot * n_extremes + extreme) * 3;
            if (at[0] && (!found || at[1] > most || (at[1] == most && at[2] < least))) {
                found = 1;
                most = at[1];
                least = at[2];
            }
            at[0] = 0;
        }
        seen[own] = found;
        key[own] = most;
        number[own] = least;
        for (int step = GROUP / 2; step; step /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            const int with = own + step;
            if (own < step && seen[with] && (!seen[own] || key[with] > key[own]
                    || (key[with] == key[own] && number[with] < number[own]))) {
                seen[own] = 1;
                key[own] = key[with];
                number[own] = number[with];
            }
        }
        if (own == 0) {
            result[n_words + part * 3] = seen[0];
            result[n_words + part * 3 + 1] = key[0];
            result[n_words + part * 3 + 2] = number[0];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
