# SPDX-License-Identifier: MIT
"""Workspaces: arrays of any shapes on the devices of all ranks, split by rows or whole."""
