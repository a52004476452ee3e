# SPDX-License-Identifier: MIT
"""What this host has to compute with, what is wrong with it, and how to mend that.

Facts are gathered on every node (`facts`), findings are drawn from them alone (`findings`).
"""
from controllers.doctor.facts import Facts, gather_facts
from controllers.doctor.finding import Finding, as_text
from controllers.doctor.findings import find_all, lacks_devices

__all__ = ["Facts", "Finding", "as_text", "find_all", "gather_facts", "lacks_devices"]
