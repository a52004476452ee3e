# SPDX-License-Identifier: MIT
"""The functions in front of a kernel of the strategy "streaming": loads, stores, shuffles."""
from __future__ import annotations

from controllers.kgt.emitter import INDENT
from controllers.kgt.lanes import Lanes
from controllers.kgt.strategies.streaming.tile_text import plus

LIMIT = """\
// the number next to `at` from first to last
long kgt_limit(const long at, const long first, const long last)
{
    return at < first ? first : at > last ? last : at;
}
""".splitlines()


def loads(cell: str, width: int) -> list[str]:
    """C lines: `kgt_load` and `kgt_load_near`."""
    vector = Lanes(width).type(cell)
    picked = [f"{INDENT}cells[{i}] = loaded{f'.s{i}' if width > 1 else ''};" for i in range(width)]
    limited = [
        f"{INDENT * 2}cells[{i}] = at >= first{plus(-i)} && at <= last{plus(-i)} "
        f"? from[at{plus(i)}] : 0;"
        for i in range(width)
    ]
    return [
        f"// {width} cells from the element `at` on",
        f"void kgt_load({cell} *cells, __global const {cell} *from, const long at)",
        "{",
        f"{INDENT}const {vector} loaded = *(__global const {vector} *)(from + at);",
        *picked,
        "}",
        "",
        "// the same; 0 for those that are not among the elements first to last",
        f"void kgt_load_near({cell} *cells, __global const {cell} *from, const long at,",
        "                   const long first, const long last)",
        "{",
        f"{INDENT}if (at >= first && at <= last{plus(1 - width)})",
        f"{INDENT * 2}kgt_load(cells, from, at);",
        f"{INDENT}else {{",
        *limited,
        f"{INDENT}}}",
        "}",
        "",
    ]


def store(cell: str, width: int) -> list[str]:
    """C lines: `kgt_store`."""
    vector = Lanes(width).type(cell)
    listed = ", ".join(f"cells[{i}]" for i in range(width))
    return [
        "// of a vector the cells `first` to `last` - 1",
        f"void kgt_store(__global {cell} *to, const {cell} *cells,",
        "               const int first, const int last)",
        "{",
        f"{INDENT}if (first <= 0 && last >= {width})",
        f"{INDENT * 2}*(__global {vector} *)to = ({vector})({listed});",
        f"{INDENT}else if (first < {width} && last > 0) {{",
        *(
            f"{INDENT * 2}if (first <= {i} && {i} < last) to[{i}] = cells[{i}];"
            for i in range(width)
        ),
        f"{INDENT}}}",
        "}",
        "",
    ]


def prefetch(cell: str) -> list[str]:
    """C lines: `kgt_prefetch`, in the assembly of NVIDIA's devices."""
    return [
        "// bring a line of memory to the second-level cache",
        f"void kgt_prefetch(__global const {cell} *at)",
        "{",
        f'{INDENT}asm volatile("prefetch.global.L2 [%0];" : : "l"(at));',
        "}",
        "",
    ]


def shuffles(cell: str) -> list[str]:
    """C lines: `kgt_before` and `kgt_after`, in the assembly of NVIDIA's devices."""
    lines = []
    for word, mode, clamp in (("before", "up", 0), ("after", "down", 31)):
        if cell == "float":
            shuffle = [
                f'asm volatile("shfl.sync.{mode}.b32 %0, %1, %2, {clamp}, -1;"',
                f'{INDENT * 2}: "=f"(other) : "f"(value), "r"(away));',
            ]
        else:
            shuffle = [
                'asm volatile("{ .reg .b32 low, high; mov.b64 {low, high}, %1;"',
                f'{INDENT * 2}"shfl.sync.{mode}.b32 low, low, %2, {clamp}, -1;"',
                f'{INDENT * 2}"shfl.sync.{mode}.b32 high, high, %2, {clamp}, -1;"',
                f'{INDENT * 2}"mov.b64 %0, {{low, high}}; }}"',
                f'{INDENT * 2}: "=d"(other) : "d"(value), "r"(away));',
            ]
        lines += [
            f"// the value of the item that is `away` items {word} this one, in its warp",
            f"{cell} kgt_{word}(const {cell} value, const uint away)",
            "{",
            f"{INDENT}{cell} other;",
            *(INDENT + line for line in shuffle),
            f"{INDENT}return other;",
            "}",
            "",
        ]
    return lines
