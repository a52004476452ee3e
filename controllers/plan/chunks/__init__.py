# SPDX-License-Identifier: MIT
"""Plans of what does not fit: places are chunks that pass through slots (docs/chunks.md)."""
