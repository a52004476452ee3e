# SPDX-License-Identifier: MIT
"""Pattern files: stencils as literals in Python's syntax.  Parsed, never executed.

    shape = ((-1, 1), (-1, 1))            # inclusive first and last offset per axis
    pattern = [[0, 1, 0],
               [1, 0, 1],
               [0, 1, 0]]                 # flat or nested, C order
    factor = 4                            # divides the sum
    name = "jacobi_2d4"                   # optional: the file's name without ending

or several stencils as shape_NAME, pattern_NAME, factor_NAME.  A docstring and comments may stand
beside. The tokens are checked first, so that the parser, which recurses, never sees a deep
structure.
"""
from __future__ import annotations

import ast
import io
import os
import tokenize
from pathlib import Path
from typing import Any, Union

from controllers.language.weights import Stencil, checked_ends
from controllers.process.error import ControllersError
from controllers.program.identifier import check_identifier, short
from hitmap.files import NoTextError, decoded, open_regular

MAX_BYTES = 1 << 20
MAX_DEPTH = 8  # brackets within brackets
MAX_TOKEN = 400  # characters of a name or a number; all of float64, written out
KEYS = ("shape", "pattern", "factor")
PathLike = Union[str, "os.PathLike[str]"]
_QUIET = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER}


class PatternFileError(ControllersError, ValueError):
    """A pattern file that cannot be used; the message begins with the file and the line."""

    __module__ = "controllers"


class _Fault(Exception):
    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def read_patterns(path: PathLike) -> tuple[Stencil, ...]:
    """The stencils of a pattern file, in the order in which their first assignment stands.

    OSError where the file cannot be read, PatternFileError where it is not a pattern file.
    """
    path = Path(path)
    with open_regular(path) as file:
        content = file.read(MAX_BYTES + 1)
    try:
        assignments = _assignments(_decoded(content))
        groups = _groups(assignments)
        if not groups:
            raise _Fault(1, f"found no stencil; assign {', '.join(KEYS)}")
        stencils = tuple(_stencil(name, group, path.stem) for name, group in groups.items())
        _refuse_equal_names(stencils, groups)
    except _Fault as fault:
        raise PatternFileError(f"{path}:{fault.line}: {fault}") from None
    return stencils


def is_literal(path: PathLike) -> bool:
    """Whether a file assigns literals and does nothing else, as a pattern file; it is not executed.

    OSError where it cannot be read.
    """
    with open_regular(Path(path)) as file:
        content = file.read(MAX_BYTES + 1)
    try:
        return bool(_assignments(_decoded(content)))
    except _Fault:
        return False


def _decoded(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise _Fault(1, f"a pattern file has at most {MAX_BYTES} bytes, this one has more")
    try:
        text = decoded(content)
    except NoTextError as error:
        raise _Fault(error.line, str(error)) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _assignments(source: str) -> dict[str, tuple[int, Any]]:
    """Name -> (line, value) of every assignment; values are numbers, strings and nested lists."""
    try:
        _check_tokens(source)
        statements = ast.parse(source).body
    except (tokenize.TokenError, SyntaxError, ValueError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        raise _Fault(
            line or source.count("\n") + 1, f"not Python's syntax: {error.args[0]}"
        ) from None
    assignments: dict[str, tuple[int, Any]] = {}
    for place, statement in enumerate(statements):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if name in assignments:
                raise _Fault(statement.lineno, f"{short(name)} is assigned twice; keep one")
            assignments[name] = statement.lineno, _value(statement.value)
        elif place > 0 or not isinstance(statement, ast.Expr):
            raise _Fault(statement.lineno, "only assignments of literals may stand here")
    return assignments


# Which token may come after which; an "end" is the end of a line outside brackets.
_VALUE = {"number", "string", "-", "opening"}
_FOLLOWING = {
    "end": {"name", "string", "end"},
    "name": {"="},
    "=": _VALUE,
    "-": {"number"},
    "opening": _VALUE | {"closing"},
    ",": _VALUE | {"closing", "end"},
    "number": {",", "closing", "end"},
    "string": {",", "closing", "end"},
    "closing": {",", "closing", "end"},
}


def _check_tokens(source: str) -> None:
    """Raise _Fault where a token is no part of an assignment of literals, too long or too deep."""
    before, depth = "end", 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _QUIET:
            continue
        kind, line = _kind(token), token.start[0]
        if kind not in _FOLLOWING[before]:
            raise _Fault(
                line,
                f"{short(token.string)} cannot stand here: a pattern file assigns literals only "
                "(numbers with or without -, strings, lists and tuples)",
            )
        if kind in ("name", "number") and len(token.string) > MAX_TOKEN:
            raise _Fault(
                line, f"a {kind} of {len(token.string)} characters, the limit is {MAX_TOKEN}"
            )
        depth += (kind == "opening") - (kind == "closing")
        if depth > MAX_DEPTH:
            raise _Fault(
                line, f"brackets nested deeper than {MAX_DEPTH}; a pattern has at most 4 axes"
            )
        before = kind


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return "name"
    if token.type == tokenize.NUMBER:
        return "number"
    if token.type == tokenize.STRING and token.string[0] in "'\"":
        return "string"
    if token.type == tokenize.NEWLINE:
        return "end"
    if token.type == tokenize.OP:
        return {"(": "opening", "[": "opening", ")": "closing", "]": "closing"}.get(
            token.string, token.string
        )
    return "other"


def _value(node: ast.expr) -> Any:
    """The value of a literal; nested at most MAX_DEPTH deep, as the tokens were."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(element) for element in node.elts]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        return node.value
    got = short(node.value) if isinstance(node, ast.Constant) else type(node).__name__
    raise _Fault(
        node.lineno, f"a value is a number, a string, or a list or tuple of numbers, got {got}"
    )


def _groups(assignments: dict[str, tuple[int, Any]]) -> dict[str, dict[str, tuple[int, Any]]]:
    """Assignments by stencil: {NAME: {"shape": ..., ...}}; NAME is "" for the plain ones."""
    groups: dict[str, dict[str, tuple[int, Any]]] = {}
    for name, (line, value) in assignments.items():
        key, _, suffix = name.partition("_")
        if name != "name" and key not in KEYS:
            raise _Fault(
                line,
                f"unknown name {short(name)}; use {', '.join(KEYS)} and, if wanted, name, "
                "or by these with _NAME behind (name excepted)",
            )
        groups.setdefault(suffix, {})[key] = line, value
    for suffix, group in groups.items():
        ending = f"_{suffix}" if suffix else ""
        for key in KEYS:
            if key not in group:
                first = min(line for line, _ in group.values())
                raise _Fault(first, f"{key}{ending} is missing; assign it")
    return groups


def _stencil(suffix: str, group: dict[str, tuple[int, Any]], stem: str) -> Stencil:
    line, name = group.get("name", (group["shape"][0], suffix or stem))
    if not isinstance(name, str):
        raise _Fault(line, f"name is a string, got {short(name)}")
    try:
        check_identifier(name, "stencil")
    except ValueError as error:
        hint = (
            ""
            if suffix or "name" in group
            else ': it is the file\'s name; add name = "..." to the file'
        )
        raise _Fault(line, f"{error}{hint}") from None
    line, shape = group["shape"]
    if not isinstance(shape, list):
        raise _Fault(line, f"shape is one pair (first, last) per axis, got {short(shape)}")
    try:
        checked_ends(shape, f"stencil {name!r}")
        line, pattern = group["pattern"]
        Stencil.of(name, shape, pattern, 1)     # what is wrong now is wrong with the pattern
        line, factor = group["factor"]
        return Stencil.of(name, shape, pattern, factor)
    except ValueError as error:
        raise _Fault(line, str(error)) from None


def _refuse_equal_names(
    stencils: tuple[Stencil, ...], groups: dict[str, dict[str, tuple[int, Any]]]
) -> None:
    seen: set[str] = set()
    for stencil, group in zip(stencils, groups.values()):
        if stencil.name in seen:
            raise _Fault(group["shape"][0], f"a second stencil called {stencil.name!r}; rename one")
        seen.add(stencil.name)
