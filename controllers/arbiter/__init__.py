# SPDX-License-Identifier: MIT
"""Which process of a node may use which cores and devices: leases, given in turn."""
from controllers.arbiter.arbiter import Arbiter
from controllers.arbiter.lease import Lease, Mark
from controllers.arbiter.note import Holder
from controllers.arbiter.request import Request
from controllers.arbiter.want import Want, node_cores

__all__ = ["Arbiter", "Holder", "Lease", "Mark", "Request", "Want", "node_cores"]
