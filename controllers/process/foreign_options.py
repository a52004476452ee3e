# SPDX-License-Identifier: MIT
"""Build options that the environment adds to everybody's kernels.

They can change the bits of a result (`-cl-fast-relaxed-math`), on one rank of several too.  Strict
arithmetic builds without those that PyOpenCL and PoCL read at each build, and refuses those that a
driver reads when it likes.  Fast arithmetic takes them; all ranks must have the same then.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from controllers.process.environment import environment

READ_AT_BUILDS = ("PYOPENCL_BUILD_OPTIONS", "POCL_EXTRA_BUILD_FLAGS")
# by a word of the platform's name; the AMD driver reads its ones when it is loaded
READ_LATER = {
    "portable computing language": ("POCL_BITCODE_FINALIZER",),
    "amd accelerated": (
        "AMD_OCL_BUILD_OPTIONS", "AMD_OCL_BUILD_OPTIONS_APPEND", "AMD_OCL_LINK_OPTIONS",
        "AMD_OCL_LINK_OPTIONS_APPEND",
    ),
}  # fmt: skip


def foreign_options() -> dict[str, str]:
    """The variables of this kind that are set, with their values."""
    names = (*READ_AT_BUILDS, *(name for names in READ_LATER.values() for name in names))
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def without_foreign_options() -> AbstractContextManager[None]:
    """What is built in here is built without them."""
    present = [name for name in READ_AT_BUILDS if name in os.environ]
    return environment(dict.fromkeys(present)) if present else nullcontext()


def refuse_foreign_options(platform: str) -> None:
    """ValueError where a driver would add options to kernels of strict arithmetic."""
    for word, names in READ_LATER.items():
        found = [name for name in names if os.environ.get(name)]
        if found and word in platform.lower():
            raise ValueError(
                f"{', '.join(found)} may change the results of strict arithmetic on "
                f"{platform.strip()}; unset it, or choose --math fast"
            )


def left_out(rank: int, math: str) -> Sequence[str]:
    """What to warn of: variables that strict arithmetic does not heed."""
    found = [name for name in READ_AT_BUILDS if os.environ.get(name)]
    if not found or math != "strict":
        return []
    return [
        f"rank {rank} has {' and '.join(found)} set, which strict arithmetic leaves out of its "
        f"kernels; --math fast takes it"
    ]
