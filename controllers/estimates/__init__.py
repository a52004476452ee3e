# SPDX-License-Identifier: MIT
"""How long tasks take: times kept from run to run, and what follows for other sizes and tasks."""
