# SPDX-License-Identifier: MIT
"""The OpenCL drivers of this host, found without loading any of them.

A driver is a library named in an `.icd` file.  The loader reads these files at the first OpenCL
call of a process and loads all libraries at once, so that one of them that never returns would
stop the process: `loading_only` leaves such ones out.  It works with ocl-icd, which PyOpenCL's
wheels contain, and with Khronos's loader.
"""
from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from controllers.process.environment import environment

_DEFAULT_FOLDER = "/etc/OpenCL/vendors"


@dataclass(frozen=True)
class Driver:
    """A library, as the loader is told it, and the `.icd` file that does so.

    Without a library it stands for all that the loader finds in places of its own.
    """

    library: str
    icd: str = ""

    @property
    def name(self) -> str:
        """How messages call it."""
        return self.icd or self.library or "the OpenCL loader"


def installed_drivers() -> list[Driver]:
    """What the loader would load, in order; all that it finds as one, where we find nothing."""
    found = [_read(path) for path in _icd_files()]
    vendors = os.environ.get("OCL_ICD_VENDORS", "")
    if vendors and not vendors.endswith(".icd") and not Path(vendors).is_dir():
        found = [Driver(vendors)]       # ocl-icd takes the name of a library as well
    more = os.environ.get("OCL_ICD_FILENAMES", "").split(os.pathsep)
    drivers = [*(Driver(name) for name in more if name), *(d for d in found if d.library)]
    return list(dict.fromkeys(drivers)) or [Driver("")]


def _icd_files() -> list[Path]:
    wanted = os.environ.get("OCL_ICD_VENDORS") or os.environ.get("OPENCL_VENDOR_PATH")
    if wanted and wanted.endswith(".icd"):
        return [Path(_DEFAULT_FOLDER, wanted)]      # an absolute path stays as it is
    conda = os.environ.get("CONDA_PREFIX", sys.prefix)
    folders = [Path(wanted)] if wanted else [
        Path(_DEFAULT_FOLDER), Path(conda, _DEFAULT_FOLDER[1:])
    ]  # fmt: skip
    package = importlib.util.find_spec("pyopencl")
    if package is not None and package.origin is not None:
        folders.append(Path(package.origin).parent / ".libs")   # read in any case
    return [path for folder in folders for path in sorted(folder.glob("*.icd"))]


def _read(icd: Path) -> Driver:
    """The library of an `.icd` file, by its whole path where it lies beside it."""
    try:
        library = icd.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:     # the loader passes over it too
        return Driver("", str(icd))
    beside = icd.parent / library
    return Driver(str(beside) if library and beside.is_file() else library, str(icd))


@contextmanager
def loading_only(drivers: Sequence[Driver]) -> Iterator[None]:
    """The first OpenCL call of this process, if it is made in here, loads just these drivers.

    Later ones have no influence: the loader looks once.
    """
    if drivers == [Driver("")]:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="controllers-") as folder:
        for number, driver in enumerate(drivers):
            Path(folder, f"{number:03}.icd").write_text(f"{driver.library}\n", encoding="utf-8")
        # PyOpenCL sets PYOPENCL_HOME when it is imported, and its loader reads .libs there
        names = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "PYOPENCL_HOME")
        with environment({**dict.fromkeys(names, folder), "OCL_ICD_FILENAMES": ""}):
            yield
