# SPDX-License-Identifier: MIT
"""Whether anything is left in any lane of a vector of doubles, by one mask of all lanes."""
from __future__ import annotations

from controllers.kgt.text.c_lines import block


def rests(width: int) -> list[str]:
    """C lines: the function that tells whether a lane of so many is not 0."""
    part, halves = width, []
    while part > 4:
        whole = "bits" if part == width else f"half_{part}"
        part //= 2
        halves.append(f"const long{part} half_{part} = {whole}.lo | {whole}.hi;")
    return block("""
        // the bits in which numbers differ; and whether they do in any lane, but for their signs
        #define KGT_MASKED(value, bits) as_double$width(as_long$width(value) & (bits))
        #define KGT_UNLIKE(one, other) (as_long$width(one) ^ as_long$width(other))
        KGT_INLINE int kgt_differ(const long$width bits)
        {
            $halves
            return as_$mask(__builtin_convertvector($any << 1 != 0, char$part)) != 0;
        }

        // whether a number is not 0
        KGT_INLINE int kgt_rests(const double$width value)
        {
            return kgt_differ(as_long$width(value));
        }

    """, width=width, part=part, halves=halves, any=f"half_{part}" if halves else "bits",
        mask={2: "ushort", 4: "uint"}[part])  # fmt: skip
