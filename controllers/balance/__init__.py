# SPDX-License-Identifier: MIT
"""Balance: shares of the field by which all devices take equally long (docs/balance.md)."""
