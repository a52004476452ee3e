# SPDX-License-Identifier: MIT
"""Which image of a field lies where on the host, in memory or in files, as text."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from controllers.memory.ledger import size
from controllers.plan import ChunkPlan, TileKey


def images_text(plan: ChunkPlan) -> Iterator[str]:
    """A line on all images, and where some lie in files one for each field."""
    images: dict[str, dict[int, list[int]]] = defaultdict(dict)     # bytes in memory, in files
    for memory in plan.memories:
        key = memory.key
        if memory.kind == "image" and isinstance(key, TileKey):
            nbytes = images[key.field].setdefault(key.buffer, [0, 0])
            nbytes[memory.in_file] += memory.nbytes
    each = [nbytes for found in images.values() for nbytes in found.values()]
    in_memory, in_files = (sum(nbytes[where] for nbytes in each) for where in (0, 1))
    text = f"  images: {size(in_memory)} in memory"
    if not in_files:
        yield text
        return
    assert plan.images.cap_bytes is not None, "or all would be in memory"
    yield (
        f"{text}, of {size(plan.images.cap_bytes)} that they may take on each rank, "
        f"{size(in_files)} in files in {plan.images.folder}"
    )
    for field, found in images.items():
        placed = (f"image {number} {_where(*nbytes)}" for number, nbytes in found.items())
        yield f"    field {field}: {', '.join(placed)}"


def _where(in_memory: int, in_files: int) -> str:
    if not in_memory or not in_files:
        return "in memory" if in_memory else "in files"
    return f"in files but for {in_memory / (in_memory + in_files):.0%}"
