# SPDX-License-Identifier: MIT
"""A user's kernel that does other than its pattern declares is refused, and the fault is named."""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import product

import pytest
from sample import sample

from controllers import Field, Kernel, Program, Read, Stage, Stencil
from controllers.check.trial import KernelError, check_kernel
from controllers.device import choose, find_devices
from controllers.executor.opencl import OpenCLExecutor

CROSS = [0, 1, 0, 1, 0, 1, 0, 1, 0]


def check(
    body: str, pattern: Sequence[float] = CROSS, dtype: str = "float32", n_axes: int = 2
) -> None:
    program = Stencil.of("s", [(-1, 1)] * n_axes, pattern, 1).program(dtype)
    (device,) = choose(["cpu:0"], find_devices())
    kernel = Kernel.of("mine", body)
    check_kernel(OpenCLExecutor(device, kernel=kernel), program, kernel)


@pytest.mark.parametrize(
    ("body", "fault"),
    sample([
        ("NEW(u) = HERE(u);", r"reads u at the offset \(0, 0\)"),
        ("NEW(u) = NEAR(u, 1, 1);", r"reads u at the offset \(1, 1\)"),
        ("NEW(u) = NEAR(u, 0, -1) + 0 * NEAR(u, 0, -2);", r"reads u at the offset \(0, -2\)"),
        ("NEW(u) = NEAR(u, 0, 1) > 5 ? NEAR(u, -3, 3) : 1;", r"at the offset \(-3, 3\)"),
        ("NEW(u) = NEAR(u, 0, 40);", "reads u 40 elements behind its cell"),
        ("NEW(u) = NEAR(u, -20, 0);", r"reads u .*(before its cell|offset \(-20, 0\))"),
        ("NEW(u) = AT(u, 0, 0);", r"reads u at the offset \(-1, -1\)"),
        ("", "holds no OpenCL C"),
        ("const float a = NEAR(u, 0, 1);", "does not set its cell"),
        ("if (NEAR(u, 0, 1) > 0.5f) NEW(u) = 1;", "does not set its cell|held before"),
        ("NEW(u) += NEAR(u, 0, 1);", "what u_new held before"),
        ("NEW(u) = 1; u_new[ELEMENT(u) - 1] = 1;", r"writes u_new at the offset \(0, -1\)"),
        ("NEW(u) = 1; u_new[ELEMENT(u) + u_pitch_0] = 1;", r"writes u_new at the offset \(1, 0\)"),
        ("NEW(u) = LOCAL(1) * NEAR(u, 0, 1);", "a box of its own and in a larger one"),
        ("NEW(u) = EXTENT(0);", "a box of its own and in a larger one"),
        ("if (LOCAL(0) == 0) NEW(u) = 1;", "a box of its own and in a larger one"),
    ], 3),
)
def test_what_the_pattern_does_not_declare_is_named(body: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault) as caught:
        check(body)
    assert isinstance(caught.value, KernelError) or not body


@pytest.mark.parametrize(("n_axes", "dtype"), sample(
    product([2, 1, 3, 4], ["float32", "float64", "uint8", "int64"]), 100
))  # fmt: skip
def test_a_kernel_that_keeps_to_its_pattern_passes(n_axes: int, dtype: str) -> None:
    after = ", ".join(["0"] * (n_axes - 1) + ["1"])
    pattern = [0] * 3**n_axes
    pattern[3**n_axes // 2 + 1] = 1
    check(f"NEW(u) = NEAR(u, {after}) / 2 + INDEX(0);", pattern, dtype, n_axes)
    with pytest.raises(KernelError, match=rf"offset \({', '.join(['0'] * n_axes)},?\)"):
        check(f"NEW(u) = NEAR(u, {after}) + HERE(u);", pattern, dtype, n_axes)


@pytest.mark.parametrize(
    ("body", "fault"),
    sample([
        ("NEW(u) = HERE(v); NEW(v) = NEAR(u, 0, 1);", ""),
        ("NEW(u) = HERE(v);", r"does not set its cell; write NEW\(v\)"),
        ("NEW(u) = HERE(v); NEW(v) = HERE(u);", r"reads u at the offset \(0, 0\)"),
        ("NEW(u) = NEAR(v, 1, 0); NEW(v) = NEAR(u, 0, 1);", r"reads v at the offset \(1, 0\)"),
        ("NEW(u) = HERE(v); NEW(v) = 1; NEW(v) += HERE(v); v_new[ELEMENT(v) - 1] = 1;",
         r"writes v_new at the offset \(0, -1\); .* as NEW\(v\) does"),
        ("NEW(u) = HERE(v); NEW(v) += 1;", "what v_new held before"),
    ], 3),
)  # fmt: skip
def test_each_field_that_a_stage_updates_is_looked_at(body: str, fault: str) -> None:
    swap = {"u": Read("v", (0, 0)), "v": Read("u", (0, 1))}
    fields = Field("u", "float32"), Field("v", "float32")
    program = Program("swap", fields, (Stage("swap", swap, ((0, 0), (0, 1))),))
    (device,) = choose(["cpu:0"], find_devices())
    kernel = Kernel.of("mine", body)
    with pytest.raises(KernelError, match=fault) if fault else nullcontext():
        check_kernel(OpenCLExecutor(device, kernel=kernel), program, kernel)


def test_the_message_names_kernel_file_and_device(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "wrong.cl"
    path.write_text("NEW(u) = HERE(u);")
    program = Stencil.of("s", [(-1, 1)], [1, 0, 1], 1).program("float32")
    (device,) = choose(["cpu:0"], find_devices())
    kernel = Kernel.of("mine", path)
    with pytest.raises(KernelError) as caught:
        check_kernel(OpenCLExecutor(device, kernel=kernel), program, kernel)
    for part in ("'mine'", str(path), device.name, "(0,)", "(-1,), (1,)", "give the pattern"):
        assert part in str(caught.value)


def test_a_stencil_that_reaches_very_far_is_not_checked_but_said_so() -> None:
    program = Stencil.of("far", [(10**8, 10**8)], [1], 1).program("float32")
    (device,) = choose(["cpu:0"], find_devices())
    kernel = Kernel.of("mine", "NEW(u) = NEAR(u, 100000000);")
    with pytest.warns(UserWarning, match="'mine' is not checked"):
        check_kernel(OpenCLExecutor(device, kernel=kernel), program, kernel)
