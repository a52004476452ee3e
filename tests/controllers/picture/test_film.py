# SPDX-License-Identifier: MIT
"""Films: which steps they show, what they are when a run ends early, and what may go wrong."""
from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from films import frame, n_frames
from mpi_jobs import helpers_path, run_ranks
from sample import sample

import controllers as ct
from controllers.picture import frames as frames_module
from controllers.picture import panels as panels_module
from controllers.picture.film import Film
from hitmap import SerialCommunicator

pytest.importorskip("matplotlib")
from matplotlib.animation import FFMpegWriter

GRID = ct.Grid(y=9, x=14, boundary="periodic")


@ct.step
def heat(u, v):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=u + 0.2 * around, v=v + 1, top=ct.max(u))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def titles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of all frames that are drawn."""
    found: list[str] = []
    show = panels_module.Panels.show

    def noted(panels: Any, values: Any, title: str) -> None:
        found.append(title)
        show(panels, values, title)

    monkeypatch.setattr(panels_module.Panels, "show", noted)
    return found


def running(**options: Any) -> ct.Computation:
    start = dict(u=lambda y, x: np.sin(y) * x, v=0.0)
    return ct.Computation(
        heat, GRID, devices="reference", comm=SerialCommunicator(), **{**start, **options}
    )


@pytest.mark.whole
def test_a_film_has_the_first_step_each_n_th_and_the_last(titles: list[str]) -> None:
    with running(dt=0.5) as run:
        run.run(3)
        run.run(7, plot=("a.gif", ct.every(steps=3)))
        assert n_frames(Path("a.gif")) == len(titles) == 4
        assert titles == [
            "heat: 3 steps, t = 1.5", "heat: 6 steps, t = 3", "heat: 9 steps, t = 4.5",
            "heat: 10 steps, t = 5",
        ]  # fmt: skip
        run.run(until=lambda now: now.step == 14, at_most=200, plot="b.gif")
        assert n_frames(Path("b.gif")) == 3      # 200 / 100 steps between: 10, 12, 14
        for now in run.steps(4, every=2, plot=("c.gif", ct.every(steps=1))):
            titles.append(str(now.step))
        assert n_frames(Path("c.gif")) == 5
        for _ in run.steps(4, plot=("d.gif", ct.every(steps=1))):
            break
        assert n_frames(Path("d.gif")) == 2      # what is there
        run.run(5)
        assert n_frames(Path("c.gif")) == 5 and run.step == 24


def test_frames_show_the_fields_of_their_step() -> None:
    with running() as run:
        run.run(2, plot=ct.plot("a.gif", ct.every(steps=1), fields=["v"], limits=(0, 2)))
    middles = [frame(Path("a.gif"), n)[300, 300].astype(int) for n in range(3)]
    assert middles[0].sum() < middles[1].sum() < middles[2].sum()      # 0, 1, 2: dark to white
    assert middles[2].min() > 240 and middles[0].max() < 40


@pytest.mark.parametrize("way", sample(["checkpoints", "looks"], 2))
def test_the_same_frames_whatever_way_steps_are_run(way: str) -> None:
    with running() as run:
        run.run(3, plot=("a.gif", ct.every(steps=2)), stop_if=True)
    with running(places_per_controller=2) as run:
        if way == "looks":
            for _ in run.steps(3, every=1, plot=("b.gif", ct.every(steps=2))):
                pass
        else:
            run.run(3, plot=("b.gif", ct.every(steps=2)), checkpoint=("kept", ct.every(steps=1)))
    assert n_frames(Path("a.gif")) == 3
    assert Path("b.gif").read_bytes() == Path("a.gif").read_bytes()


@pytest.mark.whole
def test_a_run_that_goes_on_has_a_film_of_its_own(titles: list[str]) -> None:
    def run(n_steps: int, restart: str | None = None) -> None:
        with running() as one:
            one.run(n_steps, plot=("a.gif", ct.every(steps=2)), checkpoint="kept", restart=restart)

    run(4)
    before = Path("a.gif").read_bytes()
    run(8, "require")
    assert Path("a.gif").read_bytes() == before
    assert n_frames(Path("a-from-4.gif")) == 3 and titles[3:] == [
        "heat: 4 steps", "heat: 6 steps", "heat: 8 steps"
    ]  # fmt: skip


@pytest.mark.whole
def test_after_an_error_there_is_what_was_filmed() -> None:
    def broken(done: int, total: int) -> None:
        if done >= 4:
            raise KeyError("mine")

    with running() as run:
        with pytest.raises(KeyError):
            run.run(9, progress=broken, plot=("a.gif", ct.every(steps=1)))
        assert n_frames(Path("a.gif")) == run.step + 1 >= 5
        run.u[2, 3] = np.nan
        with pytest.raises(FloatingPointError):
            run.run(9, stop_if=True, check_every=3, plot=("b.gif", ct.every(steps=1)))
        assert n_frames(Path("b.gif")) >= 2
    assert sorted(path.name for path in Path().iterdir()) == ["a.gif", "b.gif"]


def test_an_error_while_drawing_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, figure: Any) -> None:
        raise OSError(28, "No space left on device", "a.gif")

    monkeypatch.setattr(frames_module.GifFrames, "add", full)
    with running() as run:
        with pytest.raises(OSError, match="No space left"):
            run.run(9, plot=("a.gif", ct.every(steps=1)))
        assert run.step < 9 and [*Path().iterdir()] == []
        run.run(9)      # goes on
        assert np.isfinite(run.u.get()).all()


@pytest.mark.parametrize(
    ("plot", "kind", "message"),
    [
        ("a.mp4", ValueError, "ffmpeg, which is not there; install it, or name a file .gif"),
        ("a.xyz", ValueError, "must end with one of .*png.*gif"),
        ("no/a.gif", OSError, "no folder 'no'"),
        (3, TypeError, "plot: the name of a file"),
        (("a.gif", 3), TypeError, "every.steps=10"),
        (("a.gif", ct.every(seconds=3)), ValueError, "takes every.steps="),
        (ct.plot("a.gif", fields="w"), ValueError, "no field 'w'; there are u, v"),
        (ct.plot("a.gif", z=1), ValueError, "no axis 'z'; there are y, x"),
        (ct.plot("a.gif", colours="dark"), ValueError, "no colour map 'dark'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_a_step(
    plot: Any, kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FFMpegWriter, "isAvailable", lambda: False)
    with running() as run:
        with pytest.raises(kind, match=message):
            run.run(9, plot=plot)
        assert run.step == 0
        with pytest.raises(kind, match=message):
            next(run.steps(9, plot=plot))
    with pytest.raises(ValueError, match="say how often a frame is drawn"):
        ct.plot("a.gif").steps_between(None)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (dict(limits=(1, 0)), ValueError), (dict(limits=3), TypeError), (dict(fps=0), ValueError),
        (dict(stride=0), ValueError), (dict(fields=[]), ValueError), (dict(fields=3), TypeError),
        (dict(colours=3), TypeError), (dict(limits="ab"), TypeError),
        (dict(limits={"u": 3}), TypeError),
    ],
)
def test_options_are_checked(options: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        ct.plot("a.gif", **options)


FFMPEG = """#!/bin/sh
for last; do :; done
{ echo "$@"; cat; } > "$last"
exit CODE
"""


@pytest.mark.parametrize("code", sample([0, 3], 2))
def test_films_go_to_ffmpeg_frame_by_frame(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bin").mkdir()
    tool = Path("bin/ffmpeg")
    tool.write_text(FFMPEG.replace("CODE", str(code)), encoding="utf-8")
    tool.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tool.parent.resolve()}{os.pathsep}{os.environ['PATH']}")
    with running() as run:
        film = ct.plot("a.mp4", ct.every(steps=2), fps=7)
        if code:
            with pytest.raises(OSError, match="ffmpeg has failed on a.mp4"):
                run.run(2, plot=film)
            assert sorted(path.name for path in Path().iterdir()) == ["bin"]
            return
        run.run(2, plot=film)
    words, _, pixels = Path("a.mp4").read_bytes().partition(b"\n")
    size = re.search(rb"-s (\d+)x(\d+)", words)
    assert size is not None and b"-framerate 7" in words
    assert len(pixels) == 2 * 4 * int(size[1]) * int(size[2])       # frames of RGBA
    assert sorted(path.name for path in Path().iterdir()) == ["a.mp4", "bin"]


@pytest.mark.whole
def test_steps_wait_for_a_slow_drawer(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[int] = []
    submit = Film._submit

    def noted(film: Film, *args: Any) -> None:
        submit(film, *args)
        waiting.append(len(film._drawing))

    monkeypatch.setattr(Film, "_submit", noted)
    with running() as run:
        run.run(12, plot=("a.gif", ct.every(steps=1)))
    assert len(waiting) == 13 and max(waiting) <= 2


RANKS = """
import numpy as np
import controllers as ct
from controllers.picture.frames import GifFrames
from hitmap import default_communicator

@ct.step
def heat(u):
    return dict(u=u + 0.2 * (u[-1] + u[1] - 2 * u))

comm = default_communicator()
grid = ct.Grid(x=50, boundary="periodic")
with ct.Computation(heat, grid, u=lambda x: x, devices="reference") as run:
    for plot in ("no/a.gif", ("b.gif", ct.every(steps=3))):
        add = GifFrames.add
        def full(self, figure):
            raise OSError(28, "No space left on device")
        GifFrames.add = full
        try:
            run.run(30, plot=plot)
            said = "none"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        GifFrames.add = add
        said = comm.gather(said)
        if comm.rank == 0:
            print(said)
    run.run(4, plot=("c.gif", ct.every(steps=2)))
    try:
        run.run(4, plot="c.gif" if comm.rank else None)
    except ValueError as error:
        print("unlike")
"""


@pytest.mark.whole
def test_all_ranks_end_together(tmp_path: Path) -> None:
    text = f"import os\nos.chdir({str(tmp_path)!r})\n{RANKS}"
    job = run_ranks(2, text, env=helpers_path())
    assert job.returncode == 0, job.stderr
    *errors, first, second = sorted(job.stdout.splitlines())
    for line, what in zip(errors, ("FileNotFoundError: .*'no'", "OSError: .*No space")):
        assert re.match(rf"\[.{what}.*, .RuntimeError: plot= has failed on rank 0", line)
    assert len(errors) == 2 and first == second == "unlike"
    assert [path.name for path in tmp_path.glob("*")] == ["c.gif"]
    assert n_frames(tmp_path / "c.gif") == 3
