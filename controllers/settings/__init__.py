# SPDX-License-Identifier: MIT
"""What a user says about a computation: of what, how it is divided, how it is executed.

Checked when it is said, and agreed among ranks as values.  It imports the rooms up to `check`; it
loads no OpenCL, so that dry runs need none.
"""
