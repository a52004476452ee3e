# SPDX-License-Identifier: MIT
"""Kernels: OpenCL C becomes something that a controller can launch."""
from __future__ import annotations

import importlib.resources
import warnings
from collections.abc import Sequence

import pyopencl as cl


class BuildError(RuntimeError):
    """OpenCL C that does not compile: says kernel, device, options and the compiler's log."""


def build(context: cl.Context, name: str, source: str, options: Sequence[str] = ()) -> cl.Program:
    """Compile `source` for the one device of `context`; its kernel is called `name`.

    The driver's own cache is used, and not PyOpenCL's: that one keeps pickles behind a lock
    that a killed rank leaves behind.
    """
    device = context.devices[0]
    try:
        with warnings.catch_warnings():     # drivers are talkative; errors are exceptions
            warnings.simplefilter("ignore", cl.CompilerWarning)
            program: cl.Program = cl.Program(context, source).build(
                options=list(options), cache_dir=False  # type: ignore[arg-type]
            )
        return program
    except cl.RuntimeError as error:
        raise BuildError(
            f"kernel {name!r} does not compile on {device.name.strip()!r} "
            f"with options {' '.join(options) or 'none'}: {error}"
        ) from None


def fixed_source(name: str) -> str:
    """The text of `kernels_cl/NAME.cl`, a kernel that is written by hand."""
    return (importlib.resources.files("kernels_cl") / f"{name}.cl").read_text("utf-8")
