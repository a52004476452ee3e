# SPDX-License-Identifier: MIT
"""Front ends: a description becomes a program.

It imports `program`, and never OpenCL.
"""
