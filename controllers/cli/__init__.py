# SPDX-License-Identifier: MIT
"""The command line: `controllers run`, `controllers devices`; also as `python -m controllers`."""
from controllers.cli.main import console, main

__all__ = ["console", "main"]
