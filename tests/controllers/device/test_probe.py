# SPDX-License-Identifier: MIT
"""Drivers that abort or hang are told from those that work, and left out."""
from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from mpi_jobs import SOON_S, run_ranks
from stub_driver import ABORTS, HANGS, copy_drivers, make_driver

from controllers.device import (
    NoDeviceError,
    find_devices,
    probe,
    probe_wanted,
    reference_device,
)
from controllers.device.child import kernel_cache_folder, try_driver
from controllers.device.driver import Driver, installed_drivers, loading_only
from controllers.device.remedy import explained, problems, remedy
from controllers.device.verdict import TrialOutcome, TriedDevice, Verdict, computing
from controllers.doctor.facts import HostFacts
from controllers.doctor.findings import drivers
from controllers.placement.placement import one_device

RUN = "-m controllers run p.py --size 40 30 --iterations 3"
WITHOUT_LD = "Final linking of kernel trial failed."
NODE = HostFacts("node1", (), {}, (), (), 64 << 30, 32 << 30, 4, {})
GOOD_DRIVER = Driver("/lib/good.so", "/etc/OpenCL/vendors/good.icd")


def good(driver: Driver = GOOD_DRIVER) -> Verdict:
    return Verdict(driver, "good", (TriedDevice(reference_device(), None, 0.5, ""),), "", 1.0)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pattern, and caches of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("p.py").write_text("shape = ((-1, 1), (-1, 1))\npattern = [[0,1,0],[1,0,1],[0,1,0]]\n"
                            "factor = 4\n")  # fmt: skip
    return tmp_path


def controllers(arguments: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments.split()]
    return subprocess.run(
        command, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


@pytest.mark.whole
def test_drivers_that_hang_or_abort_are_named_and_the_others_used(workplace: Path) -> None:
    vendors = workplace / "vendors"
    copy_drivers(vendors)
    make_driver(vendors, "hang", HANGS)
    make_driver(vendors, "die", ABORTS)
    environment = {"OCL_ICD_VENDORS": str(vendors), "CONTROLLERS_PROBE": "9"}
    start = time.monotonic()
    job = controllers("-m controllers doctor --json", environment)
    assert time.monotonic() - start < SOON_S
    assert job.returncode == 0, job.stderr
    told = {f["what"]: f for f in json.loads(job.stdout)["findings"] if f["level"] == "warning"}
    assert f"{vendors}/hang.icd: loading it takes more than 9 s" in told
    dies = told[f"{vendors}/die.icd: loading it ends the process (SIGABRT)"]
    assert dies["remedy"].endswith(f"mv {vendors}/die.icd {vendors}/die.icd.off")
    job = run_ranks(2, RUN.split(), env=environment)
    assert job.returncode == 0, job.stderr
    assert "3 steps" in job.stdout
    assert job.stderr.count("hang.icd is left out") == job.stderr.count("die.icd is left out") == 1


def test_without_a_linker_the_remedy_is_given_and_nothing_dies(workplace: Path) -> None:
    if any("libpocl" not in driver.library for driver in installed_drivers()):
        pytest.skip("there are drivers that need no linker")
    environment = {"PATH": str(workplace)}
    start = time.monotonic()
    job = controllers("-m controllers doctor", environment)
    assert time.monotonic() - start < SOON_S
    assert job.returncode == 3, job.stderr
    assert "PoCL needs the" in job.stdout and "remedy" in job.stdout
    assert "gcc" in job.stdout.partition("remedy")[2]
    job = run_ranks(2, RUN.split(), env=environment)
    assert job.returncode == 3, job.stderr
    assert job.stderr.count("needs the linker") == 1 and "gcc" in job.stderr
    assert "Traceback" not in job.stderr
    early = (
        "import pyopencl as cl, controllers\n"
        "cl.get_platforms()[0].get_devices()\n"
        "s = controllers.Stencil.of('s', [(-1, 1)], [1, 0, 1], 2)\n"
        "try: controllers.Computation(s.program('float32'), (9,))\n"
        "except RuntimeError as error: print(error)\n"
    )
    job = subprocess.run(
        [sys.executable, "-c", early], env={**os.environ, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "needs the linker" in job.stdout, job.stderr


@pytest.mark.whole
def test_a_trial_leaves_nothing_behind(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workplace / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(workplace / "temporary"))
    make_driver(workplace, "die", ABORTS)
    drivers = [*installed_drivers(), Driver(str(workplace / "libdie.so"))]
    assert {"good", "aborted"} <= {try_driver(driver, 60).outcome for driver in drivers}
    assert not list(kernel_cache_folder().glob("trial-*"))
    assert not list((workplace / "temporary").iterdir())


class Trials:
    """Stands in for the trials of a driver, each with the outcome that is set."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tried: list[Driver] = []
        self.outcome: TrialOutcome = "good"
        self.icd = folder / "a.icd"
        self.icd.write_text("libnone.so")
        monkeypatch.setattr(sys.modules["controllers.device.probe"], "try_driver", self._try)
        monkeypatch.setenv("OCL_ICD_VENDORS", str(self.icd))

    def _try(self, driver: Driver, limit_s: float) -> Verdict:
        self.tried.append(driver)
        found = replace(good(driver), outcome=self.outcome)
        gpu = replace(found.tried[0], device=replace(reference_device(), kind="gpu", name="a GPU"))
        return replace(found, tried=(gpu,) if self.outcome == "good" else ())

    def count(self, verdicts: Sequence[Verdict]) -> int:
        """How many there have been once `verdicts` are known."""
        return len(self.tried)


@pytest.fixture
def trials(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    return Trials(workplace, monkeypatch)


def test_a_verdict_is_kept_until_the_driver_changes(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials
) -> None:
    first = probe()
    assert probe() == first and len(trials.tried) == 1
    assert trials.count(probe(fresh=True)) == 2
    trials.icd.write_text("libother.so")
    probe()
    assert [driver.library for driver in trials.tried] == ["libnone.so"] * 2 + ["libother.so"]
    for entry in (workplace / "cache").rglob("*.json"):
        entry.write_bytes(entry.read_bytes()[:-1])
    trials.outcome = "hung"
    probe(), probe()
    assert len(trials.tried) == 4, "a damaged entry is a miss, a bad verdict is kept"
    monkeypatch.setattr(sys.modules["controllers.device.probe"], "BAD_FOR_S", 0.0)
    assert trials.count(probe()) == 5, "but not for ever"


def test_a_bad_verdict_is_of_minutes_and_of_its_limits(
    monkeypatch: pytest.MonkeyPatch, trials: Trials
) -> None:
    trials.outcome = "hung"
    monkeypatch.setenv("CONTROLLERS_PROBE", "0.3")
    assert trials.count(probe()) == trials.count(probe()) == 1
    monkeypatch.setenv("CONTROLLERS_PROBE", "60")
    assert trials.count(probe()) == 2, "more time, another verdict"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    try:
        assert trials.count(probe()) == 3, "other limits, another verdict"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 10 * 60)
    assert trials.count(probe()) == 4


def test_before_a_run_without_a_device_a_driver_is_tried_again(trials: Trials) -> None:
    trials.outcome = "aborted"
    probe()
    assert trials.count(probe_wanted([["reference"]])) == 1, "what is wanted is there"
    trials.outcome = "good"
    assert [verdict.outcome for verdict in probe_wanted([["reference"], ["gpu"]])] == ["good"]
    assert trials.count(probe_wanted([["gpu"]])) == 2
    trials.outcome = "hung"
    trials.icd.write_text("libother.so")
    assert trials.count(probe_wanted([[]])) == 3, "not twice in a row"
    assert trials.count(probe_wanted([[]])) == 4


FLAKY = """
    extern void *dlopen(const char *, int), *dlsym(void *, const char *);
    if (!access("%s", 0)) abort();
    void *(*found)(const char *) = dlsym(dlopen("%s", 2), "clGetExtensionFunctionAddress");
    return found(name);
"""


@pytest.mark.whole
def test_ranks_use_a_driver_that_failed_and_is_well_again(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pocl = next((d.library for d in installed_drivers() if "libpocl" in d.library), "")
    if not os.path.isabs(pocl):
        pytest.skip("no PoCL of PyOpenCL's")
    broken = workplace / "broken"
    broken.touch()
    make_driver(workplace / "vendors", "flaky", FLAKY % (broken, pocl))
    icd = workplace / "vendors" / "flaky.icd"
    environment = {
        "OCL_ICD_VENDORS": str(icd), "PYOPENCL_HOME": "", "POCL_CACHE_DIR": str(workplace / "pocl"),
    }  # fmt: skip
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    kept = {verdict.driver.icd: verdict.outcome for verdict in probe()}
    assert kept[str(icd)] == "aborted"
    broken.unlink()
    assert {v.driver.icd: v.outcome for v in probe()}[str(icd)] == "aborted", "kept"
    job = run_ranks(2, [*RUN.split(), "--device", "cpu"], 60, environment)
    assert job.returncode == 0, job.stderr


def test_a_controller_warns_of_a_driver_that_is_left_out(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["controllers.placement.placement"]
    gone = Verdict(Driver("libgpu.so"), "hung", (), "loading it takes more than 20 s")
    verdicts = [*probe(), gone]
    monkeypatch.setattr(module, "probe_wanted", lambda everyone: verdicts)
    monkeypatch.setattr(module, "choose_usable", lambda *arguments: find_devices()[:1])
    with pytest.warns(RuntimeWarning, match="OpenCL driver libgpu.so is left out"):
        one_device("")


def test_without_any_driver_the_remedy_is_to_install_one() -> None:
    nothing = Verdict(Driver(""), "empty", (), "offers no OpenCL platform")
    (finding,) = (f for f in drivers(replace(NODE, verdicts=(nothing,))) if f.level == "error")
    assert 'pip install "opencl-controllers[local]"' in finding.remedy
    assert "video" not in finding.remedy


def test_a_driver_that_offers_no_device_is_told_of_where_there_is_the_hardware(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = Verdict(Driver("libnvidia-opencl.so.1"), "empty", (), "offers no device")
    monkeypatch.setattr("controllers.device.remedy._HARDWARE", {"nvidia": str(workplace / "gpu")})
    assert problems([empty]) == []
    (workplace / "gpu").touch()
    assert len(problems([empty])) == 1


def test_the_probe_can_be_limited_or_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTROLLERS_PROBE", "off")
    assert {verdict.outcome for verdict in probe()} == {"untried"}
    for wrong in ("never", "0", "-1", "inf"):
        monkeypatch.setenv("CONTROLLERS_PROBE", wrong)
        with pytest.raises(ValueError, match=f"number of seconds.*'{wrong}'"):
            probe()


def test_drivers_are_found_as_the_loader_finds_them(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendors = workplace / "vendors"
    vendors.mkdir()
    (vendors / "near.icd").write_text("libnear.so\n")
    (vendors / "libnear.so").touch()
    (vendors / "far.icd").write_text("libfar.so.1")
    monkeypatch.setenv("OCL_ICD_FILENAMES", "")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(vendors))
    libraries = [driver.library for driver in installed_drivers()]
    assert libraries[:2] == ["libfar.so.1", str(vendors / "libnear.so")]
    monkeypatch.setenv("OCL_ICD_VENDORS", "libalone.so")
    assert installed_drivers() == [Driver("libalone.so")]
    monkeypatch.setenv("OCL_ICD_VENDORS", str(vendors / "far.icd"))
    assert installed_drivers() == [Driver("libfar.so.1", str(vendors / "far.icd"))]
    monkeypatch.setenv("OCL_ICD_FILENAMES", "libmore.so")
    assert installed_drivers()[0] == Driver("libmore.so")


def test_what_the_loader_reads_is_changed_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", "/mine")
    before = dict(os.environ)
    with loading_only([Driver("liba.so"), Driver("libb.so")]):
        folder = Path(os.environ["OCL_ICD_VENDORS"])
        assert sorted(file.read_text() for file in folder.iterdir()) == ["liba.so\n", "libb.so\n"]
    assert dict(os.environ) == before and not folder.exists()


def test_devices_that_failed_are_not_used_though_their_driver_is_loaded() -> None:
    device = reference_device()
    bad = replace(device, name="bad")
    failed = Verdict(GOOD_DRIVER, "failed", (TriedDevice(bad, None, 0.1, "computed 3 wrongly"),))
    assert computing([device, bad], [good(), failed]) == [device]
    other_is_good = Verdict(Driver("x"), "good", (TriedDevice(bad, None, 0.1, ""),))
    assert computing([device, bad], [failed, other_is_good]) == [device, bad]


BAD = [
    (Verdict(GOOD_DRIVER, "aborted", (), WITHOUT_LD), "gcc"),
    (Verdict(GOOD_DRIVER, "aborted", (), "loading it ends the process"), "mv .*good.icd.off"),
    (Verdict(GOOD_DRIVER, "hung", (), "loading it takes more than 20 s"), "mv .*good.icd.off"),
    (Verdict(Driver("libx.so"), "hung", (), "loading it takes"), "unset what names libx.so"),
    (Verdict(GOOD_DRIVER, "empty", (), "offers no device"), "video and render"),
    (Verdict(GOOD_DRIVER, "empty", (), "cannot be loaded: x"), "install the driver again"),
    (Verdict(Driver("/libpocl.so"), "empty", (), "offers no device"), "POCL_DEVICES"),
]


@pytest.mark.parametrize(("verdict", "mend"), BAD)
def test_every_fault_has_a_remedy(verdict: Verdict, mend: str) -> None:
    assert re.search(mend, remedy(verdict))
    assert len(problems([verdict, good()])) == (0 if verdict.outcome == "empty" else 1)
    error = explained(NoDeviceError("none"), [reference_device()], [verdict])
    assert re.search(mend, str(error)) and str(error).startswith("no usable OpenCL device: ")
    kept = explained(ValueError("no 'gpu'"), [replace(reference_device(), kind="cpu")], [verdict])
    assert str(kept).startswith("no 'gpu'; OpenCL driver")
    assert explained(error, [], [good()]) is error
