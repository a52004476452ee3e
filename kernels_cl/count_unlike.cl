// SPDX-License-Identifier: MIT
// Counts the elements in which two buffers have unlike bits.
//
// Macro to define:  CELL  an unsigned integer type as wide as an element (uchar to ulong): bits are compared.
// one, other:       buffers of `n_elements` each.  n_unlike: of the elements that each work-item compares.
// Work-items:       any number, of one dimension; each compares every so manieth element.

__kernel void count_unlike(__global const CELL *restrict one, __global const CELL *restrict other,
                           __global long *restrict n_unlike, const long n_elements)
{
    long found = 0;
    for (long i = get_global_id(0); i < n_elements; i += get_global_size(0))
        found += one[i] != other[i];
    n_unlike[get_global_id(0)] = found;
}
