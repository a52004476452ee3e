# SPDX-License-Identifier: MIT
"""Files that are replaced as a whole: whoever reads one sees it as it was, or as it is now."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hitmap.files import sync


def replace_file(path: Path, content: bytes) -> None:
    """`content` is on the disk, and then has the name."""
    prepare_file(path, content)
    os.replace(_beside(path), path)
    sync(path.parent)


def prepare_file(path: Path, content: bytes) -> None:
    """`content` is on the disk under a name beside `path`."""
    with open(_beside(path), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_all(contents: Mapping[Path, bytes]) -> None:
    """Several files, in this order, with as little as can be between the first and the last."""
    for path, content in contents.items():
        prepare_file(path, content)
    for path in contents:
        os.replace(_beside(path), path)
    for folder in {path.parent for path in contents}:
        sync(folder)


def encoded(document: Mapping[str, Any]) -> bytes:
    """As JSON."""
    return json.dumps(document, indent=1).encode()


def _beside(path: Path) -> Path:
    return path.with_name(f".new-{path.name}")
