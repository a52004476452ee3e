# SPDX-License-Identifier: MIT
"""Tasks of several sides at once: how they are cut, shared out and merged (docs/hybrid.md)."""
