// SPDX-License-Identifier: MIT
// One step of any weighted stencil, given as data: new[i] = (sum of weights[t] * old[i + offsets[t]] over the terms t) / factor.
// Terms are added in order, from the first, so that the bits are those of the specialised kernel.
//
// In front of it:    accessors.cl
// Macros to define:  VALUE    the type of a cell
//                    TERM     the type of the arithmetic: VALUE, or ulong for integers, which wraps as int64 does
//                    one of   DIVIDES     divide by factor, rounded
//                             MULTIPLIES  multiply by factor, its exact reciprocal
//                             TRUNCATES   integers: divide as signed numbers, toward zero
// u, u_new:          the old and the new level of the field, which lie alike
// offsets, weights:  per term the distance of the cell that is read, in elements, and its weight; never zero, at least one term
__kernel void generic_stencil(__global const VALUE *restrict u, __global VALUE *restrict u_new,
                              __global const long *restrict offsets, __global const TERM *restrict weights,
                              const long n_terms, const TERM factor, TILE(u), BOX)
{
    CELL;
    const long c = ELEMENT(u);

    TERM sum = weights[0] * (TERM)u[c + offsets[0]];
    for (long term = 1; term < n_terms; term++)
        sum += weights[term] * (TERM)u[c + offsets[term]];

#if defined(TRUNCATES)
    const long divisor = factor + 1 > 1 ? (long)factor : 1;  // not -1: that quotient may overflow, and -sum wraps
    u_new[c] = (VALUE)(factor + 1 == 0 ? -sum : (ulong)((long)sum / divisor));
#elif defined(MULTIPLIES)
    u_new[c] = sum * factor;
#elif defined(DIVIDES)
    u_new[c] = sum / factor;
#endif
}
