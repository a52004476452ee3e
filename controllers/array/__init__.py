# SPDX-License-Identifier: MIT
"""Array expressions: what is written as with NumPy of distributed fields, as sweeps on their tiles.

Fields and their slices (`controllers.fields`) are `Distributed`; what is computed of them `Lazy`.
"""
