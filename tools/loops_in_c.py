# SPDX-License-Identifier: MIT
"""Loops in C with OpenMP, as a person would write them: what programs are compared with.

Each is a function `step(n, f)` of the arrays of its fields, float32, with the cells outside; that
of Himeno takes three numbers of cells, the outermost ones among them, and returns the residual.
"""
from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from controllers.bench.host import WAITING
from controllers.process.environment import environment

C_HEAD = """
#include <math.h>
#define OUTSIDE(R) const long p = n + 2 * R
#define ROWS _Pragma("omp parallel for schedule(static)")
"""
C_WAVE = """
void step(long n, float **f) {
    const float *restrict u = f[0]; float *restrict o = f[1]; OUTSIDE(R);
    ROWS for (long y = R; y < n + R; ++y)
        for (long c = y * p + R; c < y * p + n + R; ++c) {
            float s = 2 * W0 * u[c];
            SUM
            o[c] = 2 * u[c] - o[c] + 0.1f * s;
        }
}
"""
C_WAVE3 = """
void step(long n, float **f) {
    const float *restrict u = f[0]; float *restrict o = f[1]; OUTSIDE(R); const long q = p * p;
    ROWS for (long z = R; z < n + R; ++z)
        for (long y = R; y < n + R; ++y)
            for (long c = z * q + y * p + R; c < z * q + y * p + n + R; ++c) {
                float s = 3 * W0 * u[c];
                SUM
                o[c] = 2 * u[c] - o[c] + 0.1f * s;
            }
}
"""
C_GRAY_SCOTT = """
void step(long n, float **f) {
    const float *restrict u = f[0], *restrict v = f[1];
    float *restrict a = f[2], *restrict b = f[3];
    OUTSIDE(1);
    ROWS for (long y = 0; y < n + 2; ++y) for (int k = 0; k < 2; ++k) {     // periodic
        float *g = f[k] + (y == 0 ? n : y == n + 1 ? 1 : y) * p, *t = f[k] + y * p;
        if (y == 0 || y == n + 1) for (long x = 0; x < p; ++x) t[x] = g[x];
        t[0] = t[n]; t[n + 1] = t[1];
    }
    ROWS for (long y = 1; y < n + 1; ++y)
        for (long c = y * p + 1; c < y * p + n + 1; ++c) {
            const float uvv = u[c] * v[c] * v[c];
            a[c] = u[c] + 0.16f * (u[c - p] + u[c + p] + u[c - 1] + u[c + 1] - 4 * u[c]) - uvv
                + 0.037f * (1 - u[c]);
            b[c] = v[c] + 0.08f * (v[c - p] + v[c + p] + v[c - 1] + v[c + 1] - 4 * v[c]) + uvv
                - 0.097f * v[c];
        }
}
"""
C_DIFFUSION = """
void step(long n, float **f) {
    const float *restrict u = f[0], *restrict k = f[1]; float *restrict a = f[2];
    OUTSIDE(1); const long q = p * p;
    ROWS for (long z = 1; z < n + 1; ++z)
        for (long y = 1; y < n + 1; ++y)
            for (long c = z * q + y * p + 1; c < z * q + y * p + n + 1; ++c)
                a[c] = u[c] + k[c] * (u[c - q] + u[c + q] + u[c - p] + u[c + p] + u[c - 1]
                    + u[c + 1] - 6 * u[c]);
}
"""
C_SHALLOW = """
static inline void flux(const float h, const float m, const float t, const float H, const float M,
                        const float T, float *restrict out) {
    const float v = m / h, V = M / H;   // m: the momentum across the face, t: along it
    const float a = fabsf(v) + sqrtf(9.81f * h), A = fabsf(V) + sqrtf(9.81f * H);
    const float s = a > A ? a : A;
    out[0] = (m + M - s * (H - h)) / 2;
    out[1] = (m * v + 4.905f * h * h + (M * V + 4.905f * H * H) - s * (M - m)) / 2;
    out[2] = (t * v + T * V - s * (T - t)) / 2;
}
void step(long n, float **f) {
    const float *restrict h = f[0], *restrict m = f[1], *restrict t = f[2];
    float *restrict a = f[3], *restrict b = f[4], *restrict d = f[5];
    OUTSIDE(1);
    ROWS for (long y = 1; y < n + 1; ++y) for (int k = 0; k < 3; ++k) {     // walls
        float *row = f[k] + y * p;
        row[0] = k == 2 ? -row[1] : row[1]; row[n + 1] = k == 2 ? -row[n] : row[n];
    }
    ROWS for (long x = 1; x < n + 1; ++x) for (int k = 0; k < 3; ++k) {
        float *g = f[k], sign = k == 1 ? -1 : 1;
        g[x] = sign * g[p + x]; g[(n + 1) * p + x] = sign * g[n * p + x];
    }
    ROWS for (long y = 1; y < n + 1; ++y)
        for (long c = y * p + 1; c < y * p + n + 1; ++c) {
            float up[3], low[3], right[3], left[3];
            flux(h[c], m[c], t[c], h[c + p], m[c + p], t[c + p], up);
            flux(h[c - p], m[c - p], t[c - p], h[c], m[c], t[c], low);
            flux(h[c], t[c], m[c], h[c + 1], t[c + 1], m[c + 1], right);
            flux(h[c - 1], t[c - 1], m[c - 1], h[c], t[c], m[c], left);
            a[c] = h[c] - 0.01f * (up[0] - low[0]) - 0.01f * (right[0] - left[0]);
            b[c] = m[c] - 0.01f * (up[1] - low[1]) - 0.01f * (right[2] - left[2]);
            d[c] = t[c] - 0.01f * (up[2] - low[2]) - 0.01f * (right[1] - left[1]);
        }
}
"""
C_HIMENO = """
float step(const long n, const long m, const long l, float **f) {
    const float *restrict p = f[0], *restrict a0 = f[1], *restrict a1 = f[2], *restrict a2 = f[3];
    const float *restrict a3 = f[4], *restrict b0 = f[5], *restrict b1 = f[6], *restrict b2 = f[7];
    const float *restrict c0 = f[8], *restrict c1 = f[9], *restrict c2 = f[10];
    const float *restrict w = f[11], *restrict bnd = f[12]; float *restrict r = f[13];
    const long q = m * l;
    float gosa = 0;
    _Pragma("omp parallel for schedule(static) reduction(+:gosa)")
    for (long i = 1; i < n - 1; ++i) for (long j = 1; j < m - 1; ++j)
        _Pragma("omp simd reduction(+:gosa)")
        for (long c = i * q + j * l + 1; c < i * q + j * l + l - 1; ++c) {
            const float s = a0[c] * p[c + q] + a1[c] * p[c + l] + a2[c] * p[c + 1]
                + b0[c] * (p[c + q + l] - p[c + q - l] - p[c - q + l] + p[c - q - l])
                + b1[c] * (p[c + l + 1] - p[c - l + 1] - p[c + l - 1] + p[c - l - 1])
                + b2[c] * (p[c + q + 1] - p[c - q + 1] - p[c + q - 1] + p[c - q - 1])
                + c0[c] * p[c - q] + c1[c] * p[c - l] + c2[c] * p[c - 1] + w[c];
            const float ss = (s * a3[c] - p[c]) * bnd[c];
            gosa += ss * ss;
            r[c] = p[c] + 0.8f * ss;
        }
    return gosa;
}
void back(const long n, const long m, const long l, float **f) {
    float *restrict p = f[0]; const float *restrict r = f[13]; const long q = m * l;
    ROWS for (long i = 1; i < n - 1; ++i) for (long j = 1; j < m - 1; ++j)
        for (long c = i * q + j * l + 1; c < i * q + j * l + l - 1; ++c) p[c] = r[c];
}
"""
WEIGHTS = {2: (-2.0, 1.0), 8: (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)}


def c_wave(n_axes: int, accuracy: int) -> str:
    """The loop of the wave equation; the level before last becomes the new one."""
    weights, pitches = WEIGHTS[accuracy], ("p", "1") if n_axes == 2 else ("q", "p", "1")
    lines = [f"#define R {accuracy // 2}", f"#define W0 (float)({weights[0]:.9g})"]
    sums = " ".join(
        f"s += (float)({weight:.9g}) * (u[c - {k} * {pitch}] + u[c + {k} * {pitch}]);"
        for pitch in pitches
        for k, weight in enumerate(weights[1:], 1)
    )
    return "\n".join([*lines, (C_WAVE if n_axes == 2 else C_WAVE3).replace("SUM", sums)])


def compiled(text: str, folder: Path, *flags: str) -> ctypes.CDLL:
    """The loops of a text, for the machine that this is; its library lies in the folder.

    flags: of the compiler, beside the usual ones.  Threads without work do not spin, as what is
    measured next needs their cores.
    """
    source, library = folder / "step.c", folder / f"{abs(hash(text))}.so"
    source.write_text(C_HEAD + text)
    subprocess.run(
        ["cc", "-O3", "-march=native", "-ffp-contract=off", "-fopenmp", "-shared", "-fPIC",
         "-fno-math-errno", *flags, "-o", library, source, "-lm"], check=True,
    )  # fmt: skip
    with environment(WAITING):
        return ctypes.CDLL(str(library))
