# SPDX-License-Identifier: MIT
"""Links are measured once, and have a say in where places are; the bits stay what they are."""
from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from mpi_jobs import run_ranks
from synthetic_links import nodes_of

from controllers import Computation, Stencil, dry_run, reference_run
from controllers.links.kept_links import VARIABLE, KeptLinks
from controllers.links.link import Link, Links
from controllers.links.machine import Spot, composed, representatives
from controllers.placement import link_trial
from controllers.placement.link_trial import links_of
from controllers.placement.placement import Controllers, open_controllers
from controllers.plan.overlap import LAUNCH_S
from controllers.run import assembly
from controllers.settings.execution import Execution
from hitmap import SerialCommunicator

STAR = [0, 1, 0, 1, 0, 1, 0, 1, 0]
PROGRAM = Stencil.of("mean", [(-1, 1)] * 2, STAR, 4).program("float32")
EXTENT = (8, 70_000)        # rows of a quarter of a megabyte
SLOW = Links.uniform(2, Link(1e-6, 1e8), 1e11)


def opened(devices: str | list[str], *, zero_copy: bool = True) -> Controllers:
    execution = Execution(devices=devices, zero_copy=zero_copy)
    return open_controllers(SerialCommunicator(), PROGRAM, execution)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> KeptLinks:
    """The links of a new folder."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "links"))
    found = KeptLinks.of_user()
    assert found is not None
    return found


def test_links_are_measured_once(kept: KeptLinks, monkeypatch: pytest.MonkeyPatch) -> None:
    controllers, comm = opened("cpu", zero_copy=False), SerialCommunicator()
    links = links_of(controllers, comm)
    assert links is not None and links.n_controllers == 1
    monkeypatch.setattr(link_trial, "_shortest", lambda *_: pytest.fail("measured again"))
    assert links_of(controllers, comm) == links


def test_where_links_are_off_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    assert links_of(opened("reference"), SerialCommunicator()) is None


def test_what_cannot_be_read_is_measured_again(kept: KeptLinks) -> None:
    links = (Link(1e-5, 1e9), Link(2e-5, 2e9))
    kept.store(("device", "x"), links)
    assert kept.load(("device", "x")) == links
    assert kept.load(("device", "y")) is None
    for wrong in (Link(-1.0, 1e9), Link(1e-6, 0.0), Link(float("nan"), 1e9)):
        kept.store(("device", "x"), [wrong])
        assert kept.load(("device", "x")) is None


def test_messages_between_devices_go_through_the_host() -> None:
    up, down, copies, far = (Link(1e-5 * n, 1e9 * n) for n in (1, 2, 3, 4))
    spots = [Spot(0, up, down), Spot(0), Spot(1, up, down), Spot(1)]
    links = composed(spots, ["a", "b"], [copies, copies], {("a", "b"): far})
    assert links.between[0][1] == down.then(copies)
    assert links.between[1][0] == copies.then(up)
    assert links.between[0][2] == down.then(far).then(up)
    assert links.between[1][3] == far and links.between[3][1] == far
    assert links.packing[1] == copies.bytes_per_s < links.packing[0]


def test_copies_within_a_process_are_commands_which_take_some_microseconds() -> None:
    links = composed([Spot(0), Spot(0)], ["a"], [Link(1e-9, 1e10)], {})
    assert links.between[0][1] == Link(LAUNCH_S, 1e10)


def test_of_many_nodes_few_pairs_are_measured() -> None:
    assert representatives(["a", "b", "a", "b"]) == {
        ("a", "a"): (0, 2), ("b", "b"): (1, 3), ("a", "b"): (0, 1),
    }  # fmt: skip
    assert len(representatives([str(n) for n in range(100)])) == 1


def test_a_run_is_cut_where_links_say_so_and_gives_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    monkeypatch.setattr(assembly, "links_of", lambda *_: asked.append(1) or SLOW)
    start = np.random.default_rng(0).random(EXTENT, np.float32)
    with Computation(PROGRAM, EXTENT, devices=["reference"] * 2) as run:
        assert run.layout.topology is not None and run.layout.topology.dims == (1, 2)
        text = run.explain()
        assert "placement: 1 x 2 places in order of rank: an exchange takes" in text
        assert "  usual: 2 x 1 places in order of rank, 5.6" in text
        run.scatter(start)
        run.run(2)
        result = run.gather()
    assert result is not None
    assert np.array_equal(result, reference_run(PROGRAM, start, 2, (False, False)))
    assert len(asked) == 1


@pytest.mark.parametrize(
    "options",
    [{"partition": "bands"}, {"dims": (2, 1)}, {"weights": [1, 1]}],
    ids=lambda options: next(iter(options)),
)
def test_cuts_that_the_user_says_stay(options: dict[str, object]) -> None:
    planned = dry_run(PROGRAM, EXTENT, 2, devices="reference", links=SLOW, **options)
    assert [box.extent for box in planned.plan.layout.owned] == [(4, 70_000)] * 2


def test_small_exchanges_are_no_reason_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "links_of", lambda *_: pytest.fail("measured"))
    with Computation(PROGRAM, (8, 7000), devices=["reference"] * 2) as run:
        assert "placement:" not in run.explain()


def test_a_dry_run_plans_by_the_links_that_it_is_given() -> None:
    usual, other = (dry_run(PROGRAM, EXTENT, 2, links=links) for links in (None, SLOW))
    assert "placement:" not in str(usual)
    assert usual.plan.layout.owned[0].extent == (4, 70_000)
    assert other.plan.layout.owned[0].extent == (8, 35_000)
    assert "placement: 1 x 2 places" in str(other)
    mixed = dry_run(PROGRAM, (32, 1 << 20), 4, partition="bands", links=nodes_of(2, 2, Random(1)))
    assert [where.rank for where in mixed.plan.locations] != [*range(4)]
    assert {where.rank for where in mixed.plan.locations} == {*range(4)}


def test_links_of_other_machines_are_refused() -> None:
    with pytest.raises(ValueError, match="4 controllers need as many"):
        dry_run(PROGRAM, EXTENT, 4, links=SLOW)


RANKS = """
import numpy as np
from controllers import Computation, Stencil, reference_run
from controllers.links.link import Link, Links
from controllers.placement.link_trial import links_of
from controllers.placement.placement import open_controllers
from controllers.run import assembly
from controllers.settings.execution import Execution
from hitmap import default_communicator

comm = default_communicator()
program = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
controllers = open_controllers(comm, program, Execution(devices="reference"))
first, again = (links_of(controllers, comm) for _ in range(2))
assert first is not None and first == again, "the second ones are those that were kept"
assert len(set(comm.allgather(first))) == 1
assert first.between[0][1].latency_s > 0

fast, slow = Link(1e-6, 1e10), Link(1e-6, 1e8)
rows = tuple(tuple(slow if 1 in (a, b) else fast for b in range(3)) for a in range(3))
assembly.links_of = lambda *_: Links(rows, (1e11,) * 3)
start = np.random.default_rng(0).random((9, 70_000), np.float32)
with Computation(program, start.shape, devices="reference", partition="bands") as run:
    assert run.placement.ranks in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1)), run.placement.ranks
    text = run.explain()
    assert "placement: 3 x 1 places by controllers" in text
    run.scatter(start)
    run.run(3)
    result = run.gather()
    before = run.placement.ranks
    run.redistribute(weights=[1, 2, 3])
    run.run(2)
    after = run.gather()
if comm.rank == 0:
    assert np.array_equal(result, reference_run(program, start, 3, (False, False)))
    assert np.array_equal(after, reference_run(program, start, 5, (False, False)))
    print("right")
"""


@pytest.mark.whole
def test_ranks_hold_the_same_links_and_take_other_places(tmp_path: Path) -> None:
    done = run_ranks(3, RANKS, env={VARIABLE: str(tmp_path / "links")})
    assert done.returncode == 0 and done.stdout == "right\n", done.stderr
