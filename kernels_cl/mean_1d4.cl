// mean_1d4: one step, float32, one cell per work-item.
//
// Weights over the offsets -2..2, [] marks the cell itself; divided by 10:
//
//      1   4  [.]  4   1
//
// Per cell: 6 flops (3 additions, 2 products, 1 division); 8 bytes, each field read once or written once.
// Strict arithmetic: operations as written, in the type of the field, without contraction.
// Where a device rounds float divisions loosely, strict bits need the build option
// -cl-fp32-correctly-rounded-divide-sqrt.
#pragma OPENCL FP_CONTRACT OFF

__kernel void kgt_mean_1d4(
    __global const float *restrict u,
    __global float *restrict u_new,
    // the element of the box's first cell
    const long u_first,
    // the cells of the box
    const long extent_0)
{
    // The group's first cell; the last group of an axis starts early: it ends with the box.
    const long group_0 = (long)get_group_id(0) * (long)get_local_size(0);
    const long last_0 = extent_0 - (long)get_local_size(0);
    const long start_0 = group_0 < last_0 ? group_0 : last_0;
    const long c = u_first + start_0 + (long)get_local_id(0);

    u_new[c] = (u[c - 2] + 4.0f * u[c - 1] + 4.0f * u[c + 1] + u[c + 2]) / 10.0f;
}
