# SPDX-License-Identifier: MIT
"""Which place lives where, what it owns, how much it takes and how many steps a launch has.

It imports `report`, `check` and the rooms below.
"""
