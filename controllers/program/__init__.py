# SPDX-License-Identifier: MIT
"""What is computed: expressions, fields, stages, programs, and the reference that says its bits.

It imports hitmap alone, and never OpenCL.
"""
