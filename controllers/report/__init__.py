# SPDX-License-Identifier: MIT
"""What a run did or will do, for people: reports, timings, timelines, explanations.

It imports `engine`, `executor` and the rooms below.
"""
