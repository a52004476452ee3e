# SPDX-License-Identifier: MIT
from __future__ import annotations

import json

import pytest

from controllers.kernel.configuration import KernelUse, LaunchSize
from controllers.memory.ledger import Ledger
from controllers.plan import PlaceMemory
from controllers.report.report import DeviceReport, PlaceReport, Report, Wait
from controllers.report.table import format_table

MEMORY = PlaceMemory(6200, 0, 80, 160), PlaceMemory(2**20, 2**14), PlaceMemory()
WAITS = (Wait(1, 0.03),)
PLACES = (
    PlaceReport(0, 0, "NVIDIA H200", 750, 0.75, 3e9, 1.5, 0.0321, MEMORY[0], 0, 0.05, WAITS),
    PlaceReport(1, 0, "cpu (1 of 2 cores)", 250, 0.25, 1.25e6, 12.34, 0.0, MEMORY[1], 1, 0.0079),
    PlaceReport(2, 1, "reference", 0, 0.0, 0.0, 0.0, 0.0, MEMORY[2]),
)


def device(rank: int, peak_bytes: int, cap_bytes: int) -> DeviceReport:
    ledger = Ledger(f"device {rank}", cap_bytes)
    ledger.take(peak_bytes, "tiles")
    ledger.give_back(peak_bytes - 100, "tiles")
    ledger.take(40, "host staging")
    return DeviceReport.of(rank, 0, ledger)


DEVICES = device(0, 2**30, 2**40), device(1, 2**20, 2**22)
ROWS = "generated, strategy 'rows', lanes 16"
KERNELS = (
    KernelUse("cpu", "heat", "kgt_heat", ROWS, (), (LaunchSize((9, 9)),)),
    KernelUse("cpu", "heat", "kgt_heat", ROWS, (), (LaunchSize((8, 9)),)),
    KernelUse("NVIDIA H200", "heat", "kgt_heat", "generated, strategy 'cell'", ()),
)
REPORT = Report(2.0, 400, 1000, PLACES, DEVICES, KERNELS)


def test_the_numbers_follow_from_seconds_steps_and_cells() -> None:
    assert REPORT.seconds_per_step == 0.005
    assert REPORT.cells_per_s == 200_000


def test_without_steps_or_seconds_there_is_nothing_to_divide() -> None:
    nothing = Report(0.0, 0, 1000, ())
    assert nothing.seconds_per_step == nothing.cells_per_s == 0
    assert nothing.table().splitlines()[-1].startswith("0 steps of 1000 cells in 0 s")


def test_as_json_it_has_all_numbers_and_the_places_as_a_list() -> None:
    data = json.loads(json.dumps(REPORT.as_dict()))
    assert {k: v for k, v in data.items() if k not in ("places", "devices", "kernels")} == {
        "seconds": 2.0, "seconds_per_step": 0.005, "cells_per_s": 200_000.0, "steps": 400,
        "cells": 1000, "imbalance": REPORT.imbalance, "hidden": REPORT.hidden,
            "math": "strict", "steps_per_launch": 1, "tuning": None, "scalars": {},
            "balance": None, "choice": None, "exchange": None,
            "halo_width": 1, "widths": {}, "lengths": [], "pipeline": None, "digests": None,
    }  # fmt: skip
    assert isinstance(data["places"], list)
    assert data["places"][1] == {
        "place": 1, "rank": 0, "device": "cpu (1 of 2 cores)", "cells": 250, "share": 0.25,
        "cells_per_s": 1.25e6, "compute_s": 12.34, "exposed_s": 0.0,
        "memory": {
            "tiles": 2**20, "alignment": 2**14, "device_staging": 0, "host_staging": 0,
            "host_images": 0, "image_files": 0,
        },
        "controller": 1, "exchange_s": 0.0079, "waits": [], "hidden": 1.0,
    }  # fmt: skip
    assert data["places"][0]["waits"] == [{"place": 1, "seconds": 0.03}]
    assert data["places"][2]["hidden"] is None
    assert data["kernels"][1]["launches"][0]["extent"] == [8, 9]
    assert data["kernels"][2]["origin"] == "generated, strategy 'cell'"


def test_hidden_is_the_share_of_all_exchanges_that_was_not_exposed() -> None:
    assert REPORT.hidden == pytest.approx(1 - 0.0321 / (0.05 + 0.0079))
    assert PLACES[0].hidden == pytest.approx(1 - 0.0321 / 0.05)
    assert Report(1.0, 1, 1, PLACES[2:]).hidden is None


def test_imbalance_compares_devices_whatever_the_number_of_their_places() -> None:
    def report(*times: tuple[int, int, float]) -> Report:
        places = [
            PlaceReport(n, rank, "cpu", 1, 0.1, 1.0, compute_s, 0.0, MEMORY[2], controller)
            for n, (rank, controller, compute_s) in enumerate(times)
        ]
        return Report(1.0, 1, 1, tuple(places))

    assert report((0, 0, 2.0), (0, 0, 2.0), (0, 1, 1.0), (1, 0, 1.0)).imbalance == 4 / 2
    assert report((0, 0, 3.0), (1, 0, 3.0)).imbalance == 1
    assert report((0, 0, 0.0)).imbalance is None


def test_as_json_it_has_the_ledger_of_each_device() -> None:
    data = json.loads(json.dumps(REPORT.as_dict()))
    assert data["devices"][1] == {
        "rank": 1, "controller": 0, "device": "device 1", "cap_bytes": 2**22,
        "peak_bytes": 2**20, "peak_host_bytes": 40,
        "nbytes": {
            "tiles": 100, "alignment": 0, "device_staging": 0, "constants": 0,
            "host_staging": 40, "host_images": 0, "image_files": 0, "snapshots": 0,
        },
    }  # fmt: skip


def test_the_table_has_lines_for_places_for_all_for_kernels_and_for_the_fullest_device() -> None:
    assert REPORT.table().splitlines() == [
        "place  rank  device              share   memory   cells/s  computing  exchange not hidden"
        "  hidden  longest wait",
        "    0     0  NVIDIA H200         75.0%  6.1 KiB     3e+09      1.5 s              32.1 ms"
        "     36%  place 1 30 ms",
        "    1     0  cpu (1 of 2 cores)  25.0%    1 MiB  1.25e+06     12.3 s                  0 s"
        "    100%  -",
        "    2     1  reference            0.0%      0 B         0        0 s                  0 s"
        "       -  -",
        "400 steps of 1000 cells in 2 s: 5 ms per step, 2e+05 cells/s",
        "45% of the exchange was hidden; imbalance 2.67",
        "cpu: stage heat: generated, strategy 'rows', lanes 16",
        "NVIDIA H200: stage heat: generated, strategy 'cell'",
        "at most 1 MiB of 4 MiB in use on a device",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3600, "3.6e+03 s"), (1.0, "1 s"), (0.9994, "999 ms"), (1e-3, "1 ms"), (2.5e-7, "0.25 us")],
)
def test_times_come_in_a_unit_that_suits_them(seconds: float, text: str) -> None:
    assert f" in {text}:" in Report(seconds, 1, 1, ()).table()


def test_a_table_without_rows_is_its_head() -> None:
    assert format_table(("a", "bc"), []) == "a  bc"
