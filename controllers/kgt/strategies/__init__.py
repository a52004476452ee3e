# SPDX-License-Identifier: MIT
"""Strategies: the ways to write a kernel, each a package of its own and a row of `table`.

All of them keep to the protocol `config.Config`.  They import `kgt.text`, `kgt.kernel` and
`kgt.launch`, and nothing above them: neither `kgt.choice` nor other strategies.
"""
