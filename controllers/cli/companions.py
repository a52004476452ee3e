# SPDX-License-Identifier: MIT
"""What travels with the code: documentation and examples, from a wheel as from a checkout."""
from __future__ import annotations

import ast
import os
import sys
from difflib import get_close_matches
from pathlib import Path

import controllers
from controllers.cli.outcome import FAILED, USAGE, Failure
from controllers.program.identifier import short


def folder(name: str) -> Path:
    """Where "docs" or "examples" lie: in the installed package, or at the top of a checkout."""
    package = Path(controllers.__file__).parent
    for place in (package / name, package.parent / name):
        if place.is_dir():
            return place
    raise Failure(FAILED, f"there is no folder {package / name}; install opencl-controllers again")


def show(text: str) -> None:
    """Print a text; a reader that has seen enough of it, such as `head`, is no failure."""
    try:
        print(text, flush=True)
    except BrokenPipeError:     # what is still to be written at the end goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def pages() -> dict[str, Path]:
    """The pages of the documentation by name, in order: first those of the top folder."""
    top = folder("docs")
    found = sorted(top.rglob("*.md"), key=lambda path: (len(path.parts), path))
    return {path.relative_to(top).with_suffix("").as_posix(): path for path in found}


def page(name: str) -> str:
    """The text of a page; `docs/NAME.md` will do as a name."""
    known = pages()
    wanted = name.removeprefix("docs/").removesuffix(".md")
    if wanted not in known:
        near = get_close_matches(wanted, known, 1)
        hint = f", did you mean {near[0]}?" if near else "; controllers docs lists all"
        raise Failure(USAGE, f"there is no page {short(name)}{hint}")
    return known[wanted].read_text("utf-8").rstrip("\n")


def title(path: Path) -> str:
    """What a page or an example says of itself in its first line."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return next((line[2:] for line in text.splitlines() if line.startswith("# ")), "")


def example_files() -> dict[str, Path]:
    """All files of the examples by name; what Python keeps beside them is none."""
    top = folder("examples")
    found = sorted(top.rglob("*"), key=lambda path: (len(path.parts), path))
    return {
        path.relative_to(top).as_posix(): path
        for path in found
        if path.is_file() and "__pycache__" not in path.parts
    }
