# SPDX-License-Identifier: MIT
"""Fields and arrays as users hold them: cells read and written by indices, files and functions.

It knows nothing of steps: computations and workspaces hand out what is made here.
"""
