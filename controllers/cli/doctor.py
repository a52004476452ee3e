# SPDX-License-Identifier: MIT
"""`controllers doctor`: what is wrong with this host or job, and what mends it."""
from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from controllers import __version__
from controllers.cli.outcome import FAILED, NO_DEVICE, Failure, on_root
from controllers.doctor import Facts, Finding, as_text, find_all, gather_facts, lacks_devices
from hitmap.comm import Communicator
from hitmap.launcher import launcher


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Examine all nodes, report on rank 0.  Collective."""
    started = launcher()
    if started is not None and comm.size == 1 and started.rank > 0:
        return      # one of several processes that MPI does not join: the first one speaks
    facts = gather_facts(comm)
    on_root(comm, lambda: _report(options, facts))


def _report(options: argparse.Namespace, facts: Facts | None) -> None:
    assert facts is not None, "rank 0 has the facts"
    findings = find_all(facts)
    lacking = lacks_devices(facts)
    n_errors = sum(finding.level == "error" for finding in findings)
    code = NO_DEVICE if lacking else FAILED if n_errors else 0
    if options.json:
        print(json.dumps(_as_dict(facts, findings, code)), flush=True)
    else:
        print(f"controllers {__version__} on {', '.join(node.host for node in facts.nodes)}\n")
        print(as_text(findings))
        n_warnings = sum(finding.level == "warning" for finding in findings)
        print(f"\n{_count(n_errors, 'error')}, {_count(n_warnings, 'warning')}", flush=True)
    if lacking:
        raise Failure(NO_DEVICE, f"no usable OpenCL device on {', '.join(lacking)}")
    if n_errors:
        raise Failure(FAILED, f"{_count(n_errors, 'error')} to mend, see the report")


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _as_dict(facts: Facts, findings: list[Finding], code: int) -> dict[str, object]:
    """Plain data, for JSON."""
    return {
        "exit_code": code,
        "findings": [asdict(finding) for finding in findings],
        "mpi": {"library": facts.library, "size": facts.size},
        "hosts": [
            {
                "host": node.host,
                "versions": node.versions,
                "memory_bytes": node.memory_bytes,
                "free_bytes": node.free_bytes,
                "cores": node.cores,
                "ranks": {rank.rank: sorted(rank.cores) for rank in node.ranks},
                "variables": node.variables,
                "caches": [asdict(cache) for cache in node.caches],
                "drivers": [asdict(verdict) for verdict in node.verdicts],
            }
            for node in facts.nodes
        ],
    }
