# SPDX-License-Identifier: MIT
"""Builds: errors that say where, and what the compiler knows of parameters."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest

from controllers import Computation, Kernel, Stencil
from controllers.device import choose, find_devices
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel import build as kernel
from controllers.kernel.build import BuildError, build, build_user_kernel, compiled
from controllers.kernel.build_log import without_counts
from controllers.kgt.text.fixed import fixed_source

PROGRAM = Stencil.of("s", [(-1, 1)], [1, 0, 1], 1).program("float32")


@pytest.fixture(scope="module")
def controller() -> OpenCLExecutor:
    (device,) = choose(["cpu:0"], find_devices())
    return OpenCLExecutor(device)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("// a body\nconst float a = 1;\nNEW(u) = a + missing;\n", 3),
        ("__kernel void k(__global const float *u,\n __global float *u_new, TILE(u), BOX)\n"
         "{ CELL; NEW(u) = missing; }\n", 3),
    ],
)  # fmt: skip
def test_an_error_in_a_users_file_is_found_by_file_and_line(
    text: str, line: int, tmp_path: Path
) -> None:
    path = tmp_path / "my kernel.cl"
    path.write_text(text)
    with pytest.raises(BuildError) as caught:
        Computation(PROGRAM, 9, devices="cpu", kernel=Kernel.of("mine", path))
    message = str(caught.value)
    device = choose(["cpu:0"], find_devices())[0].name
    for part in (f"'mine' ({path})", device, "-cl-kernel-arg-info", f"{path}:{line}:", "missing"):
        assert part in message


def test_a_build_error_quotes_the_lines_that_it_names(
    controller: OpenCLExecutor, capfd: pytest.CaptureFixture[str]
) -> None:
    text = "__kernel void k(__global int *u)\n{\n\tu[0] = missing;\n    u[1] = other;\n}\n"
    with pytest.raises(BuildError) as caught:
        build_user_kernel(controller.context, controller.device, Kernel.of("k", text), 1)
    said = str(caught.value)
    assert "    3 | \tu[0] = missing;\n      | \t       ^\n" in said
    assert "    4 |     u[1] = other;\n" in said
    assert capfd.readouterr().err == "", "not even the compiler's count of errors"


def test_what_native_code_writes_during_a_build_is_passed_on(
    capfd: pytest.CaptureFixture[str]
) -> None:
    with without_counts('#line 1 "kernel"\n'):
        os.write(2, b"one\n2 warnings and 1 error generated.\n1 error generated.\n3 errors\n")
    assert capfd.readouterr().err == "one\n3 errors\n"


def test_a_build_error_shows_kernel_device_options_and_log(controller: OpenCLExecutor) -> None:
    with pytest.raises(BuildError, match=r"'k' does not compile on '.*' with options -DX=1:\n.*y"):
        build(controller.context, "k", "__kernel void k() { int x = y; }", ["-DX=1"])


def test_a_build_that_fails_without_an_error_is_tried_again(
    controller: OpenCLExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = ["Build on <x>:\n\nfailed to build\n\n(options: )"] * 2
    compiled = kernel._compiled

    def flaky(*arguments: Any) -> cl.Program:
        if failures:
            raise cl.RuntimeError(failures.pop())
        return compiled(*arguments)

    monkeypatch.setattr(kernel, "_compiled", flaky)
    build(controller.context, "k", "__kernel void k() {}")
    failures += ["nothing to read"] * kernel.ATTEMPTS
    with pytest.raises(BuildError, match="'k' does not compile"):
        build(controller.context, "k", "__kernel void k() {}")
    assert not failures
    failures += ["error: 1:2: wrong"] * 2
    with pytest.raises(BuildError, match="1:2: wrong"):
        build(controller.context, "k", "__kernel void k() {}")
    assert len(failures) == 1, "tried once"


def test_roles_are_read_from_const_and_names_from_the_compiler(controller: OpenCLExecutor) -> None:
    source = """
        #define READ(type, name) __global const type *restrict name
        __kernel void k(READ(float, a), __global uchar *b, __constant int *c, const unsigned int n,
                        __local float *scratch, TILE(a), BOX) {}"""
    built = build_user_kernel(controller.context, controller.device, Kernel.of("k", source), 2)
    assert [(p.name, p.role) for p in built.parameters] == [
        ("a", "in"), ("b", "inout"), ("c", "in"), ("n", "scalar"), ("scratch", "local"),
        ("a_first", "scalar"), ("a_pitch_0", "scalar"), ("extent_0", "scalar"),
        ("extent_1", "scalar"), ("lower_0", "scalar"), ("lower_1", "scalar"),
    ]  # fmt: skip
    assert [p.type_name for p in built.parameters[:4]] == ["float*", "uchar*", "int*", "uint"]


def test_a_body_is_no_kernel_to_launch(controller: OpenCLExecutor) -> None:
    with pytest.raises(ValueError, match="is a body; write a __kernel"):
        build_user_kernel(controller.context, controller.device, Kernel.of("k", "NEW(u) = 1;"), 1)


def test_a_kernel_that_compiles_is_a_program(controller: OpenCLExecutor) -> None:
    program = build(controller.context, "k", "__kernel void k(__global int *x) { *x = 1; }")
    assert cl.Kernel(program, "k").num_args == 1


def test_options_reach_the_compiler_and_warnings_stay_quiet(controller: OpenCLExecutor) -> None:
    source = "#warning look\n#ifndef CELL\n#error no option\n#endif\n__kernel void k() { int x; }"
    program = build(controller.context, "k", source, ["-DCELL=uint"])
    assert program.kernel_names == "k"


def test_every_fixed_kernel_compiles_with_the_macros_of_its_head(
    controller: OpenCLExecutor,
) -> None:
    for name, cell in (("copy_box", "uint"), ("copy_boxes", "ulong")):
        text = fixed_source(name)
        program = build(controller.context, name, text, [f"-DCELL={cell}"])
        assert program.kernel_names == name


def test_a_fixed_source_is_the_text_of_its_file() -> None:
    text = fixed_source("copy_box")
    assert text.startswith("// SPDX-License-Identifier: MIT")
    assert "__kernel void copy_box(" in text
    with pytest.raises(FileNotFoundError, match="no_such_kernel"):
        fixed_source("no_such_kernel")


def test_a_kernel_that_the_driver_renamed_is_a_build_error(controller: OpenCLExecutor) -> None:
    program = build(controller.context, "mix", "__kernel void mix_(__global int *u) {}")
    with pytest.raises(BuildError, match="finds no kernel 'mix'.*built-in functions"):
        compiled(program, "mix")
