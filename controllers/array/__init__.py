# SPDX-License-Identifier: MIT
"""Array expressions: what is written as with NumPy of distributed fields, as sweeps on their tiles.

`controllers.run` makes fields and their slices `Distributed`; what is computed of them is `Lazy`.
"""
