# SPDX-License-Identifier: MIT
"""OpenCL C that is written by hand or by KGT, as data of the package."""
