# SPDX-License-Identifier: MIT
"""`controllers docs`: the documentation, which travels with the package."""
from __future__ import annotations

import argparse

from controllers.cli.companions import folder, page, pages, show, title
from controllers.cli.outcome import on_root
from controllers.report.table import format_table
from hitmap.comm import Communicator

HELP = "list the pages of the documentation, or print one"
DESCRIPTION = (
    "List the pages of the documentation and the folder that holds them, or print one (Markdown)."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("page", metavar="PAGE", nargs="?", help="such as kernels or tuning")


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Print, on rank 0.  Collective."""
    on_root(comm, lambda: show(_listed() if options.page is None else page(options.page)))


def _listed() -> str:
    rows = [(name, title(path)) for name, path in pages().items()]
    return f"{format_table(('page', 'title'), rows, left=('page', 'title'))}\nin {folder('docs')}"
