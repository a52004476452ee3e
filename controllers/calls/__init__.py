# SPDX-License-Identifier: MIT
"""What all ranks call together: agreed on, remembered, watched, and in one state after another.

It knows no fields and no steps: computations and workspaces call through it alike.
"""
