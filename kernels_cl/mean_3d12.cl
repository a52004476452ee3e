// mean_3d12: one step, float32, one cell per work-item.
//
// Weights over the offsets -2..2 x -2..2 x -2..2, [] marks the cell itself; divided by 30:
//
// at offset -2 on axis 0:
//      .   .   .   .   .
//      .   .   .   .   .
//      .   .   1   .   .
//      .   .   .   .   .
//      .   .   .   .   .
// at offset -1 on axis 0:
//      .   .   .   .   .
//      .   .   .   .   .
//      .   .   4   .   .
//      .   .   .   .   .
//      .   .   .   .   .
// at offset 0 on axis 0:
//      .   .   1   .   .
//      .   .   4   .   .
//      1   4  [.]  4   1
//      .   .   4   .   .
//      .   .   1   .   .
// at offset 1 on axis 0:
//      .   .   .   .   .
//      .   .   .   .   .
//      .   .   4   .   .
//      .   .   .   .   .
//      .   .   .   .   .
// at offset 2 on axis 0:
//      .   .   .   .   .
//      .   .   .   .   .
//      .   .   1   .   .
//      .   .   .   .   .
//      .   .   .   .   .
//
// Per cell: 18 flops (11 additions, 6 products, 1 division); 8 bytes, each field read once or written once.
// Strict arithmetic: operations as written, in the type of the field, without contraction.
// Where a device rounds float divisions loosely, strict bits need the build option
// -cl-fp32-correctly-rounded-divide-sqrt.
#pragma OPENCL FP_CONTRACT OFF

__kernel void kgt_mean_3d12(
    __global const float *restrict u,
    __global float *restrict u_new,
    // the element of the box's first cell; elements per step on an axis
    const long u_first, const long u_pitch_0, const long u_pitch_1,
    // the cells of the box
    const long extent_0, const long extent_1, const long extent_2)
{
    // The group's first cell; the last group of an axis starts early: it ends with the box.
    const long group_0 = (long)get_group_id(2) * (long)get_local_size(2);
    const long last_0 = extent_0 - (long)get_local_size(2);
    const long start_0 = group_0 < last_0 ? group_0 : last_0;
    const long group_1 = (long)get_group_id(1) * (long)get_local_size(1);
    const long last_1 = extent_1 - (long)get_local_size(1);
    const long start_1 = group_1 < last_1 ? group_1 : last_1;
    const long group_2 = (long)get_group_id(0) * (long)get_local_size(0);
    const long last_2 = extent_2 - (long)get_local_size(0);
    const long start_2 = group_2 < last_2 ? group_2 : last_2;
    const long c = u_first + start_0 * u_pitch_0 + start_1 * u_pitch_1 + start_2
        + (long)get_local_id(2) * u_pitch_0 + (long)get_local_id(1) * u_pitch_1 + (long)get_local_id(0);

    u_new[c] =
        (u[c - 2 * u_pitch_0]
        + 4.0f * u[c - u_pitch_0]
        + u[c - 2 * u_pitch_1]
        + 4.0f * u[c - u_pitch_1]
        + u[c - 2]
        + 4.0f * u[c - 1]
        + 4.0f * u[c + 1]
        + u[c + 2]
        + 4.0f * u[c + u_pitch_1]
        + u[c + 2 * u_pitch_1]
        + 4.0f * u[c + u_pitch_0]
        + u[c + 2 * u_pitch_0]) / 30.0f;
}
