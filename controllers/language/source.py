# SPDX-License-Identifier: MIT
"""OpenCL C that a user wrote: a text, or a file.

It takes one of two forms.  A *body* holds the statements that compute one cell, and gets its
parameter list from what it is used for.  A *whole kernel* is a file with a `__kernel` function
and whatever else it needs.  Both see the macros of kernels_cl/accessors.cl.
"""
from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Union

from hitmap.argument import wrong
from hitmap.files import NoTextError, decoded, open_regular

SourceLike = Union[str, "os.PathLike[str]"]
MAX_BYTES = 1 << 24     # of a file
BODY_NAME = "user_kernel"   # of the kernel that is made from a body

BYTE_ORDER_MARK = "\ufeff"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NO_CODE = re.compile(rf'"(?:\\.|[^"\\\n])*"|{_COMMENT.pattern}', re.DOTALL)
_BRACE = re.compile(r"[{}]")
_KERNEL = re.compile(
    r"\b(?:__kernel|kernel)\b\s*(?:__attribute__\s*\(\(.*?\)\)\s*)*void\s+(?:__attribute__\s*"
    r"\(\(.*?\)\)\s*)*(\w+)\s*\("
)


@dataclass(frozen=True)
class KernelSource:
    """The text, and the name of the file that it comes from; "" where it was given as text."""

    text: str
    file: str = ""

    @classmethod
    def of(cls, source: SourceLike) -> KernelSource:
        """`source` is OpenCL C, or a path: a `Path`, or a line that ends with .cl.

        OSError where the file cannot be read, ValueError where there is nothing in it.

        >>> KernelSource.of("NEW(u) = HERE(u);")
        KernelSource(text='NEW(u) = HERE(u);', file='')
        """
        if not isinstance(source, (str, os.PathLike)):
            raise wrong("source", "OpenCL C as a text, or a path", source, "write a text or a Path")
        is_path = not isinstance(source, str) or ("\n" not in source and source.endswith(".cl"))
        if is_path:
            result = cls(_read(Path(source)), str(source))
        else:
            result = cls(str(source).removeprefix(BYTE_ORDER_MARK))
        if not _COMMENT.sub("", result.text).strip():
            raise ValueError(f"{result.file or 'a kernel'} holds no OpenCL C; write a body")
        return result

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of its `__kernel` functions; none in a body.

        >>> KernelSource("__kernel void a(__global int *x) {} // __kernel void b(").kernels
        ('a',)
        """
        return tuple(_KERNEL.findall(_COMMENT.sub(" ", self.text)))

    def kernel_name(self, preferred: str) -> str:
        """The one to use: the only one, or the one called `preferred`."""
        names = self.kernels
        if not names:
            return BODY_NAME
        if preferred in names:
            return preferred
        if len(names) > 1:
            raise ValueError(
                f"{self.file or 'the source'} holds the kernels {', '.join(names)} and none is "
                f"called {preferred!r}; use the name of one"
            )
        return names[0]

    def body(self, name: str) -> str:
        """The code of the kernel `name` between its braces; see `code`.

        >>> KernelSource("__kernel void a(int x) { if (x) { } } // end").body("a")
        '{ if (x) { } }'
        """
        for found in _KERNEL.finditer(self.code):
            if found[1] == name:
                return _braced(self.code[found.end() :])
        return ""

    def may_name(self, parameter: str) -> bool:
        """Whether the code of whole kernels holds this name, or may get it from elsewhere.

        >>> source = KernelSource("__kernel void a(__global int *x) {}")
        >>> source.may_name("x"), source.may_name("y")
        (True, False)
        """
        elsewhere = not self.kernels or "#include" in self.text or "##" in self.text
        return elsewhere or re.search(rf"\b{re.escape(parameter)}\b", self.code) is not None

    @property
    def code(self) -> str:
        """The text without comments and texts in quotes, continued lines put together."""
        return _NO_CODE.sub(" ", self.text.replace("\\\n", " "))

    def complete(self, front: str, parameters: str) -> str:
        """What the compiler gets: `front`, then this text, numbered by its own file and lines.

        A body becomes the kernel BODY_NAME with these `parameters`.
        """
        file = self.file.replace("\\", "\\\\").replace('"', '\\"') or "kernel"
        numbered = f'#line 1 "{file}"\n{self.text}\n'
        if self.kernels:
            return f"{front}\n{numbered}"
        return f"{front}\n__kernel void {BODY_NAME}({parameters})\n{{\nCELL;\n{numbered}}}\n"


def _read(path: Path) -> str:
    with open_regular(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES} bytes, the limit; write a shorter one")
    try:
        return decoded(content)
    except NoTextError as error:
        raise ValueError(f"{path}:{error.line}: {error}") from None


def _braced(text: str) -> str:
    """From the first opening brace to the one that closes it, or to the end."""
    start, depth = text.find("{"), 0
    for brace in _BRACE.finditer(text):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[start : brace.end()]
    return text[start:]
