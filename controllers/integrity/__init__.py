# SPDX-License-Identifier: MIT
"""Whether fields are what they were: digests of them, and what differs between two results."""
