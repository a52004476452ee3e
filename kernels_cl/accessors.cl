// SPDX-License-Identifier: MIT
// Accessors: how a kernel finds its cell, and other cells, in tiles of 1 to 4 axes, whatever their pitch and padding.
//
// Macro to define:    AXES    how many axes: 1 to 4
//           perhaps:  ONCE    compute each cell exactly once, by a bounds test.  Without it cells at the end of a box
//                             may be computed twice, with the same value: faster, and right unless a tile is updated in place.
//
// In a parameter list, beside the tile's own pointer, `__global const float *restrict u`:
//   TILE(u)             where the tile lies: long u_first, u_pitch_0 ...
//   BOX                 which cells are computed: long extent_0 ..., lower_0 ...
//   DOMAIN              how large the whole field is: long size_0 ...  (kernels of stencils only)
// In the body:
//   CELL;               finds the work-item's cell; before all that follows
//   HERE(u)             the cell in tile u
//   NEAR(u, -1, 0)      its neighbour, one offset per axis
//   NEW(u)              the cell in u_new, the next time level of u
//   AT(u, i, j)         the cell with these global coordinates
//   AT_LOCAL(u, i, j)   the cell with these coordinates in the box
//   INDEX(0)            the cell's global coordinate on axis 0
//   LOCAL(0)            its coordinate in the box
//   EXTENT(0), SIZE(0)  cells of the box, and of the whole field, on axis 0
//   ELEMENT(u)          the element of the cell, to index u with: HERE(u) is u[ELEMENT(u)]
//
// Coordinates and offsets are given in C order: axis 0 is the slowest.  Names that begin with cell_, and those of the
// parameters above, are taken.
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define HERE(tile) tile[ELEMENT(tile)]
#define NEW(tile) tile##_new[ELEMENT(tile)]
#define INDEX(axis) (lower_##axis + cell_##axis)
#define LOCAL(axis) (cell_##axis)
#define EXTENT(axis) (extent_##axis)
#define SIZE(axis) (size_##axis)

// The coordinate in the box: of the first cell of the group, plus that within the group.  The last group starts early.
#ifdef ONCE
#define CELL_(axis, dimension) \
    const long cell_##axis = (long)get_global_id(dimension); \
    if (cell_##axis >= extent_##axis) return
#define CELL_0_1_ \
    const long cell_0 = (long)get_global_id(2) / extent_1; \
    const long cell_1 = (long)get_global_id(2) - cell_0 * extent_1
#else
#define CELL_(axis, dimension) \
    const long cell_group_##axis = (long)get_group_id(dimension) * (long)get_local_size(dimension); \
    const long cell_last_##axis = extent_##axis - (long)get_local_size(dimension); \
    const long cell_##axis = \
        (cell_group_##axis < cell_last_##axis ? cell_group_##axis : cell_last_##axis) + (long)get_local_id(dimension)
#define CELL_0_1_ \
    const long cell_0 = (long)get_group_id(2) / extent_1; \
    const long cell_1 = (long)get_group_id(2) - cell_0 * extent_1
#endif

#if AXES == 1
#define TILE(tile) const long tile##_first
#define BOX const long extent_0, const long lower_0
#define DOMAIN const long size_0
#define CELL CELL_(0, 0)
#define AT_LOCAL(tile, i0) tile[tile##_first + (i0)]
#define AT(tile, i0) AT_LOCAL(tile, (i0) - lower_0)
#define ELEMENT(tile) (tile##_first + cell_0)
#define NEAR(tile, d0) tile[ELEMENT(tile) + (d0)]

#elif AXES == 2
#define TILE(tile) const long tile##_first, const long tile##_pitch_0
#define BOX const long extent_0, const long extent_1, const long lower_0, const long lower_1
#define DOMAIN const long size_0, const long size_1
#define CELL CELL_(0, 1); CELL_(1, 0)
#define AT_LOCAL(tile, i0, i1) tile[tile##_first + (i0) * tile##_pitch_0 + (i1)]
#define AT(tile, i0, i1) AT_LOCAL(tile, (i0) - lower_0, (i1) - lower_1)
#define ELEMENT(tile) (tile##_first + cell_0 * tile##_pitch_0 + cell_1)
#define NEAR(tile, d0, d1) tile[ELEMENT(tile) + (d0) * tile##_pitch_0 + (d1)]

#elif AXES == 3
#define TILE(tile) const long tile##_first, const long tile##_pitch_0, const long tile##_pitch_1
#define BOX \
    const long extent_0, const long extent_1, const long extent_2, \
    const long lower_0, const long lower_1, const long lower_2
#define DOMAIN const long size_0, const long size_1, const long size_2
#define CELL CELL_(0, 2); CELL_(1, 1); CELL_(2, 0)
#define AT_LOCAL(tile, i0, i1, i2) tile[tile##_first + (i0) * tile##_pitch_0 + (i1) * tile##_pitch_1 + (i2)]
#define AT(tile, i0, i1, i2) AT_LOCAL(tile, (i0) - lower_0, (i1) - lower_1, (i2) - lower_2)
#define ELEMENT(tile) (tile##_first + cell_0 * tile##_pitch_0 + cell_1 * tile##_pitch_1 + cell_2)
#define NEAR(tile, d0, d1, d2) tile[ELEMENT(tile) + (d0) * tile##_pitch_0 + (d1) * tile##_pitch_1 + (d2)]

#elif AXES == 4
#define TILE(tile) \
    const long tile##_first, const long tile##_pitch_0, const long tile##_pitch_1, const long tile##_pitch_2
#define BOX \
    const long extent_0, const long extent_1, const long extent_2, const long extent_3, \
    const long lower_0, const long lower_1, const long lower_2, const long lower_3
#define DOMAIN const long size_0, const long size_1, const long size_2, const long size_3
#define CELL CELL_0_1_; CELL_(2, 1); CELL_(3, 0)
#define AT_LOCAL(tile, i0, i1, i2, i3) \
    tile[tile##_first + (i0) * tile##_pitch_0 + (i1) * tile##_pitch_1 + (i2) * tile##_pitch_2 + (i3)]
#define AT(tile, i0, i1, i2, i3) AT_LOCAL(tile, (i0) - lower_0, (i1) - lower_1, (i2) - lower_2, (i3) - lower_3)
#define ELEMENT(tile) \
    (tile##_first + cell_0 * tile##_pitch_0 + cell_1 * tile##_pitch_1 + cell_2 * tile##_pitch_2 + cell_3)
#define NEAR(tile, d0, d1, d2, d3) \
    tile[ELEMENT(tile) + (d0) * tile##_pitch_0 + (d1) * tile##_pitch_1 + (d2) * tile##_pitch_2 + (d3)]
#endif
