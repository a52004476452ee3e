# SPDX-License-Identifier: MIT
"""A report of chunks on several devices says whether they share their links: measured once."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import run_ranks

from controllers import Computation, Stencil
from controllers.links.kept_links import VARIABLE
from controllers.links.shared_links import SharedLinks
from controllers.placement import sharing_trial
from controllers.report.pipeline import PipelineReport

CROSS = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
PARTS = "cpu/1,1"


@pytest.fixture(autouse=True)
def few_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "links"))
    monkeypatch.setattr(sharing_trial, "NBYTES", 1 << 16)


def seen(devices: str, **options: Any) -> PipelineReport:
    start = np.random.default_rng(0).random((200, 64), np.float32)
    with Computation(
        CROSS, start, devices=devices, zero_copy=False, chunks=3, halo_width=4, **options
    ) as run:
        run.run(24)
        found = run.report().pipeline
    assert found is not None
    return found


def test_what_devices_have_at_once_is_measured_once_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = seen(PARTS)
    assert found.links is not None and found.links.n_devices == 2
    assert found.links.alone > 0 and found.links.together > 0
    assert str(found).splitlines()[1] == f"  {found.links}"
    plain: Any = found.as_dict()["links"]
    assert plain["together"] / plain["alone"] == plain["part"]
    monkeypatch.setattr(sharing_trial, "_measured", lambda *_: pytest.fail("measured again"))
    assert seen(PARTS).links == found.links


def test_one_device_shares_with_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing_trial, "_measured", lambda *_: pytest.fail("measured"))
    one = seen("cpu")
    assert one.links is None and "\n" not in str(one)
    monkeypatch.setenv(VARIABLE, "off")
    assert seen(PARTS).links is None


def test_where_nothing_can_be_measured_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing_trial, "NBYTES", 1 << 22)
    assert seen(PARTS, memory_cap="48k").links is None


def test_pieces_go_to_each_device_alone_and_then_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, shortest = list[int](), sharing_trial._shortest

    def counted(moves: Sequence[Any], *others: Any) -> dict[str, float]:
        at_once.append(len(moves))
        return shortest(moves, *others)

    monkeypatch.setattr(sharing_trial, "_shortest", counted)
    seen(PARTS)
    assert at_once == [1, 1, 2]


@pytest.mark.parametrize("together, shared", [(89.0, True), (91.0, False)])
def test_a_tenth_less_is_shared(together: float, shared: bool) -> None:
    assert SharedLinks(2, 100.0, together).are_shared == shared


RANKS = """
import numpy as np
from controllers import Computation, Stencil
from controllers.placement import sharing_trial

sharing_trial.NBYTES = 1 << 16
cross = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
with Computation(cross, (200, 64), devices="cpu", zero_copy=False, chunks=3, halo_width=4) as run:
    run.run(24)
    links, comm = run.report().pipeline.links, run.comm
assert len(set(comm.allgather(links))) == 1
if comm.rank == 0:
    assert links.n_devices == 3, links
    print("right")
"""


def test_the_devices_of_all_ranks_of_a_node_count(tmp_path: Path) -> None:
    done = run_ranks(3, RANKS, env={VARIABLE: str(tmp_path / "links")})
    assert done.returncode == 0 and done.stdout == "right\n", done.stderr
