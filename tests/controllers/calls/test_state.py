# SPDX-License-Identifier: MIT
"""A computation is ready, running, torn or closed, and every verb minds that."""
from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import sample

from controllers import Computation, Stencil, TileView, reference_run
from hitmap import SerialCommunicator

MEAN = Stencil.of("mean", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
PROGRAM = MEAN.program("float32")
FIELD = np.random.default_rng(0).random((33, 70), np.float32)
DEVICES = ["reference", "cpu:0"]
LONG = 10**9    # steps that no test waits for


def computation(devices: Any = "reference", **options: Any) -> Computation:
    given = {"places_per_controller": 3, **options}
    run = Computation(PROGRAM, FIELD.shape, devices=devices, comm=SerialCommunicator(), **given)
    run.scatter(FIELD)
    return run


def expected(n_steps: int) -> np.ndarray[Any, Any]:
    return reference_run(PROGRAM, FIELD, n_steps, (False, False))


VERBS: dict[str, Callable[[Computation], object]] = {
    "load": lambda run: run.load(lambda tile: None),
    "visit": lambda run: run.visit(lambda tile: None),
    "scatter": lambda run: run.scatter(FIELD),
    "gather": lambda run: run.gather(),
    "load_file": lambda run: run.load_file("gone.npy"),
    "save": lambda run: run.save("new.npy"),
    "redistribute": lambda run: run.redistribute(weights=[1, 2, 1]),
    "run": lambda run: run.run(1),
    "report": lambda run: run.report(),
    "save_trace": lambda run: run.save_trace("new.json"),
    "explain": lambda run: run.explain(),
    "configurations": lambda run: run.configurations(),
}
NEED_A_WHOLE_FIELD = ("visit", "gather", "save", "redistribute", "run")


def refused(run: Computation, verbs: Any, match: str) -> None:
    """Each of these says that it cannot be called, and how to go on; no file appears."""
    for verb in verbs:
        with pytest.raises(RuntimeError, match=f"^{verb}.*{match}"):
            VERBS[verb](run)
    assert not Path("new.npy").exists()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("inside", ["run", "load", "visit"])
def test_what_a_verb_calls_may_call_no_other_verb(inside: str) -> None:
    with computation() as run:
        match = f"while {inside} is under way.*when {inside} has returned"

        def try_all(*_: object) -> None:
            refused(run, VERBS, match)
            with pytest.raises(RuntimeError, match=f"^close.*{match}"):
                run.close()

        if inside == "run":
            run.run(40, try_all)
            assert np.array_equal(run.gather(), expected(40))
        elif inside == "load":
            run.load(try_all)
        else:
            run.visit(try_all)


def test_after_close_every_verb_says_so() -> None:
    run = computation()
    run.close()
    refused(run, [*VERBS.keys() - {"report"}], "the computation is closed; make a new")
    assert run.report().steps == 0      # what it has cost can still be asked
    run.close()
    assert str(run.state) == "closed"


@pytest.mark.parametrize(("options", "devices", "way"), sample(product(
    [{}, {"steps_per_launch": 3}, {"check": True}], DEVICES,
    ["an error", "KeyboardInterrupt", "a signal"],
), 4), ids=str)  # fmt: skip
def test_a_run_ends_early_at_a_step_that_all_places_share(
    devices: str, way: str, options: dict[str, Any]
) -> None:
    errors = {"an error": ZeroDivisionError("mine"), "KeyboardInterrupt": KeyboardInterrupt()}
    told: list[int] = []

    def end(done: int, total: int) -> None:
        if done < 50 or told:
            return
        told.append(done)
        if way in errors:
            raise errors[way]
        signal.raise_signal(signal.SIGINT)

    with computation(devices, **options) as run:
        kind = ZeroDivisionError if way == "an error" else KeyboardInterrupt
        with pytest.raises(kind) as caught:
            run.run(LONG, end)
        n_steps = run.report().steps
        assert 50 <= n_steps < 300 and n_steps % run.plan.steps_per_launch == 0
        if kind is KeyboardInterrupt:
            assert f"has ended after {n_steps} of {LONG} steps" in str(caught.value)
            assert "can be saved" in str(caught.value)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert str(run.state) == "ready"
        assert np.array_equal(run.gather(), expected(n_steps))
        run.save("part.npy")
        assert np.array_equal(np.load("part.npy"), expected(n_steps))
        run.redistribute(weights=[4, 3, 3])
        run.run(7)
        assert np.array_equal(run.gather(), expected(n_steps + 7))


@pytest.mark.whole
def test_a_tuned_run_ends_early_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTROLLERS_TUNING", "off")

    def end(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with computation("cpu:0", tune=600, places_per_controller=1) as run:
        for n_asked in (1000, 3):
            with pytest.raises(KeyboardInterrupt, match=f"of {n_asked} steps"):
                run.run(n_asked, end)
        n_steps = run.report().steps
        assert 0 < n_steps < 1000
        assert np.array_equal(run.gather(), expected(n_steps))


def test_ctrl_c_after_the_last_step_is_not_lost() -> None:
    def end(done: int, total: int) -> None:
        if done == total:
            signal.raise_signal(signal.SIGINT)

    with computation() as run:
        with pytest.raises(KeyboardInterrupt, match="after 5 of 5 steps"):
            run.run(5, end)
        assert np.array_equal(run.gather(), expected(5))


@pytest.mark.parametrize("devices", DEVICES)
def test_a_second_ctrl_c_tears_the_field_until_it_is_set_anew(devices: str) -> None:
    def end(done: int, total: int) -> None:
        if done >= 20:
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)

    with computation(devices, overlap="on") as run:
        for mend in (
            lambda: run.scatter(FIELD),
            lambda: run.load(lambda tile: np.copyto(tile.array, FIELD[tile.box.slices((0, 0))])),
            lambda: run.load_file("in.npy"),
        ):
            np.save("in.npy", FIELD)
            with pytest.raises(KeyboardInterrupt):
                run.run(LONG, end)
            assert str(run.state) == "torn"
            refused(run, NEED_A_WHOLE_FIELD, "torn, as run was.*load, scatter or load_file")
            assert run.report().places and run.explain() and run.configurations()
            mend()
            run.run(9)
            assert np.array_equal(run.gather(), expected(9))


def test_an_error_of_the_engine_tears_the_field(monkeypatch: pytest.MonkeyPatch) -> None:
    with computation() as run:
        with monkeypatch.context() as patched:
            patched.setattr(run._engine._patience, "until_all", lambda tasks: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                run.run(4)
        refused(run, NEED_A_WHOLE_FIELD, "torn")
        run.scatter(FIELD)
        run.run(4)
        assert np.array_equal(run.gather(), expected(4))


def test_a_load_that_fails_half_way_tears_the_field() -> None:
    def fail(tile: TileView) -> None:
        if tile.place == 1:
            raise ZeroDivisionError

    np.save("large.npy", np.full(FIELD.shape, 1e300))
    with computation() as run:
        run.run(3)
        for verb, broken in (
            ("load", lambda: run.load(fail)), ("load_file", lambda: run.load_file("large.npy")),
        ):
            with pytest.raises((ZeroDivisionError, ValueError)):
                broken()
            refused(run, NEED_A_WHOLE_FIELD, f"torn, as {verb} was")
        run.scatter(FIELD)
        run.run(3)
        with pytest.raises(ValueError, match="float32 takes"):
            run.scatter(np.full(FIELD.shape, 1e300))
        assert np.array_equal(run.gather(), expected(3)), "found before anything is set"


def test_handlers_of_the_program_and_other_threads_are_left_alone() -> None:
    heard: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with computation() as run:
            run.run(40, lambda done, total: signal.raise_signal(signal.SIGINT))
            assert set(heard) == {signal.SIGINT}
            assert np.array_equal(run.gather(), expected(40))
    finally:
        signal.signal(signal.SIGINT, previous)
    with computation() as run:
        thread = threading.Thread(target=run.run, args=(40,))
        thread.start()
        thread.join()
        assert np.array_equal(run.gather(), expected(40))


JOB = """
import json, os, signal, sys, time
import numpy as np
from controllers import Computation, reference_run
from hitmap.comm import default_communicator
from test_state import FIELD, LONG, PROGRAM

comm = default_communicator()
told = {}

def note(name, work):
    try:
        work()
        mine = "nothing"
    except BaseException as error:
        mine = f"{type(error).__name__}: {error}"
    everyone = comm.allgather((mine, run.facts["steps so far"]))
    whole = run.gather()
    if comm.rank == 0:
        steps = {n for _, n in everyone}
        same = [np.array_equal(whole, reference_run(PROGRAM, FIELD, n, (False, False)))
                for n in steps]
        told[name] = [[text for text, _ in everyone], same, *steps]

def interrupt(*ranks):
    sent = []
    def progress(done, total):
        if comm.rank in ranks and done >= 200 * (1 + comm.rank) and not sent:   # at unlike times
            sent.append(done)
            os.kill(os.getpid(), signal.SIGINT)
    return lambda: run.run(LONG, progress)

def fail(done, total):
    if comm.rank == 1 and done >= 100:
        raise ZeroDivisionError("mine")

def ask(done, total):
    run.gather() if comm.rank == 1 or done > 90 else None

def late(done, total):
    if done == total and comm.rank == 1:
        os.kill(os.getpid(), signal.SIGINT)

kinds = [("cpu", {"zero_copy": False}), ("reference", {"partition": "cyclic", "block": (33, 70)}),
         ("reference", {})]
for devices, options in [kinds[int(n)] for n in sys.argv[1:]]:
    with Computation(PROGRAM, FIELD.shape, devices=devices, comm=comm, **options) as run:
        label = f"{devices} {' '.join(options)}"
        def begin():
            run.scatter(FIELD if comm.rank == 0 else None)
        begin()
        note(f"{label}: one rank", interrupt(1))
        note(f"{label}: goes on", lambda: run.run(33))
        begin()
        note(f"{label}: all ranks", interrupt(*range(comm.size)))
        begin()
        note(f"{label}: an error of one", lambda: run.run(LONG, fail))
        begin()
        note(f"{label}: one asks", lambda: run.run(LONG, ask))
        begin()
        run.run(4)
        huge = np.full(FIELD.shape, 1e300) if comm.rank == 0 else None
        note(f"{label}: does not fit", lambda: run.scatter(huge))
        begin()
        note(f"{label}: too late", lambda: run.run(5, late))
if comm.rank == 0:
    print(json.dumps(told))
"""


@pytest.mark.whole
@pytest.mark.parametrize(("n_ranks", "kinds"), sample([(2, "1"), (2, "0"), (3, "012")], 3))
def test_ranks_end_at_one_step_whoever_wants_it(n_ranks: int, kinds: str) -> None:
    env = helpers_path(Path(__file__).parent)
    job = run_ranks(n_ranks, ["-c", JOB, *kinds], timeout=120, env=env)
    assert job.returncode == 0, job.stdout + job.stderr
    for name, (texts, same, *steps) in json.loads(job.stdout).items():
        assert same == [True] and len(steps) == 1, (name, texts, steps)
        assert steps[0] < 10**6
        if "does not fit" in name:
            assert set(texts) == {texts[0]} and "rank 0: the whole array: cell (0, 0)" in texts[0]
            assert steps == [4], "the field is as it was"
        elif "goes on" in name:
            assert texts == ["nothing"] * n_ranks
        elif name.endswith(("one rank", "all ranks", "too late")):
            where = f"KeyboardInterrupt: the run has ended after {steps[0]} of "
            assert all(text.startswith(where) for text in texts), (name, texts)
        elif name.endswith("an error of one"):
            assert texts[1] == "ZeroDivisionError: mine"
            said = "RuntimeError: progress has failed on rank 1: ZeroDivisionError: mine; the run "
            assert all(text.startswith(said) for text in texts[:1] + texts[2:]), texts
        else:
            assert all("gather must not be called while run is under way" in t for t in texts)
