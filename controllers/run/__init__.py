# SPDX-License-Identifier: MIT
"""What programs call: computations, their settings, verbs and life.

It imports all rooms below; nothing but the command line, bench and doctor import it.
"""
