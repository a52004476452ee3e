# SPDX-License-Identifier: MIT
"""Cells in memories: tiles, which image is newest, what waits for what, bytes and their cap.

It imports `program` and hitmap.
"""
