# SPDX-License-Identifier: MIT
"""What the host and a device do with a job: memories, moves of cells, launches."""
