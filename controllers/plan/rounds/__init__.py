# SPDX-License-Identifier: MIT
"""Plans of wide halos: launches between two exchanges, for each place its own (docs/halos.md)."""
