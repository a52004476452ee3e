# SPDX-License-Identifier: MIT
"""Loads files of PoCL's cache, in a process of its own that a damaged one may end.

    python -m controllers.doctor.loading DRIVER LIST

LIST is a JSON file of paths.  Each is announced before it is loaded, and has a line more if it
cannot be.
"""
from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
import warnings
from pathlib import Path

import pyopencl as cl

from controllers.device.driver import Driver, loading_only
from controllers.doctor.kernel_cache import MARK
from controllers.process.invoker import keep_invokers_in_memory


def main(library: str, listed: str) -> None:
    """Load what is listed, saying so."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    warnings.simplefilter("ignore")
    keep_invokers_in_memory()
    with loading_only([Driver(library)]):
        device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    for name in json.loads(Path(listed).read_text("utf-8")):
        _say(path=name)
        try:
            if name.endswith(".so"):
                ctypes.CDLL(name)
            else:
                _build(context, name)
        except (OSError, ValueError, cl.Error) as error:
            if os.path.lexists(name):   # else removed in the meantime
                _say(path=name, problem=" ".join(str(error).split())[:200])
    os._exit(0)     # a driver that stumbles over its remains would seem to over the last file


def _build(context: cl.Context, name: str) -> None:
    """Have the driver read a program as it reads its cache."""
    program = cl.Program(context, context.devices, [Path(name).read_bytes()])
    program.build(cache_dir=False)  # type: ignore[arg-type]
    if not program.all_kernels():
        raise ValueError("the driver finds no kernel in it")


def _say(**facts: object) -> None:
    print(MARK + json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
