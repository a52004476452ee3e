# SPDX-License-Identifier: MIT
"""A structured dtype beside the struct of a kernel, as the device's compiler lays that out.

NumPy packs the fields of a dtype, compilers align those of a struct: unless both agree, a kernel
reads garbage.  A kernel that is added to the user's text reports the layout.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.kernel.build import BuildError, build, compiled

_NAME = "cell_layout_"
_REMEDY = (
    "declare both alike: np.dtype(..., align=True) for a plain struct, "
    "__attribute__((packed)) for a packed dtype"
)


def check_structure(
    context: cl.Context, kernel: str, text: str, type_name: str, dtype: np.dtype[Any]
) -> None:
    """TypeError where `type_name`, a type in the OpenCL C `text`, lies otherwise than `dtype`.

    Sizes are compared, and offsets and sizes of the fields where the struct has fields of these
    names.  What the compiler does not tell is not compared.
    """
    fields = dict(dtype.fields or {})
    found = _layout(context, text, type_name, list(fields))
    if found is None:
        fields = {}
        found = _layout(context, text, type_name, [])
    if found is None:
        return
    what = f"kernel {kernel!r}: the struct {type_name!r} and the tile's dtype {dtype} differ"
    if found[0] != dtype.itemsize:
        raise TypeError(
            f"{what}: {found[0]} bytes on the device, {dtype.itemsize} in NumPy; {_REMEDY}"
        )
    for (name, (inner, offset, *_)), there, nbytes in zip(
        fields.items(), found[1::2], found[2::2], strict=True
    ):
        if (there, nbytes) != (offset, inner.itemsize):
            raise TypeError(
                f"{what}: the field {name!r} has {nbytes} bytes from offset {there} on the "
                f"device, {inner.itemsize} from offset {offset} in NumPy; {_REMEDY}"
            )


def _layout(
    context: cl.Context, text: str, type_name: str, fields: list[str]
) -> npt.NDArray[np.uint64] | None:
    """The size of the type, and per field its offset and size; None where it has no such field."""
    facts = [f"sizeof({type_name})"]
    for name in fields:
        if not name.isidentifier():
            return None
        start = f"(__private char *)&cell_it.{name} - (__private char *)&cell_it"
        facts += [f"(ulong)({start})", f"sizeof(cell_it.{name})"]
    lines = [
        text,
        f"__kernel void {_NAME}(__global ulong *cell_facts)",
        "{",
        *([f"    {type_name} cell_it;"] if fields else []),
        *(f"    cell_facts[{number}] = {fact};" for number, fact in enumerate(facts)),
        "}\n",
    ]
    try:
        program = build(context, _NAME, "\n".join(lines))
        kernel = compiled(program, _NAME)
    except BuildError:
        return None
    result = np.empty(len(facts), np.uint64)
    queue = cl.CommandQueue(context)    # of its own: others may be busy
    buffer = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, result.nbytes)
    kernel.set_args(buffer)
    cl.enqueue_nd_range_kernel(queue, kernel, (1,), None)
    cl.enqueue_copy(queue, result, buffer)
    return result
