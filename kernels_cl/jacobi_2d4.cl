// jacobi_2d4: one step, float32, one cell per work-item.
//
// Weights over the offsets -1..1 x -1..1, [] marks the cell itself; divided by 4:
//
//      .   1   .
//      1  [.]  1
//      .   1   .
//
// Per cell: 4 flops (3 additions, 1 division); 8 bytes, each field read once or written once.
// Strict arithmetic: operations as written, in the type of the field, without contraction.
#pragma OPENCL FP_CONTRACT OFF

__kernel void kgt_jacobi_2d4(
    __global const float *restrict u,
    __global float *restrict u_new,
    // the element of the box's first cell; elements per step on an axis
    const long u_first, const long u_pitch_0,
    // the cells of the box
    const long extent_0, const long extent_1)
{
    // The group's first cell; the last group of an axis starts early: it ends with the box.
    const long group_0 = (long)get_group_id(1) * (long)get_local_size(1);
    const long last_0 = extent_0 - (long)get_local_size(1);
    const long start_0 = group_0 < last_0 ? group_0 : last_0;
    const long group_1 = (long)get_group_id(0) * (long)get_local_size(0);
    const long last_1 = extent_1 - (long)get_local_size(0);
    const long start_1 = group_1 < last_1 ? group_1 : last_1;
    const long c = u_first + start_0 * u_pitch_0 + start_1
        + (long)get_local_id(1) * u_pitch_0 + (long)get_local_id(0);

    u_new[c] = (u[c - u_pitch_0] + u[c - 1] + u[c + 1] + u[c + u_pitch_0]) * 0.25f;
}
