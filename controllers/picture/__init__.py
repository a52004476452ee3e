# SPDX-License-Identifier: MIT
"""Pictures and films of fields and records, by matplotlib, which is optional."""
