# SPDX-License-Identifier: MIT
"""Generated kernels against plain C with OpenMP (CPU) or the device's own copy (GPU).

    python tools/measure_strategies.py [--device SELECTOR] [--stencils 2d4 3d7] [--size N]
        [--dtype float32] [--kernels cell rows rows:rows=2,streaming=1] [--json FILE]

One sweep over N^2 or N^3 cells, fixed boundary, two buffers in turn.  All kernels, and the
comparator, run in turn within one process, forwards and backwards; a kernel whose bits differ from
those of the strategy "cell" is not timed.  C is compiled by `gcc -O3 -march=native -fopenmp`: plain
loops, the operations in the same order.  Printed: Gcell/s, median and best of the rounds, and the
median over the rounds of the ratio to the comparator; on a GPU of event times.
"""
from __future__ import annotations

import argparse
import ctypes
import dataclasses
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.device import find_devices
from controllers.kernel import build
from controllers.kgt.choice import configuration_of
from controllers.kgt.emitter import OPENCL_TYPES, assignment
from controllers.kgt.generator import generate
from controllers.program import Program
from controllers.stencil import Stencil
from controllers.tile import aligned
from hitmap.shape import Shape
from hitmap.strided import Geometry

Array = npt.NDArray[Any]
Run = Callable[[int], list[float]]     # n launches: the seconds of one, or of each

STENCILS = {
    "1d3": Stencil.of("1d3", [(-1, 1)], [1, 2, 1], 4),
}
