// SPDX-License-Identifier: MIT
// Work-groups make one result of the parts of several folds, each of some of its words.
//
// GROUP: items of a work-group, SIDE: those that add one word of the digits; powers of 2.
// digits: `n_copies` vectors of `n_words`, which are added, and are 0 afterwards.
// slots: of each work-item or group that folded an extreme, seen, key and number for each of
//     `n_extremes`; afterwards none is seen.  firsts: of each of `n_boxes` boxes its first slot,
//     then the end of all slots.
// result: the sum of the vectors, then of each box and extreme seen, key and number.

#define WORDS (GROUP / SIDE)    // of a group at once

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void fold_parts(
    __global long *restrict digits, __global long *restrict slots,
    __global const long *restrict firsts, __global long *restrict result,
    const long n_copies, const long n_words, const long n_boxes, const long n_extremes)
{
    __local long seen[GROUP], key[GROUP], number[GROUP];
    const int own = get_local_id(0);
    const long n_sums = (n_words + WORDS - 1) / WORDS, n_parts = n_sums + n_boxes * n_extremes;
    long part = get_group_id(0);
    for (; part < n_sums; part += get_num_groups(0)) {
        const long word = part * WORDS + own % WORDS;
        long sum = 0;
        if (word < n_words) {
            for (long copy = own / WORDS; copy < n_copies; copy += SIDE)
                sum += digits[copy * n_words + word];
            for (long copy = own / WORDS; copy < n_copies; copy += SIDE)
                digits[copy * n_words + word] = 0;
        }
        key[own] = sum;
        for (int step = GROUP / 2; step >= WORDS; step /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (own < step)
                key[own] += key[own + step];
        }
        if (own < WORDS && word < n_words)
            result[word] = key[own];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (; part < n_parts; part += get_num_groups(0)) {
        const long box = (part - n_sums) / n_extremes;
        const long extreme = part - n_sums - box * n_extremes;
        const long first = firsts[box] + own, end = firsts[box + 1];
        long found = 0, most = 0, least = 0;
        #pragma unroll 4
        for (long slot = first; slot < end; slot += GROUP) {
            __global const long *at = slots + (slot * n_extremes + extreme) * 3;
            const long is = at[0], its = at[1], where = at[2];
            if (is && (!found || its > most || (its == most && where < least))) {
                found = 1;
                most = its;
                least = where;
            }
        }
        for (long slot = first; slot < end; slot += GROUP)
            slots[(slot * n_extremes + extreme) * 3] = 0;
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
            const long at = n_words + (part - n_sums) * 3;
            result[at] = seen[0];
            result[at + 1] = key[0];
            result[at + 2] = number[0];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
