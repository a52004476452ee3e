# SPDX-License-Identifier: MIT
"""What executes the commands of a plan: an OpenCL device, or the reference.

It imports `kernel` and the rooms below it.
"""
