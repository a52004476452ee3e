# SPDX-License-Identifier: MIT
"""`python -m controllers`: the command line."""
from __future__ import annotations

from controllers.cli import console

if __name__ == "__main__":
    console()
