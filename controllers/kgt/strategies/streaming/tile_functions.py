# SPDX-License-Identifier: MIT
"""The functions in front of a kernel of the strategy "streaming": loads, stores, shuffles."""
from __future__ import annotations

from controllers.kgt.text.c_lines import block
from controllers.kgt.text.c_text import plus
from controllers.kgt.text.lanes import Lanes

LIMIT = """\
// the number next to `at` from first to last
long kgt_limit(const long at, const long first, const long last)
{
    return at < first ? first : at > last ? last : at;
}
""".splitlines()


def loads(cell: str, width: int) -> list[str]:
    """C lines: `kgt_load` and `kgt_load_near`."""
    limited = [
        f"cells[{i}] = at >= first{plus(-i)} && at <= last{plus(-i)} ? from[at{plus(i)}] : 0;"
        for i in range(width)
    ]
    return [*block("""
        // $width cells from the element `at` on
        void kgt_load($cell *cells, __global const $cell *from, const long at)
        {
            const $vector loaded = *(__global const $vector *)(from + at);
            $picked
        }

        // the same; 0 for those that are not among the elements first to last
        void kgt_load_near($cell *cells, __global const $cell *from, const long at,
                           const long first, const long last)
        {
            if (at >= first && at <= last$whole)
                kgt_load(cells, from, at);
            else {
                $limited
            }
        }
    """, cell=cell, width=width, vector=Lanes(width).type(cell), whole=plus(1 - width),
        picked=[f"cells[{i}] = loaded{f'.s{i}' if width > 1 else ''};" for i in range(width)],
        limited=limited), ""]


def store(cell: str, width: int) -> list[str]:
    """C lines: `kgt_store`."""
    one = "if (first <= {0} && {0} < last) to[{0}] = cells[{0}];"
    return [*block("""
        // of a vector the cells `first` to `last` - 1
        void kgt_store(__global $cell *to, const $cell *cells,
                       const int first, const int last)
        {
            if (first <= 0 && last >= $width)
                *(__global $vector *)to = ($vector)($listed);
            else if (first < $width && last > 0) {
                $one_by_one
            }
        }
    """, cell=cell, width=width, vector=Lanes(width).type(cell),
        listed=", ".join(f"cells[{i}]" for i in range(width)),
        one_by_one=[one.format(i) for i in range(width)]), ""]


def prefetch(cell: str) -> list[str]:
    """C lines: `kgt_prefetch`, in the assembly of NVIDIA's devices."""
    return [*block("""
        // bring a line of memory to the second-level cache
        void kgt_prefetch(__global const $cell *at)
        {
            asm volatile("prefetch.global.L2 [%0];" : : "l"(at));
        }
    """, cell=cell), ""]


def shuffles(cell: str) -> list[str]:
    """C lines: `kgt_before` and `kgt_after`, in the assembly of NVIDIA's devices."""
    return [*_shuffle(cell, "before", "up", 0), *_shuffle(cell, "after", "down", 31)]


def _shuffle(cell: str, word: str, mode: str, clamp: int) -> list[str]:
    if cell == "float":
        shuffle = block("""
            asm volatile("shfl.sync.$mode.b32 %0, %1, %2, $clamp, -1;"
                    : "=f"(other) : "f"(value), "r"(away));
        """, mode=mode, clamp=clamp)
    else:
        shuffle = block("""
            asm volatile("{ .reg .b32 low, high; mov.b64 {low, high}, %1;"
                    "shfl.sync.$mode.b32 low, low, %2, $clamp, -1;"
                    "shfl.sync.$mode.b32 high, high, %2, $clamp, -1;"
                    "mov.b64 %0, {low, high}; }"
                    : "=d"(other) : "d"(value), "r"(away));
        """, mode=mode, clamp=clamp)
    return [*block("""
        // the value of the item that is `away` items $word this one, in its warp
        $cell kgt_$word(const $cell value, const uint away)
        {
            $cell other;
            $shuffle
            return other;
        }
    """, cell=cell, word=word, shuffle=shuffle), ""]
