# SPDX-License-Identifier: MIT
"""Where the cells are: boxes, layouts over places and the exact halo messages between them.

Usable alone, in any program that keeps arrays in blocks.  Importing it needs no MPI library.
"""
from hitmap.agreement import agree, raise_together
from hitmap.comm import Communicator, SerialCommunicator, default_communicator, node_ranks
from hitmap.cut import split_even, split_weighted
from hitmap.halo import HaloPattern
from hitmap.layout import Layout
from hitmap.message import Message
from hitmap.npy import NpyWriter, open_npy, read_part
from hitmap.redistribute import Redistribution
from hitmap.region import Region
from hitmap.scatter import gather, scatter
from hitmap.shape import Shape
from hitmap.topology import Topology
from hitmap.uncaught import install_abort_hook

__all__ = [
    "Communicator", "HaloPattern", "Layout", "Message", "NpyWriter", "Redistribution", "Region",
    "SerialCommunicator", "Shape", "Topology", "agree", "default_communicator", "gather",
    "install_abort_hook", "node_ranks", "open_npy", "raise_together", "read_part", "scatter",
    "split_even", "split_weighted",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__, "__doc__"]
