# SPDX-License-Identifier: MIT
"""Random pattern files: read or refused, never executed, and nothing is touched but the output.

`pytest --pattern-cases 200000` reads more of them.
"""
from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from pattern_files import MARK, Good, any_files, good_files

from controllers.kgt.__main__ import main
from controllers.language.pattern_file import PatternFileError, read_patterns
from controllers.language.weights import Stencil
from controllers.program.program import DTYPES

_CODE = {"exec", "import", "os.system", "os.exec", "os.fork", "subprocess.Popen", "ctypes.dlopen"}
_PATHS = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Watch:
    """What Python does meanwhile, as its audit events tell: code that runs, files that change."""

    def __init__(self) -> None:
        self.watching = False
        self.code: list[str] = []
        self.paths: list[str] = []

    def __call__(self, name: str, arguments: tuple[Any, ...]) -> None:
        if not self.watching:
            return
        if name in _CODE:
            self.code.append(f"{name} {arguments}")
        elif name in _PATHS and (name != "open" or arguments[2] & _WRITES):
            self.paths += [os.fspath(path) for path in arguments[:2] if _is_path(path)]

    @contextmanager
    def on(self) -> Iterator[None]:
        """Watch what is done in this block."""
        self.code, self.paths, self.watching = [], [], True
        try:
            yield
        finally:
            self.watching = False


def _is_path(argument: object) -> bool:
    return isinstance(argument, (str, bytes, os.PathLike)) and "/" in os.fspath(argument)


@pytest.fixture(scope="module")
def watch() -> Watch:
    """A hook cannot be removed; it sleeps where it is not used."""
    watch = Watch()
    sys.addaudithook(watch)
    return watch


def repeated(config: pytest.Config, given_cases: Callable[[Any], None], share: float = 1.0) -> None:
    """Run a property as many times as the option says, always with the same cases."""
    n_cases = max(1, round(config.getoption("pattern_cases") * share))
    checks = settings(
        max_examples=n_cases, derandomize=True, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    checks(given_cases)()  # type: ignore[call-arg]


@pytest.mark.whole
def test_any_file_is_read_or_refused_in_one_line_and_never_executed(
    pytestconfig: pytest.Config, tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = warmed_up(tmp_path / "any.py")

    @given(content=any_files())
    def check(content: bytes) -> None:
        path.write_bytes(content)
        with watch.on():
            stencils = outcome(path)
        event("refused" if isinstance(stencils, str) else "read")
        assert watch.code == [] and watch.paths == []
        assert not isinstance(stencils, str) or is_clear(stencils, path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["any.py"], MARK

    repeated(pytestconfig, check)


def warmed_up(path: Path) -> Path:
    """`path`, after a use of all that is imported at its first use."""
    for text in ("shape = ((0, 0),)\npattern = [1]\nfactor = 1\n", "shape = ((", "\0"):
        path.write_text(text, encoding="utf-8")
        outcome(path)
    return path


def outcome(path: Path) -> Sequence[Stencil] | str:
    """The stencils, which have programs, or the message of the error."""
    try:
        stencils = read_patterns(path)
    except PatternFileError as error:
        return str(error)
    for stencil in stencils:
        for dtype in DTYPES:
            try:
                stencil.program(dtype)
            except ValueError as error:
                assert repr(stencil.name) in str(error) and len(str(error)) < 400
    return stencils


def is_clear(message: str, path: Path) -> bool:
    """File and line first; one line that any terminal can show, and not a long one."""
    found = re.fullmatch(rf"{re.escape(str(path))}:\d+: (.*)", message, re.DOTALL)
    return found is not None and found[1].isprintable() and 10 < len(found[1]) < 400


def test_a_good_file_says_what_it_holds_and_kgt_writes_where_it_was_told(
    pytestconfig: pytest.Config, tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    path, folder = warmed_up(tmp_path / "good.py"), tmp_path / "kernels"

    @given(good=good_files())
    def check(good: Good) -> None:
        path.write_bytes(good.text.encode())
        for stencil, name in zip(read_patterns(path), good.names, strict=True):
            assert stencil == Stencil(name or "good", good.shape, good.weights, good.factor)
        with watch.on():
            code = main([str(path), "-o", str(folder), "--dtype", "float64"])
        assert code == 0
        assert watch.code == []
        assert all(Path(written).is_relative_to(folder) for written in watch.paths)
        names = sorted(f"{name or 'good'}.cl" for name in good.names)
        assert sorted(entry.name for entry in folder.iterdir()) == names
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["good.py", "here", "kernels"]
        assert list((tmp_path / "here").iterdir()) == []
        for entry in folder.iterdir():
            entry.unlink()

    repeated(pytestconfig, check, 0.1)


@pytest.mark.parametrize("name", ["../up", "/tmp/abs", "a/b", "..", "a\\b", "a\0b", ".hidden", ""])
def test_a_name_cannot_lead_out_of_the_folder(name: str, tmp_path: Path) -> None:
    path, folder = tmp_path / "bad.py", tmp_path / "kernels"
    path.write_text(f"shape = ((0, 0),)\npattern = [1]\nfactor = 1\nname = {name!r}\n")
    assert main([str(path), "-o", str(folder)]) == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.py"]


def test_the_watch_would_notice(tmp_path: Path, watch: Watch) -> None:
    with watch.on():
        eval("1 + 1")
        (tmp_path / MARK).touch()
    assert any(entry.startswith("exec") for entry in watch.code)
    assert watch.paths == [str(tmp_path / MARK)]
