# SPDX-License-Identifier: MIT
"""Links between controllers, and what follows from them: orders, cuts, and which devices pay."""
