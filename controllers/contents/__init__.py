# SPDX-License-Identifier: MIT
"""What is in files of fields: arrays, checkpoints, stores of many steps; read by parts."""
