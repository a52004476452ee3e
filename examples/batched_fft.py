# SPDX-License-Identifier: MIT
"""Fourier transforms of many rows of 64 complex numbers, one row per work-item, and back.

    python examples/batched_fft.py [ROWS]
    mpiexec -n 2 python examples/batched_fft.py

In OpenCL C: radix 2 in place, on what each work-item has for itself (Cooley and Tukey, 1965).  The
function beside it says what is computed, and is the reference: products with the matrix of waves.
"""
import sys

import numpy as np

import controllers as ct

N, BITS = 64, 6
WAVES = np.exp(-2j * np.pi * np.outer(np.arange(N), np.arange(N)) / N)
RADIX_2 = f"""
    for (int k = 0; k < {N}; ++k) {{
        int from = 0;
        for (int bit = 0; bit < {BITS}; ++bit)
            from |= (k >> bit & 1) << ({BITS - 1} - bit);
        a[k] = re(from);
        b[k] = im(from);
    }}
    for (int apart = 1; apart < {N}; apart *= 2)
        for (int k = 0; k < {N // 2}; ++k) {{
            int first = k / apart * 2 * apart + k % apart, second = first + apart;
            VALUE c = cosines(k % apart * ({N // 2} / apart), 1);
            VALUE s = sines(k % apart * ({N // 2} / apart), 1);
            VALUE x = c * a[second] - s * b[second], y = c * b[second] + s * a[second];
            a[second] = a[first] - x;
            b[second] = b[first] - y;
            a[first] += x;
            b[first] += y;
        }}
    for (int k = 0; k < {N}; ++k) {{
        real_new(k) = a[k];
        imag_new(k) = b[k];
    }}
"""


@ct.each(opencl_c=RADIX_2, private=dict(a=("float32", N), b=("float32", N)))
def transformed(re: ct.Row, im: ct.Row, cosines: ct.All, sines: ct.All) -> ct.Row:
    return dict(real=cosines @ re - sines @ im, imag=cosines @ im + sines @ re)


def main(n_rows=20_000, **options):
    re, im = np.random.default_rng(1).normal(size=(2, n_rows, N)).astype("float32")
    cosines, sines = WAVES.real.astype("float32"), WAVES.imag.astype("float32")
    with ct.workspace(dtype="float32", **options) as on:
        there = transformed(on.array(re), on.array(im), cosines, sines)
        back = transformed(there["real"], there["imag"], cosines, -sines)
        found = [np.asarray(z["real"]) + 1j * np.asarray(z["imag"]) for z in (there, back)]
    return re + 1j * im, *found


if __name__ == "__main__":
    rows, _, back = main(*map(int, sys.argv[1:]))
    print(f"{len(rows)} rows there and back: the largest error is {abs(back / N - rows).max():.1e}")
