# SPDX-License-Identifier: MIT
"""Tasks on host cores and devices, ordered by the cells that they touch (docs/tasks.md)."""
