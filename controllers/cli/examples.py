# SPDX-License-Identifier: MIT
"""`controllers examples`: programs and pattern files to start from, listed or copied."""
from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from controllers.cli.companions import example_files, show, title
from controllers.cli.files import reason
from controllers.cli.outcome import FAILED, USAGE, Failure, on_root
from controllers.report.table import format_table
from hitmap.comm import Communicator

HELP = "list the examples, or copy them"
DESCRIPTION = "List the examples with a line for each, or copy all of them into a folder."


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "--copy", metavar="DIR", type=Path,
        help="a folder, which is made; no file that is there already is replaced",
    )  # fmt: skip


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """List or copy, on rank 0.  Collective."""
    on_root(comm, _list if options.copy is None else lambda: _copy(options.copy))


def _list() -> None:
    rows = [(name, title(path)) for name, path in example_files().items() if path.suffix == ".py"]
    table = format_table(("example", ""), rows, left=("example", ""))
    show(f"{table}\ncontrollers examples --copy DIR copies them")


def _copy(target: Path) -> None:
    files = example_files()
    for name in files:
        if (target / name).exists():
            raise Failure(USAGE, f"--copy {target}: has {name} already; choose another folder")
    try:
        for name, path in files.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)
    except OSError as error:
        raise Failure(FAILED, f"--copy {target}: {reason(error)}") from None
    show(f"{len(files)} files in {target}")
