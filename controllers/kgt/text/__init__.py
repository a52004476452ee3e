# SPDX-License-Identifier: MIT
"""OpenCL C as text: expressions, literals, arithmetic, comments, the frame of a kernel.

It knows no strategy: it imports `kgt.kernel`, `kgt.parameter`, and the rooms `program` and
`language`.
"""
