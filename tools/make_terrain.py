# SPDX-License-Identifier: MIT
"""Make examples/terrain/elevation.npy from matplotlib's sample data; needs matplotlib.

    python tools/make_terrain.py [TARGET.npy]

The source is `jacksboro_fault_dem.npz`, a digital elevation model (int16, 344 x 403 cells) that
matplotlib ships among its sample data and shades in its gallery ("Topographic hillshading").
By its own numbers it covers 84.41 to 84.08 degrees west and 36.45 to 36.73 degrees north, the
Jacksboro fault in Tennessee, USA, in cells of 1/1200 degree (3 arc seconds), row 0 in the north.
matplotlib names neither the survey nor separate terms, so its own licence is what applies; the
values are taken as metres, as its example does.
"""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib import cbook

TARGET = Path(__file__).parents[1] / "examples" / "terrain" / "elevation.npy"


def main() -> None:
    """Write the elevation as float32, C order."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    with np.load(cbook.get_sample_data("jacksboro_fault_dem.npz", asfileobj=False)) as model:
        elevation = np.ascontiguousarray(model["elevation"], np.float32)
    np.save(target, elevation)
    print(f"{target}: {elevation.shape} cells, {elevation.min()} to {elevation.max()} m")


if __name__ == "__main__":
    main()
