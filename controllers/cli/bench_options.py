# SPDX-License-Identifier: MIT
"""The options of `controllers bench`; nothing here loads OpenCL."""
from __future__ import annotations

import argparse
import importlib
import re
from pathlib import Path

from controllers.cli.words import chunks_or_auto
from controllers.program.identifier import short
from controllers.program.program import FLOATS
from hitmap.comm import Communicator

# as in controllers.bench, which loads OpenCL; a test compares them
STENCILS = ("2d4", "2d9c", "2d9s", "2d5a", "3d7", "3d27")
AGAINST = ("cell", "hand-written", "numpy", "c")
PATTERNS = ("jacobi_1d2", "mean_1d4", "jacobi_2d4", "compact_2d9c", "star_2d9s", "drift_2d5a",
            "jacobi_3d6", "heat_3d7", "mean_3d12", "smooth_3d27", "jacobi_4d8")  # fmt: skip
APPS = ("himeno", "swim", "hyperthermia", "tricubic", "life", "reverse_edge", "lattice_gas",
        "compressible", "diffusion_3d", "seismic", "wave", "wave-2", "acoustic", "gray_scott",
        "shallow_water", "rayleigh_taylor", "cavity", "lattice_boltzmann", *PATTERNS,
        *(f"{name}-generic" for name in PATTERNS))  # fmt: skip
SECONDS, STREAM_SECONDS, QUICK_SECONDS = 10.0, 3.0, 0.3

HELP = "measure classical stencils against other ways to compute them"
DESCRIPTION = (
    "Measure the steps of six classical stencils on each chosen device, beside the device's own "
    "copy rate and against the one-cell kernel, a hand-written PyOpenCL loop, NumPy, and C with "
    "OpenMP where there is a compiler.  All of them take turns in one run, and each result is "
    "checked.  With the word apps, measure applications among the examples instead, and say "
    "of each how much of the copy rate it reaches, its operations per second, and what of its "
    "time goes into exchange.  With the word streams, measure COSP's nine benchmarks with a memory "
    "cap of a quarter of their data, which pass through the device in chunks: with one slot for "
    "them, with several, and the ideal time.  For one process."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add = parser.add_argument
    add("what", metavar="apps|streams", nargs="?", choices=("apps", "streams"),
        help="measure applications of the literature, which are among the examples; or arrays "
        "that do not fit, which pass through the device")
    add("--device", metavar="SELECTOR", action="append", default=[],
        help="as for run; each device is measured by itself (default: all GPUs, else the CPU); "
        "applications on parts such as cpu/1,1 together as well")
    add("--apps", metavar="NAME,...", type=_apps, default=[],
        help=f"some of {', '.join(APPS)} (default: all)")
    add("--stencils", metavar="NAME,...", type=_stencils, default=[*STENCILS],
        help=f"some of {', '.join(STENCILS)} (default: all)")
    add("--dtypes", metavar="DTYPE,...", type=_dtypes, default=["float32"],
        help=f"some of {', '.join(FLOATS)} (default: float32)")
    add("--sizes", metavar="NxN,...", type=_sizes, default=[],
        help="extents of fields, such as 4096x4096,256x256x256; a stencil or an application takes "
        "those of its number of axes (default of stencils: 8192x8192 and 384x384x384 on CPUs, "
        "16384x16384 and 640x640x640 on others; 2d4 on 64x64 as well, where a step is a launch)")
    add("--against", metavar="NAME,...", type=_against, default=[*AGAINST],
        help=f"what to compare with: some of {', '.join(AGAINST)} (default: all)")
    add("--with", metavar="FILE.py", dest="others", action="append", type=Path, default=[],
        help="a Python file, which is executed, with more to compare with in a tuple COMPARATORS, "
        "such as tools/bench_numba.py of the source distribution; may be repeated")
    add("--seconds", metavar="N", type=_seconds,
        help=f"time of measuring per case, without preparations (default: {SECONDS:g}, of "
        f"streams {STREAM_SECONDS:g})")
    add("--chunks", metavar="N", type=chunks_or_auto,
        help='of streams: chunks, at least, or "auto": that many are looked for, and slots, for as '
        "long as is measured then (default: as estimated)")
    add("--quick", action="store_true",
        help=f"small fields, and {QUICK_SECONDS:g} seconds per case: to see what it prints")
    add("--json", metavar="FILE.json", type=Path, help="where to write all that was measured")
    add("--csv", metavar="FILE.csv", type=Path, help="where to write a line per figure")
    add("--picture", metavar="FILE.png", type=Path,
        help="where to draw bars of the speeds, and a roofline, for each device")


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Measure."""
    importlib.import_module("controllers.cli.bench").command(options, comm)


def _words(text: str, known: tuple[str, ...]) -> list[str]:
    words = text.split(",")
    for word in words:
        if word not in known:
            raise argparse.ArgumentTypeError(
                f"some of {', '.join(known)} between commas, got {short(word)}"
            )
    return [*dict.fromkeys(words)]


def _stencils(text: str) -> list[str]:
    return _words(text, STENCILS)


def _apps(text: str) -> list[str]:
    return _words(text, APPS)


def _dtypes(text: str) -> list[str]:
    return _words(text, FLOATS)


def _against(text: str) -> list[str]:
    return _words(text, AGAINST)


def _sizes(text: str) -> list[tuple[int, ...]]:
    for word in text.split(","):
        if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8}){0,3}", word):
            raise argparse.ArgumentTypeError(
                f"extents such as 4096x4096 or 256x256x256 between commas, got {short(word)}"
            )
    return [tuple(map(int, word.split("x"))) for word in text.split(",")]


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"a number of seconds over 0, got {short(text)}")
    return value
