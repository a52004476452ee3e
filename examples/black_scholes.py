# SPDX-License-Identifier: MIT
"""European options by the formula of Black and Scholes (1973): prices of calls and of puts.

    python examples/black_scholes.py [OPTIONS]
    mpiexec -n 2 python examples/black_scholes.py

The cumulative normal distribution is formula 26.2.17 of Abramowitz and Stegun (1964), whose error
is below 7.5e-8.  Exponentials and logarithms are the device's own: `math="fast"`.
"""
import sys

import numpy as np

import controllers as ct

SERIES = (0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429)


def below(d):
    """The probability that a standard normal variable is below `d`."""
    k = 1 / (1 + 0.2316419 * abs(d))
    series = 0.0
    for coefficient in reversed(SERIES):
        series = k * (coefficient + series)
    tail = np.exp(-0.5 * d * d) / (2 * np.pi) ** 0.5 * series
    return np.where(d > 0, 1 - tail, tail)


@ct.each(math="fast")
def prices(
    stock: ct.Row, strike: ct.Row, years: ct.Row, *, rate: float = 0.02, volatility: float = 0.3
) -> ct.Row:
    spread = volatility * np.sqrt(years)
    d = (np.log(stock / strike) + (rate + 0.5 * volatility**2) * years) / spread
    later = strike * np.exp(-rate * years)
    call = stock * below(d) - later * below(d - spread)
    return dict(call=call, put=call + later - stock)


def main(n=100_000, **options):
    random = np.random.default_rng(1)
    with ct.workspace(dtype="float32", **options) as on:
        given = [on.array(random.uniform(*ends, n)) for ends in ((5, 30), (1, 100), (0.25, 10))]
        found = prices(*given)
        return [np.asarray(one) for one in (*given, found["call"], found["put"])]


if __name__ == "__main__":
    for row in zip(*(one[:5] for one in main(*map(int, sys.argv[1:])))):
        print("stock {:.2f}, strike {:.2f}, {:.2f} years: call {:.4f}, put {:.4f}".format(*row))
