# SPDX-License-Identifier: MIT
"""The files around the code: what is packaged, cited, and asked of contributors."""
from __future__ import annotations

import ast
import configparser
import functools
import re
from collections.abc import Collection
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import controllers

ROOT = Path(__file__).parents[1]
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", "utf-8")


def lines(section: str, option: str) -> list[str]:
    return SETUP[section][option].split("\n")[1:]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_all_packages_are_listed() -> None:
    """As documentation and examples are mapped into the package, none is found by itself."""
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for name in ("controllers", "hitmap")
        for path in ROOT.glob(f"{name}/**/__init__.py")
    }
    listed = lines("options", "packages")
    mapped = {"controllers.docs", "controllers.examples"}
    assert {*listed} == found | mapped | {"kernels_cl"} and listed == sorted(listed)


@pytest.mark.parametrize("package", ["docs", "examples", "kernels_cl"])
def test_all_files_without_code_are_packaged(package: str) -> None:
    name = package if package == "kernels_cl" else f"controllers.{package}"
    patterns = SETUP["options.package_data"][name].split(", ")
    packaged = {path for pattern in [*patterns, "*.py"] for path in (ROOT / package).glob(pattern)}
    found = {path for path in (ROOT / package).rglob("*") if "__pycache__" not in path.parts}
    assert {path for path in found if path.is_file()} == {p for p in packaged if p.is_file()}


def test_the_metadata_say_what_the_package_says() -> None:
    metadata = SETUP["metadata"]
    assert metadata["name"] == "opencl-controllers"
    assert metadata["version"] == "attr: controllers.__version__"
    citation = text("CITATION.cff")
    assert f"\nversion: {controllers.__version__}\n" in citation
    assert f"\nlicense: {metadata['license']}\n" in citation
    assert f"- name: {metadata['author']}\n" in citation
    assert len(lines("metadata", "keywords")) >= 5
    # of an address nobody knows that it is ours
    assert "url" not in metadata and "project_urls" not in metadata


def test_contributors_are_asked_for_what_is_checked() -> None:
    blocks = re.findall(r"^```text\n(.*?)^```$", text("CONTRIBUTING.md"), re.M | re.S)
    checks = blocks[1].splitlines()
    assert checks[-1] == "bash .ci/run" and (ROOT / ".ci/run").is_file()
    steps = text(".ci/run").splitlines()
    assert all(command in steps for command in checks[:-1])
    (extras,) = re.findall(r"\[([\w,]+)\]", blocks[0])
    assert {*extras.split(",")} <= {*SETUP["options.extras_require"]}
    assert re.findall(r"entry: (\w+)", text(".pre-commit-config.yaml")) == ["ruff", "mypy"]
    assert text(".github/workflows/ci.yml").endswith("- {run: bash .ci/run}\n")
    for folder in re.findall(r"\]\(([\w/.]+)\)", text("CONTRIBUTING.md")):
        assert (ROOT / folder).exists(), folder


def test_the_readme_holds_the_two_commands_that_ci_runs() -> None:
    commands = [line for line in text("README.md").splitlines() if line.startswith("    pip inst")]
    assert [command.split(" && ")[0].strip() for command in commands] == [
        'pip install ".[local]"', 'pip install ".[test]"'
    ]  # fmt: skip


def test_the_page_of_the_architecture_lists_the_rooms_in_the_order_of_their_imports() -> None:
    rooms = re.findall(r"^\| `(\w+)` \|", text("docs/architecture.md"), re.MULTILINE)
    layers = lines("importlinter:contract:layers", "layers")
    assert [f"({room})" for room in reversed(rooms)] == layers[1:], "above (__main__)"


def test_no_module_is_long() -> None:
    long = {
        str(path.relative_to(ROOT)): n_lines
        for name in ("controllers", "hitmap")
        for path in ROOT.glob(f"{name}/**/*.py")
        if (n_lines := len(path.read_text("utf-8").splitlines())) > 300
    }
    assert not long


@pytest.mark.whole
def test_no_function_is_long() -> None:
    long = {
        f"{module}:{function.lineno} {function.name}": n_lines
        for module, tree in trees().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and (n_lines := lines_of_code(function)) > 40
    }
    assert not long


@pytest.mark.whole
def test_no_module_imports_itself_by_way_of_others_not_even_for_types() -> None:
    """But for `controllers`, which has all that users call, and the version."""
    modules = trees().keys() - {"controllers"}
    imports = {module: imported(trees()[module], modules) - {module} for module in modules}
    TopologicalSorter(imports).prepare()


@functools.cache
def trees() -> dict[str, ast.Module]:
    """Of all modules, by their names."""
    paths = [path for name in ("controllers", "hitmap") for path in ROOT.glob(f"{name}/**/*.py")]
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    return {
        name.removesuffix(".__init__"): ast.parse(path.read_text("utf-8"))
        for name, path in zip(names, paths)
    }


def lines_of_code(function: ast.FunctionDef) -> int:
    """Without signature and docstring."""
    body = function.body[ast.get_docstring(function) is not None :]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def imported(tree: ast.Module, modules: Collection[str]) -> set[str]:
    """Those of the modules that a module imports, wherever it does."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{name.name}" for name in node.names}
            found |= inner & modules or {node.module}
    return found & modules
