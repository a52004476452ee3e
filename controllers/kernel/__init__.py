# SPDX-License-Identifier: MIT
"""Kernels of stages and of users: text, variants, builds, caches, configurations and their choice.

It imports the rooms below: `kgt`, `plan`, `device`, `memory`, `program`, `process`.
"""
