# SPDX-License-Identifier: MIT
"""Messages as commands, and engines of several ranks that hand over through them."""
from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mpi_jobs import run_ranks

from controllers.device.event import COMPLETE, UNDER_WAY
from controllers.engine.network import AHEAD, LARGEST_TAG, MessageEnd
from hitmap import SerialCommunicator

HEAD = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2] / "support")!r})
import numpy as np
from controllers.engine.network import MessageEnd
from controllers.device.event import COMPLETE, is_complete
from hitmap import Layout, Shape, default_communicator
comm = default_communicator()
"""

# what was not received lies around: each message has a tag of its own
MESSAGES = HEAD + """
for how, most in (("whole", 2**30), ("parts", 32)):
    for n_sent, n_expected in ((7, 9), (9, 7), (8, 8)):
        sends = comm.rank == 0
        cells = np.zeros(n_sent if sends else n_expected, "float32")
        tag = n_sent + 10 * (how == "parts")
        message = MessageEnd(comm, [cells], 1 - comm.rank, tag, sends=sends, most_nbytes=most)
        message(None)
        try:
            message.wait()
        except Exception as error:
            text = " ".join(str(error).split())
            print(f"{how}: rank {comm.rank}, {n_sent} for {n_expected}: "
                  f"{type(error).__name__}: {text}")

if comm.rank == 0:
    sizes = (1, 1000, 300_000)
else:
    sizes = (300_000, 1, 1000)      # tags tell them apart, not their order
tags = {1: 100, 1000: 105, 300_000: 32767}
sends = comm.rank == 0
for most in (2**30, 99_991):
    cells = [np.zeros(n) for n in sizes]
    messages = [
        MessageEnd(comm, [a], 1 - comm.rank, tags[a.size], sends=sends, most_nbytes=most)
        for a in cells
    ]
    assert all(is_complete(message) for message in messages)     # nothing is under way yet
    for number in range(1, 6):
        if comm.rank == 1:
            events = [message(None) for message in messages]
            assert not any(is_complete(event) for event in events)
        comm.Barrier()
        if comm.rank == 0:
            for a in cells:
                a[...] = number + 1 / np.arange(1, a.size + 1)
            events = [message(None) for message in messages]
        for event in events:
            event.wait()
            assert event.command_execution_status == COMPLETE
        assert all((a == number + 1 / np.arange(1, a.size + 1)).all() for a in cells)
        comm.Barrier()
    for message in messages:
        message.close()
if comm.rank == 0:
    print("started again")
"""

LAZY = HEAD + """
from lazy_executor import LazyExecutor
from lazy_world import World
from controllers.engine import Engine
from controllers.plan import Location, Plan
from controllers.program.reference import reference_run
from controllers.language.weights import Stencil
from hitmap import gather

start = MessageEnd.__call__
def checked(self, wait_for=None):
    assert is_complete(self), "a request is started again while it is under way"
    return start(self, wait_for)
MessageEnd.__call__ = checked

star = Stencil.of("star", [(-1, 2), (-1, 1)], [0, 1, 0, 1, 0.3, 1, 0, 1, 0, 0, 2, 0], 4)
program = star.program("float32")
field = np.random.default_rng(1).random((17, 11), "float32")
ranks = (0, 0, 1, 2, 2)
for seed in range(6):
    world = World(100 * seed + comm.rank, eagerness=(0.05, 0.3, 0.8)[(seed + comm.rank) % 3])
    shares = [(seed + rank) % 2 == 0 for rank in ranks]
    periodic = (bool(seed & 1), bool(seed & 2))
    layout = [Layout.bands, Layout.blocks][seed % 2](Shape.of_extent(field.shape), 5)
    locations = [Location(rank, place, shares[place]) for place, rank in enumerate(ranks)]
    plan = Plan(program, layout, periodic, locations, overlap="on", only_rank=comm.rank)
    executors = {p: LazyExecutor(world, shares_host=shares[p], name=str(p)) for p in plan.places}
    messages = comm.Dup()
    engine = Engine(plan, executors, messages)
    for place in plan.places:
        for tile in engine.to_set("u", place):
            cells = field[layout.owned[place].slices((0, 0))]
            executors[place].move_to(tile, layout.owned[place], cells)
    done = 0
    for n_steps in (3, 1, 2, 7):
        engine.run(n_steps)
        done += n_steps
        parts = {
            p: executors[p].move_from(engine.newest("u", p), layout.owned[p]) for p in plan.places
        }
        whole = gather(parts, layout, ranks, comm, np.dtype("float32"))
        if comm.rank == 0:
            expected = reference_run(program, field, done, periodic)
            assert np.array_equal(whole, expected), (seed, done)
    engine.close()
    messages.Free()
    assert not [what for what in world.dropped_early if "load" in what]
if comm.rank == 0:
    print("right")
"""


@pytest.fixture(scope="module")
def messages() -> list[str]:
    """What two ranks that send one another messages print."""
    job = run_ranks(2, MESSAGES)
    assert job.returncode == 0, job.stderr
    return sorted(job.stdout.splitlines())


@pytest.mark.parametrize("how", ["whole", "parts"])
def test_a_message_of_another_length_is_an_error_of_its_receiver_alone(
    how: str, messages: list[str]
) -> None:
    short, long = (line for line in messages if line.startswith(how))
    assert short.startswith(f"{how}: rank 1, 7 for 9: WrongLength: ")
    assert "from rank 0 to rank 1" in short and "have 36 bytes" in short and "got 28" in short
    assert "same program" in short
    assert long.startswith(f"{how}: rank 1, 9 for 7: WrongLength: ")    # not written beyond the end
    assert "have 28 bytes" in long and "MPI" in long


def test_a_message_can_be_started_again_when_it_is_complete(messages: list[str]) -> None:
    assert "started again" in messages


@pytest.mark.whole
def test_ranks_whose_devices_run_at_any_time_give_the_bits_of_the_reference() -> None:
    job = run_ranks(3, LAZY)
    assert job.returncode == 0, job.stderr
    assert job.stdout == "right\n"


def test_a_tag_that_not_every_mpi_allows_is_refused() -> None:
    with pytest.raises(ValueError, match="32768.*fewer places"):
        MessageEnd(SerialCommunicator(), [np.zeros(3)], 1, LARGEST_TAG + 1, sends=True)


class Immediate(SerialCommunicator):
    """Messages are done as soon as they are asked after."""

    def __init__(self) -> None:
        self.begun: list[int] = []      # bytes of each

    def Send_init(self, buf: Any, /, dest: int, tag: int = 0) -> Any:
        return SimpleNamespace(
            Start=lambda: self.begun.append(buf.size), Test=lambda status: True, Free=lambda: None
        )


def test_one_look_brings_one_piece_and_few_are_under_way() -> None:
    comm, nbytes = Immediate(), 100
    runs = [np.zeros(4 * nbytes, np.uint8), np.zeros(2 * nbytes + 1, np.uint8)]
    message = MessageEnd(comm, runs, 1, 0, sends=True, most_nbytes=nbytes)
    message(None)
    for n_looks in range(1, 7):
        assert len(comm.begun) == min(AHEAD + n_looks - 1, 7)
        assert message.command_execution_status == UNDER_WAY
    assert message.command_execution_status == COMPLETE
    assert comm.begun == [nbytes] * 6 + [1], "no piece has cells of two runs"
