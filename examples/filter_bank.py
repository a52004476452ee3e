# SPDX-License-Identifier: MIT
"""A bank of filters: a signal in bands, each kept at every eighth sample, and put together.

    python examples/filter_bank.py [SAMPLES]
    mpiexec -n 2 python examples/filter_bank.py

A sample is an item, which reads the samples before it by their numbers.
"""
import sys

import numpy as np

import controllers as ct

BANDS, TAPS, EVERY = 8, 32, 8


@ct.each
def analysed(
    sample: ct.Row, signal: ct.All, filters: ct.All, lags: ct.All, *, i: ct.Index
) -> ct.Row:
    heard = np.where(lags <= i, signal[np.maximum(i - lags, 0)], 0)
    return np.where(i % EVERY == 0, filters @ heard, 0)


@ct.each
def put_together(
    sample: ct.Row, bands: ct.All, filters: ct.All, lags: ct.All, *, i: ct.Index
) -> ct.Row:
    heard = bands[np.maximum(i - lags, 0)] * np.where(lags <= i, 1, 0)[:, None]
    return (heard * filters.T).sum(axis=0).sum()


def main(n=10_000, **options):
    lags = np.arange(TAPS)
    bands = np.pi * (np.arange(BANDS)[:, None] + 0.5) / BANDS
    window = np.hanning(TAPS) * 2 * EVERY**0.5 / np.hanning(TAPS).sum()
    filters = np.cos(bands * (lags - (TAPS - 1) / 2 + BANDS / 2)) * window
    signal = np.sin(np.arange(n) ** 2 * (np.pi / 2 / n))        # from low notes to high ones
    with ct.workspace(dtype="float32", **options) as on:
        heard, filters = on.array(signal), filters.astype("float32")
        bands = analysed(heard, heard, filters, lags)
        return [np.asarray(one) for one in (heard, put_together(heard, bands, filters, lags))]


if __name__ == "__main__":
    heard, again = main(*map(int, sys.argv[1:]))
    print(f"{len(heard)} samples, as loud as before by {np.std(again) / np.std(heard):.3f}")
