# SPDX-License-Identifier: MIT
"""The command `kgt`: its options, and what it does with them; its callers name the error's code."""
from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from controllers.kgt.choice import choose, config_of
from controllers.kgt.generator import generate
from controllers.kgt.launch_line import launch_line
from controllers.kgt.strategies.config import Config
from controllers.kgt.strategies.table import STRATEGIES, strategy_named
from controllers.language.pattern_file import read_patterns
from controllers.program.program import DTYPES, Math, Program
from hitmap.files import check_target, replacing

HELP = "write the kernels of a pattern file as OpenCL C"
DESCRIPTION = (
    "Write an OpenCL C kernel for each stencil of a pattern file, as DIR/NAME.cl.  A pattern file "
    "holds shape, pattern, factor and, if wanted, name, as literals; or shape_NAME, pattern_NAME, "
    "factor_NAME for several.  It is parsed, never executed.  The kernels of a program of several "
    "steps or fields are written as it runs: controllers run PROGRAM.py --kgt-out DIR."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("pattern", metavar="PATTERN.py", help="the pattern file")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder of the kernels (default: .)")
    parser.add_argument(
        "--print", action="store_true", help="to standard output; to files only with -o as well"
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="default: float32")
    parser.add_argument(
        "--math", choices=get_args(Math), default="strict",
        help="strict (default), or fast: constants divided beforehand, operations contracted",
    )
    parser.add_argument(
        "--device", dest="kind", choices=("cpu", "gpu"),
        help="what is chosen there for a large box",
    )
    parser.add_argument(
        "--strategy", choices=STRATEGIES,
        help="; ".join(f"{each.strategy}: {each.about}{_for(each.kind)}" for each in
                       STRATEGIES.values()),
    )  # fmt: skip


def _for(kind: str) -> str:
    return f", for a {kind.upper()}" if kind else ""


def kernels_of(options: argparse.Namespace) -> dict[str, str]:
    """The texts, by names of files; OSError or ValueError where what was given cannot be used."""
    programs = [
        stencil.program(options.dtype).with_math(options.math)
        for stencil in read_patterns(options.pattern)
    ]
    return {
        f"{program.name}.cl": _source(program, options.strategy, options.kind)
        for program in programs
    }


def deliver(options: argparse.Namespace, kernels: Mapping[str, str]) -> None:
    """Print the texts, or write them, or both; OSError where that fails."""
    if options.print:
        print("\n".join(kernels.values()), end="", flush=True)
    if options.output is not None or not options.print:
        write_kernels(Path(options.output or "."), kernels)


def _source(program: Program, strategy: str | None, kind: str | None) -> str:
    """The text for a strategy, or for a large box on a kind of device; by default "cell"."""
    stage = program.stages[0]
    if strategy is None:
        config = choose(program, stage, kind) if kind else config_of("cell", program, stage)
        return _text(program, config)
    meant = strategy_named(strategy).kind
    if kind is not None and meant not in ("", kind):
        raise ValueError(
            f"the strategy {strategy!r} is for the device {meant!r}, got {kind!r}; "
            f"leave out one of --strategy and --device"
        )
    return _text(program, config_of(strategy, program, stage))


def _text(program: Program, config: Config) -> str:
    return launch_line(config) + generate(program, program.stages[0], config).source


def write_kernels(folder: Path, texts: Mapping[str, str]) -> None:
    """Make the files, and the folder; a reader sees all of a file or nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in texts:
        check_target(folder / name)
    for name, text in texts.items():
        with replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")
