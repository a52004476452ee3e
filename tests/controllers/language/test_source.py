# SPDX-License-Identifier: MIT
from __future__ import annotations

from pathlib import Path

import pytest

from controllers.language.source import BODY_NAME, KernelSource

TWO = "kernel void a(int x) {}\n__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void b() {}"


def test_a_text_is_a_text_and_a_name_with_cl_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "heat.cl"
    path.write_text("NEW(u) = 0;\n")
    for given in (path, str(path)):
        assert KernelSource.of(given) == KernelSource("NEW(u) = 0;\n", str(path))
    assert KernelSource.of("NEW(u) = 0; // see heat.cl\n").file == ""
    with pytest.raises(FileNotFoundError):
        KernelSource.of("missing.cl")


@pytest.mark.parametrize("text", ["", "  \n", "// nothing\n/* at\nall */"])
def test_a_source_without_statements_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no OpenCL C; write"):
        KernelSource.of(text)


def test_kernels_are_found_outside_comments() -> None:
    assert KernelSource(TWO).kernels == ("a", "b")
    assert KernelSource("/* __kernel void a() */ NEW(u) = 1; // kernel void b()").kernels == ()


def test_one_of_several_kernels_is_chosen_by_name() -> None:
    assert KernelSource(TWO).kernel_name("b") == "b"
    assert KernelSource("kernel void a() {}").kernel_name("other") == "a"
    assert KernelSource("NEW(u) = 1;").kernel_name("other") == BODY_NAME
    with pytest.raises(ValueError, match=r"a, b and none is called 'c'"):
        KernelSource(TWO, "two.cl").kernel_name("c")


def test_lines_are_numbered_by_the_users_file() -> None:
    text = KernelSource("NEW(u) = 1;", 'my "own".cl').complete("#define X", "int n")
    assert '{\nCELL;\n#line 1 "my \\"own\\".cl"\nNEW(u) = 1;\n}\n' in text
    assert text.startswith("#define X\n__kernel void user_kernel(int n)\n")
    assert KernelSource("kernel void a() {}").complete("", "") == (
        '\n#line 1 "kernel"\nkernel void a() {}\n'
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_byte_order_mark_is_no_part_of_the_text(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "heat.cl"
    path.write_text("NEW(u) = 0; // é\n", encoding)
    assert KernelSource.of(path).text == "NEW(u) = 0; // é\n"
    assert KernelSource.of("\ufeffNEW(u) = 0;").text == "NEW(u) = 0;"


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ("NEW(u) = 0;".encode("utf-16"), 1, "UTF-16"),
        ("NEW(u) = 0;\n".encode("utf-16-le"), 1, "UTF-16"),
        ("// a\n// é\n".encode("latin-1"), 2, "byte 0xe9"),
    ],
)
def test_other_encodings_are_named(
    content: bytes, line: int, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "heat.cl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"heat.cl:{line}: is no UTF-8.*{what}.*save it as UTF-8"):
        KernelSource.of(path)
