// jacobi_4d8: one step, float32, one cell per work-item.
//
// Weights over the offsets -1..1 x -1..1 x -1..1 x -1..1, [] marks the cell itself; divided by 8:
//
// at offsets (-1, -1) on axes 0, 1:
//      .   .   .
//      .   .   .
//      .   .   .
// at offsets (-1, 0) on axes 0, 1:
//      .   .   .
//      .   1   .
//      .   .   .
// at offsets (-1, 1) on axes 0, 1:
//      .   .   .
//      .   .   .
//      .   .   .
// at offsets (0, -1) on axes 0, 1:
//      .   .   .
//      .   1   .
//      .   .   .
// at offsets (0, 0) on axes 0, 1:
//      .   1   .
//      1  [.]  1
//      .   1   .
// at offsets (0, 1) on axes 0, 1:
//      .   .   .
//      .   1   .
//      .   .   .
// at offsets (1, -1) on axes 0, 1:
//      .   .   .
//      .   .   .
//      .   .   .
// at offsets (1, 0) on axes 0, 1:
//      .   .   .
//      .   1   .
//      .   .   .
// at offsets (1, 1) on axes 0, 1:
//      .   .   .
//      .   .   .
//      .   .   .
//
// Per cell: 8 flops (7 additions, 1 division); 8 bytes, each field read once or written once.
// Strict arithmetic: operations as written, in the type of the field, without contraction.
#pragma OPENCL FP_CONTRACT OFF

__kernel void kgt_jacobi_4d8(
    __global const float *restrict u,
    __global float *restrict u_new,
    // the element of the box's first cell; elements per step on an axis
    const long u_first, const long u_pitch_0, const long u_pitch_1, const long u_pitch_2,
    // the cells of the box
    const long extent_0, const long extent_1, const long extent_2, const long extent_3)
{
    // The group's first cell; the last group of an axis starts early: it ends with the box.
    const long start_0 = (long)get_group_id(2) / extent_1;  // axes 0 and 1: one cell
    const long start_1 = (long)get_group_id(2) - start_0 * extent_1;
    const long group_2 = (long)get_group_id(1) * (long)get_local_size(1);
    const long last_2 = extent_2 - (long)get_local_size(1);
    const long start_2 = group_2 < last_2 ? group_2 : last_2;
    const long group_3 = (long)get_group_id(0) * (long)get_local_size(0);
    const long last_3 = extent_3 - (long)get_local_size(0);
    const long start_3 = group_3 < last_3 ? group_3 : last_3;
    const long c = u_first + start_0 * u_pitch_0 + start_1 * u_pitch_1 + start_2 * u_pitch_2 + start_3
        + (long)get_local_id(1) * u_pitch_2 + (long)get_local_id(0);

    u_new[c] =
        (u[c - u_pitch_0]
        + u[c - u_pitch_1]
        + u[c - u_pitch_2]
        + u[c - 1]
        + u[c + 1]
        + u[c + u_pitch_2]
        + u[c + u_pitch_1]
        + u[c + u_pitch_0]) * 0.125f;
}
