# SPDX-License-Identifier: MIT
"""`python -m controllers.kgt PATTERN.py`: the kernels of a pattern file, one NAME.cl per stencil.

Exit codes: 0 done, 1 failed, 2 usage.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from controllers.kgt.choice import KINDS, STRATEGIES, choose, configuration_of
from controllers.kgt.generator import generate
from controllers.pattern_file import read_patterns
from controllers.program import DTYPES, Program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Nothing is written unless all kernels can be."""
    options = _parser().parse_args(arguments)
    try:
        programs = [stencil.program(options.dtype) for stencil in read_patterns(options.pattern)]
        kernels = {
            program.name: _source(program, options.strategy, options.device) for program in programs
        }
        if options.print:
            print("\n".join(kernels.values()), end="", flush=True)
        if options.output is not None or not options.print:
            for name, source in kernels.items():
                write_atomically(Path(options.output or ".") / f"{name}.cl", source)
    except (OSError, ValueError) as error:
        print(f"kgt: {error}", file=sys.stderr)
        return 1
    return 0


def _source(program: Program, strategy: str | None, kind: str | None) -> str:
    """The text for a strategy, or for a large box on a kind of device; by default "cell"."""
    stage = program.stages[0]
    if strategy is None:
        return generate(program, stage, choose(program, stage, kind or "")).source
    if kind is not None and KINDS.get(strategy, kind) != kind:
        raise ValueError(
            f"the strategy {strategy!r} is for the device {KINDS[strategy]!r}, got {kind!r}; "
            f"leave out one of --strategy and --device"
        )
    return generate(program, stage, configuration_of(strategy, program, stage)).source


def write_atomically(path: Path, text: str) -> None:
    """Write `text` to `path`, made with its folder: a reader sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m controllers.kgt",
        description="Write an OpenCL C kernel for each stencil of a pattern file, as DIR/NAME.cl.",
        epilog="A pattern file holds shape, pattern, factor and, if wanted, name, as literals; "
        "or shape_NAME, pattern_NAME, factor_NAME for several.  It is parsed, never executed.",
    )
    parser.add_argument("pattern", metavar="PATTERN.py", help="the pattern file")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder of the kernels (default: .)")
    parser.add_argument(
        "--print", action="store_true", help="to standard output; to files only with -o as well"
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="default: float32")
    parser.add_argument(
        "--device", choices=("cpu", "gpu"), help="what is chosen there for a large box"
    )
    parser.add_argument(
        "--strategy", choices=STRATEGIES,
        help="cell: one cell per work-item, for any device (default); rows: bands of rows, for "
        "CPUs; marching: vectors in registers, for GPUs; streaming: several steps, for GPUs",
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
