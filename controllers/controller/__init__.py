# SPDX-License-Identifier: MIT
"""Any program on one device: verbs, tied tiles, tasks of the host (docs/controllers.md).

It imports `check`, `executor` and the rooms below; the skeleton does not need it.
"""
