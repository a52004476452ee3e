# SPDX-License-Identifier: MIT
"""The faults of faults.py under the checked mode, each tried once, without busy queues.

    CONTROLLERS_CHECK=on mpiexec -n 2 python tests/support/checked_faults.py "messages: no exchange"

An order that nothing enforces must be named even where the commands happen to keep it.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace

import faults

from controllers import CheckError
from hitmap.comm import Communicator, default_communicator


def names(ranks: int) -> list[str]:
    """A fault of every kind on so many ranks, and a run without any."""
    chosen: dict[str, str] = {}
    for name in (*faults.all_faults(), *faults.all_controls()):
        setting, _, what = name.partition(": ")
        wide = setting.startswith("upwind") and " not after " not in what
        if faults.SETTINGS[setting].combination.ranks != ranks or "large" in setting or wide:
            continue
        if " not after " in what:
            verbs = [word.partition("@")[0] for word in what.split() if "@" in word]
            chosen.setdefault(" ".join(verbs), name)
        elif "late" not in what:
            chosen.setdefault(what.partition(" from ")[0], name)
    return list(chosen.values())


def found(fault: faults.Fault, comm: Communicator) -> dict[str, object] | None:
    """What the checked mode says of a fault; None if nothing.  Collective."""
    alone = tuple(inject for inject in fault.injections if "busy" not in repr(inject))
    try:
        problem = faults.Fault(fault.setting, alone).problem(comm)
    except CheckError as error:
        facts = {key: getattr(error, key) for key in ("kind", "field", "index", "rank", "step")}
        return {**facts, "what": error.what}
    assert problem is None, f"wrong, and not noticed: {problem}"
    return None


def main(wanted: Sequence[str]) -> None:
    """Print what is found of each; all ranks must say the same.  Collective."""
    comm = default_communicator()
    for name, where in faults.SETTINGS.items():     # there is no race that must be lost
        if where.case.extent == faults.WIDE:
            faults.SETTINGS[name] = replace(where, case=replace(where.case, extent=(7, 43)))
    known = {**faults.all_faults(), **faults.all_controls()}
    for name in wanted:
        facts = found(known[name], comm)
        assert comm.allgather(facts) == [facts] * comm.size, "raised on all ranks, or on none"
        if comm.rank == 0:
            print(json.dumps({"name": name, "found": facts}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
