# SPDX-License-Identifier: MIT
"""What the doctor says of hosts that are made up, and of this one."""
from __future__ import annotations

import json
import re
import tempfile
from dataclasses import replace

import pytest

from controllers.cli import main
from controllers.device import Verdict, reference_device
from controllers.device.driver import Driver
from controllers.device.verdict import TriedDevice
from controllers.doctor import Facts, Finding, as_text, find_all, lacks_devices
from controllers.doctor.facts import Cache, HostFacts, Rank
from hitmap.launcher import Launcher

MPICH = "MPICH Version:      5.0.2\nMPICH Release date: ..."
OPEN = "Open MPI v5.0.11, package: Open MPI user@localhost"
CPU = replace(
    reference_device(), kind="cpu", name="Xeon", compute_units=4, version="3.1",
    platform="Portable Computing Language",
)  # fmt: skip
POCL = Driver("/usr/lib/libpocl.so.2", "/etc/OpenCL/vendors/pocl.icd")
GOOD = Verdict(POCL, "good", (TriedDevice(CPU, None, 0.5, ""),), "", 1.0)
FOUR = frozenset(range(4))
CACHE = Cache("PoCL's kernels", "/home/me/.cache/pocl", "", 10 << 30)
NODE = HostFacts(
    "node1", (Rank(0, FOUR),), {"numpy": "2.4.6"}, (GOOD,), (CACHE,), 64 << 30, 32 << 30, 4, {}
)
FACTS = Facts(1, None, MPICH, ("/usr/bin/mpiexec", "HYDRA build details:"), (NODE,))


def on(**changes: object) -> Facts:
    return replace(FACTS, nodes=(replace(NODE, **changes),))  # type: ignore[arg-type]


def of_two(node: HostFacts, **changes: object) -> Facts:
    return replace(FACTS, size=2, launcher=Launcher("MPICH or PMI", 2, 0), nodes=(node,), **changes)


def problems(facts: Facts) -> list[Finding]:
    return [finding for finding in find_all(facts) if finding.level != "ok"]


def test_a_good_host_has_no_problem_and_says_what_it_is() -> None:
    assert problems(FACTS) == [] and lacks_devices(FACTS) == []
    text = as_text(find_all(FACTS))
    for word in ("numpy 2.4.6", "MPICH 5.0.2; /usr/bin/mpiexec", "cpu Xeon", "64.0 GiB"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 100


BOUND = (Rank(0, frozenset([0])), Rank(1, frozenset([1])))
SAME = (Rank(0, frozenset([0, 1])), Rank(1, frozenset([0, 1])))
ONE_CORE = (Rank(0, frozenset([0])), Rank(1, frozenset([0])))
SMALL = Verdict(POCL, "good", (TriedDevice(replace(CPU, compute_units=1), None, 0.5, ""),))
HUNG = Verdict(Driver("x.so", "/x.icd"), "hung", (), "loading it takes more than 20 s")
FAULTS = {
    "open mpi's launcher": (
        replace(FACTS, launcher=Launcher("Open MPI", 2, 0)), "error", "Open MPI started 2",
    ),
    "open mpi's launcher, one rank": (
        replace(FACTS, launcher=Launcher("Open MPI", 1, 0)), "error", "cannot start MPICH",
    ),
    "mpich's launcher": (
        replace(FACTS, launcher=Launcher("MPICH or PMI", 3, 0), library=OPEN), "error", "sees 1",
    ),
    "mpiexec on PATH": (
        replace(FACTS, mpiexec=("/usr/bin/mpiexec", "mpirun (Open MPI) 4.1")), "warning",
        "/usr/bin/mpiexec is the mpiexec of Open MPI",
    ),
    "no library": (replace(FACTS, library=""), "warning", "no MPI library"),
    "bound ranks": (of_two(replace(NODE, ranks=BOUND)), "warning", "rank 0 is bound to 1 core"),
    "one core for two": (
        of_two(replace(NODE, ranks=ONE_CORE, verdicts=(SMALL,))), "warning", "2 ranks share 1 core",
    ),
    "affinity": (
        of_two(replace(NODE, ranks=SAME, variables={"POCL_AFFINITY": "1"})), "warning",
        "POCL_AFFINITY",
    ),
    "a driver that hangs": (on(verdicts=(HUNG, GOOD)), "warning", "more than 20 s"),
    "only one that hangs": (on(verdicts=(HUNG,)), "error", "more than 20 s"),
    "not tried": (on(verdicts=(replace(GOOD, outcome="untried", tried=()), GOOD)), "warning",
                  "not tried"),
    "one device of two": (
        on(verdicts=(replace(GOOD, tried=(*GOOD.tried, TriedDevice(CPU, None, 0.1, "is wrong"))),)),
        "warning", "is wrong",
    ),
    "no rights": (
        on(caches=(replace(CACHE, problem="Permission denied"),)), "warning", "cannot be written",
    ),
    "a shared folder": (
        on(caches=(replace(CACHE, untrusted="other users may write it"),)), "warning", "not safe",
    ),
    "a damaged entry": (
        on(caches=(replace(CACHE, damaged=("/a/program.bc: it is empty", "/b")),)), "error",
        "/a/program.bc: it is empty, and 1 more",
    ),
    "a full disk": (on(caches=(replace(CACHE, free_bytes=5 << 20),)), "warning", "5 MiB left"),
    "no shared memory": (on(shared_bytes=1 << 20), "error", "1 MB free in /dev/shm, 6 MB"),
    "no memory": (on(free_bytes=10 << 20), "warning", "0.0 GiB of it free"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_alone_with_why_and_remedy(fault: str) -> None:
    facts, level, what = FAULTS[fault]
    (finding,) = problems(facts)
    assert finding.level == level and what in finding.what
    assert finding.why and finding.remedy and f"={tempfile.gettempdir()}" not in finding.remedy
    assert bool(lacks_devices(facts)) == (fault == "only one that hangs")


def test_several_hosts_are_named_and_what_they_share_is_said_once() -> None:
    other = replace(NODE, host="node2", ranks=(Rank(1, FOUR),), versions={"numpy": "1.26"})
    facts = replace(FACTS, size=2, launcher=Launcher("Slurm", 2, 0), nodes=(NODE, other))
    (finding,) = problems(facts)
    assert finding.what == "node2 has numpy 1.26; node1 has numpy 2.4.6"
    (driver,) = (found for found in find_all(facts) if found.topic == "driver")
    assert driver.hosts == ("node1", "node2")
    assert "2 ranks on 2 hosts" in as_text(find_all(facts))
    idle = replace(other, verdicts=())
    assert lacks_devices(replace(facts, nodes=(NODE, idle))) == ["node2"]


def test_a_device_of_two_drivers_is_one_device_and_the_newest_pocl_is_used() -> None:
    tried = TriedDevice(replace(CPU, version="3.0"), None, 0.5, "")
    old = Verdict(Driver("/venv/libpocl.so"), "good", (tried,))
    (twice,) = (f for f in find_all(on(verdicts=(old, GOOD))) if "same device" in f.what)
    assert twice.level == "ok" and "/venv/libpocl.so" in twice.what


@pytest.mark.whole
def test_this_host_is_examined_in_text_and_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["exit_code"] == 0
    (host,) = told["hosts"]
    assert "good" in {driver["outcome"] for driver in host["drivers"]}
    topics = {finding["topic"] for finding in told["findings"]}
    assert topics == {"versions", "mpi", "driver", "caches", "memory", "binding", "shared memory"}


@pytest.mark.whole
def test_processes_that_mpi_does_not_join_speak_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    assert main(["doctor"]) == 1
    said = capsys.readouterr()
    assert "the launcher of Open MPI started 2 processes" in said.out
    assert re.fullmatch(r"controllers: error: \d errors? to mend, see the report\n", said.err)
