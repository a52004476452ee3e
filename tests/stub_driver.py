# SPDX-License-Identifier: MIT
"""Drivers that never return, or end the process, compiled when a test asks for them."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

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
