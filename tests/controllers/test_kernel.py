# SPDX-License-Identifier: MIT
from __future__ import annotations

import pyopencl as cl
import pytest

from controllers.controller import Controller
from controllers.device import find_devices
from controllers.kernel import BuildError, build, fixed_source

DEVICES = [device for device in find_devices() if device.kind != "reference"]


@pytest.fixture(params=DEVICES, ids=lambda device: device.kind)
def context(request: pytest.FixtureRequest) -> cl.Context:
    return Controller(request.param).context


def test_a_build_error_names_kernel_device_options_and_shows_the_log(context: cl.Context) -> None:
    source = "__kernel void heat(__global float *u) { u[0] = no_such_variable; }"
    with pytest.raises(BuildError) as error:
        build(context, "heat", source, ["-DCELL=uint", "-DN=3"])
    text = str(error.value)
    assert "'heat'" in text
    assert context.devices[0].name.strip() in text
    assert "-DCELL=uint -DN=3" in text
    assert "no_such_variable" in text and "error" in text      # from the compiler


def test_a_build_error_says_that_there_were_no_options(context: cl.Context) -> None:
    with pytest.raises(BuildError, match="options none"):
        build(context, "heat", "__kernel void heat(")


def test_a_build_error_is_not_chained_to_the_driver_s(context: cl.Context) -> None:
    with pytest.raises(BuildError) as error:
        build(context, "heat", "__kernel void heat(")
    assert error.value.__cause__ is None and error.value.__suppress_context__


def test_options_reach_the_compiler_and_warnings_stay_quiet(context: cl.Context) -> None:
    source = "#warning look\n#ifndef CELL\n#error no option\n#endif\n__kernel void k() { int x; }"
    program = build(context, "k", source, ["-DCELL=uint"])
    assert program.kernel_names == "k"


def test_every_fixed_kernel_compiles_with_the_macros_of_its_head(context: cl.Context) -> None:
    for cell in ("uint", "ulong"):
        program = build(context, "copy_box", fixed_source("copy_box"), [f"-DCELL={cell}"])
        assert program.kernel_names == "copy_box"


def test_a_fixed_source_is_the_text_of_its_file() -> None:
    text = fixed_source("copy_box")
    assert text.startswith("// SPDX-License-Identifier: MIT")
    assert "__kernel void copy_box(" in text
    with pytest.raises(FileNotFoundError, match="no_such_kernel"):
        fixed_source("no_such_kernel")
