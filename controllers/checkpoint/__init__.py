# SPDX-License-Identifier: MIT
"""The state of a run in files, from which it goes on on other ranks, places and devices."""
