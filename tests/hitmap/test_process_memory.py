# SPDX-License-Identifier: MIT
"""Memory of another process is read at once, and what cannot be read is an error."""
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hitmap.process_memory import let_siblings_read, machine, read_memory

OTHER = """
import numpy as np
from hitmap.process_memory import let_siblings_read, machine
let_siblings_read()
cells = np.arange(300_000.0)
print(machine(), cells.ctypes.data, flush=True)
input()
"""


def test_what_another_process_has_is_read() -> None:
    let_siblings_read()
    with subprocess.Popen(
        [sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdin is not None
        where, address = map(int, other.stdout.readline().split())
        assert where == machine() != 0
        found = np.zeros(200_000)
        try:
            read_memory(other.pid, address + 8 * 50_000, found)
        except PermissionError as error:
            other.stdin.write("\n")
            pytest.skip(f"this system allows none: {error}")
        assert np.array_equal(found, np.arange(50_000.0, 250_000.0))
        read_memory(other.pid, address, found[:0])
        with pytest.raises(OSError, match=f"memory of process {other.pid}: "):
            read_memory(other.pid, 4096, found)     # nobody has anything there
        other.stdin.write("\n")
    with pytest.raises(OSError, match="memory of process"):
        read_memory(other.pid, address, found)      # it has ended
