# SPDX-License-Identifier: MIT
"""Moments of runs in files that others open: zarr stores, and files of ParaView."""
