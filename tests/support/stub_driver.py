# SPDX-License-Identifier: MIT
"""Drivers that never return, end the process, or fill wrongly.

The first two are compiled when a test asks for them; for the last, PyOpenCL's function is
replaced.
"""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest

from controllers.device.driver import installed_drivers

HANGS = "for (;;) pause();"
ABORTS = "abort();"
_SOURCE = """
#include <stdlib.h>
#include <unistd.h>
void *clGetExtensionFunctionAddress(const char *name) { (void)name; %s return 0; }
"""


def make_driver(folder: Path, name: str, what: str) -> None:
    """A driver in `folder` that does `what` when the loader asks it for its functions."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder.mkdir(exist_ok=True)
    source, library = folder / f"{name}.c", folder / f"lib{name}.so"
    source.write_text(_SOURCE % what)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    (folder / f"{name}.icd").write_text(str(library))


def copy_drivers(folder: Path) -> None:
    """The drivers of this host, named in `folder`."""
    folder.mkdir(exist_ok=True)
    for number, driver in enumerate(installed_drivers()):
        (folder / f"{number}.icd").write_text(driver.library)


def fill_modulo(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """The driver's fill as NVIDIA's is (580.159, one-byte patterns), with `limit` for 2^32.

    It never returns for sizes with the highest bit of those below the limit, which is an error
    here, and fills other sizes modulo the limit.
    """
    fill = cl.enqueue_fill_buffer

    def stub(
        queue: cl.CommandQueue, mem: Any, pattern: Any, offset: int, size: int, *rest: Any
    ) -> Any:
        if size & limit // 2:
            raise AssertionError(f"the driver never returns from filling {size} bytes")
        return fill(queue, mem, pattern, offset, size % limit, *rest)

    monkeypatch.setattr(cl, "enqueue_fill_buffer", stub)
