# SPDX-License-Identifier: MIT
"""What a process has beside its computation: variables, private folders, errands, waits.

The lowest room: it imports hitmap alone.
"""
