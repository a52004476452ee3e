// SPDX-License-Identifier: MIT
// Zeroes a buffer of any size.  NVIDIA's clEnqueueFillBuffer does not: with a pattern of one byte it never returns where
// bit 31 of the size is set, and fills the size modulo 4 GiB (driver 580.159).
//
// vectors:     the buffer, whose first byte is aligned to a vector, and of which `n_bytes` bytes become 0.
// Work-items:  any number, of one dimension; each takes every so manieth vector, then byte.

__kernel void clear(__global uint4 *restrict vectors, const long n_bytes)
{
    const long n_vectors = n_bytes / 16;
    for (long i = get_global_id(0); i < n_vectors; i += get_global_size(0))
        vectors[i] = (uint4)(0, 0, 0, 0);
    __global uchar *const bytes = (__global uchar *)vectors;
    for (long i = 16 * n_vectors + get_global_id(0); i < n_bytes; i += get_global_size(0))
        bytes[i] = 0;
}
