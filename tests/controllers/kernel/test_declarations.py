# SPDX-License-Identifier: MIT
"""Generated text brings the declarations of what it calls: the same kernels, built sooner."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyopencl as cl
import pytest

from controllers.device import choose, find_devices
from controllers.kernel import build as kernel
from controllers.kernel.declarations import NO_HEADER, WITH_THE_HEADER, declared

REALS = (
    "sqrt({x})", "fabs({x})", "floor({x})", "ceil({x})", "rint({x})", "trunc({x})", "exp({x})",
    "exp2({x})", "expm1({x})", "log({x})", "log2({x})", "log10({x})", "log1p({x})", "sin({x})",
    "cos({x})", "tan({x})", "asin({x})", "acos({x})", "atan({x})", "sinh({x})", "cosh({x})",
    "tanh({x})", "cbrt({x})", "fmod({x}, 0.3{f})", "copysign({x}, -{x})", "atan2({x}, {x})",
    "hypot({x}, {x})", "pow({x}, {x})", "fma({x}, {x}, {x})", "min({x}, 0.5{f})",
    "max({x}, 0.5{f})", "(isnan({x}) ? 1 : 2)", "(isinf({x}) ? 1 : 2)", "(isfinite({x}) ? 1 : 2)",
    "(signbit({x}) ? 1 : 2)",
)  # fmt: skip
WHOLE = (
    "abs(a[i])", "min(a[i], 5L)", "max(a[i], 5L)", "convert_long(a[i])", "atom_add(b, 2L)",
    "atom_max(b, 5L)", "get_global_id(0)", "get_num_groups(0)", "get_work_dim()",
    "convert_long4((long4)(a[i])).w", "abs((long4)(a[i])).y", "max((int8)((int)a[i]), 7).s3",
)  # fmt: skip


@pytest.fixture(scope="module")
def context() -> cl.Context:
    (device,) = choose(["cpu:0"], find_devices())
    assert device.handle is not None
    if WITH_THE_HEADER not in device.handle.platform.version:
        pytest.skip(f"this driver is not{WITH_THE_HEADER}")
    return cl.Context([device.handle])


def kernel_of(forms: Sequence[str]) -> str:
    """A kernel of one work-item that calls all of these, as generated text does."""
    lines = ["__kernel void all_of_them(__global double *f, __global long *a, __global long *b) {"]
    lines.append("const int i = get_global_id(0); int at = 0; barrier(CLK_LOCAL_MEM_FENCE);")
    for form in forms:
        if "{x}" in form:
            single, double = form.format(x="(float)f[i]", f="f"), form.format(x="f[i]", f="")
            lines += [f"f[++at] = {single};", f"f[++at] = {double};"]
        else:
            lines.append(f"b[++at] = {form};")
    return "\n".join([*lines, "}"])


def results(program: cl.Program) -> tuple[bytes, bytes]:
    """What the kernel leaves."""
    context = program.get_info(cl.program_info.CONTEXT)
    assert isinstance(context, cl.Context)
    queue, flags = cl.CommandQueue(context), cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    real, whole = np.zeros(100), np.zeros(100, np.int64)
    real[0], whole[0] = 0.7, -9
    buffers = [cl.Buffer(context, flags, hostbuf=array) for array in (real, whole, whole)]
    made = cl.Kernel(program, "all_of_them")
    made.set_args(*buffers)
    cl.enqueue_nd_range_kernel(queue, made, (1,), (1,)).wait()
    cl.enqueue_copy(queue, real, buffers[0])
    cl.enqueue_copy(queue, whole, buffers[2])
    return real.tobytes(), whole.tobytes()


@pytest.mark.parametrize("text", [
    "__kernel void f(__global int *a) { a[0] = clz(a[1]); }",
    "__kernel void f(__global int *a) { vstore2((int2)(1), 0, a); }",
    '#line 1 "mine.cl"\n__kernel void f(__global int *a) { a[0] = 1; }',
    '#include "mine.h"\n__kernel void f(__global int *a) { a[0] = 1; }',
    "__kernel void f(__global int *a) { a[0] = convert_int_rte(a[0]); }",
])  # fmt: skip
def test_text_of_others_or_with_further_functions_is_left_as_it_is(text: str) -> None:
    assert declared(text) is None


def test_only_what_is_called_is_declared() -> None:
    own = "static int own(int x) { return x; } // sqrt("
    text = f"{own}\n#define TWICE(x) (2 * own(x))\n__kernel void f() {{}}"
    assert declared(text) == text
    front = declared("__kernel void f(__global int *a) { if (a[0]) a[0] = isnan(2.0f); }")
    assert front is not None and front.count("isnan(") == 13 and "sqrt" not in front


@pytest.mark.parametrize("at", [0, pytest.param(1, marks=pytest.mark.whole)])
def test_kernels_have_the_bits_that_the_header_gives(context: cl.Context, at: int) -> None:
    text = kernel_of((WHOLE, REALS)[at])
    front = declared(text)
    assert front is not None
    ours = cl.Program(context, front).build([NO_HEADER], cache_dir=False)  # type: ignore[arg-type]
    theirs = cl.Program(context, text).build(cache_dir=False)  # type: ignore[arg-type]
    found = results(ours)
    assert found == results(theirs)
    assert np.count_nonzero(np.frombuffer(found[1 - at], np.int64)) >= (8, 60)[at]   # computed


def test_builds_use_them_once_and_errors_are_those_of_the_text_itself(
    context: cl.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[Sequence[str]] = []
    built = kernel._built

    def noting(program: cl.Program, its: Sequence[str]) -> cl.Program:
        options.append(its)
        return built(program, its)

    monkeypatch.setattr(kernel, "_built", noting)
    kernel.build(context, "all_of_them", kernel_of(WHOLE))
    assert options == [[NO_HEADER]]
    with pytest.raises(kernel.BuildError, match="undeclared identifier 'y'") as error:
        kernel.build(context, "wrong", "__kernel void wrong(__global int *x) { x[0] = y; }")
    assert NO_HEADER not in str(error.value) and len(options) == 3
