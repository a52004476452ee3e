# SPDX-License-Identifier: MIT
"""Files in place of memory: zeros, without a name, read ahead and written back by threads."""
from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from controllers import MemoryCapError
from controllers.memory.scratch_file import AHEAD, READ_NBYTES, ScratchFile

PAGE = 4096


def until(what: Callable[[], bool]) -> None:
    """A limit that only a failure reaches."""
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_parts_are_zero_and_apart_and_the_folder_stays_empty(tmp_path: Path) -> None:
    file = ScratchFile(tmp_path, 4 * PAGE)
    one, first = file.part(1000, np.dtype("f4"))
    two, second = file.part(513, np.dtype("f8"))
    assert (first.first, second.first, one.size, two.size) == (0, PAGE, 1000, 513)
    assert not one.any() and not two.any()
    one[...], two[...] = 1, 2
    assert one.sum() == 1000 and two.sum() == 1026
    assert not [*tmp_path.iterdir()]


def test_a_file_for_which_there_is_no_room(tmp_path: Path) -> None:
    with pytest.raises(MemoryCapError, match="EiB|PiB|TiB") as error:
        ScratchFile(tmp_path, 1 << 62)
    assert "--scratch" in str(error.value) and str(tmp_path) in str(error.value)
    with pytest.raises(MemoryCapError, match="No such file or directory"):
        ScratchFile(tmp_path / "none", PAGE)


def test_what_is_read_next_is_read_so_many_commands_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[int, int]] = []

    def preadv(_: int, rooms: list[memoryview], first: int) -> int:
        read.append((first, len(rooms[0])))
        return len(rooms[0])

    monkeypatch.setattr("controllers.memory.scratch_file.os.preadv", preadv)
    file, ended = ScratchFile(tmp_path, 10 * PAGE), [False] * 5
    for number in range(5):
        file.will_read(lambda number=number: ended[number], [(number * PAGE, PAGE)])
    for n_ended in range(3):
        until(lambda n_ended=n_ended: len(read) == AHEAD + n_ended)
        time.sleep(0.02)    # it does not go on by itself
        assert read == [(number * PAGE, PAGE) for number in range(AHEAD + n_ended)]
        ended[n_ended] = True
    until(lambda: len(read) == 5)
    file.will_read(lambda: True, [(0, READ_NBYTES + 1)])
    ended[3] = True
    until(lambda: len(read) == 7)
    assert read[5:] == [(0, READ_NBYTES), (READ_NBYTES, 1)]


def test_what_was_changed_is_written_when_the_command_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[int, int]] = []
    monkeypatch.setattr(
        "controllers.memory.scratch_file.begin_writing",
        lambda _, first, nbytes: written.append((first, nbytes)),
    )
    file, ended = ScratchFile(tmp_path, 3 * PAGE), threading.Event()
    file.will_write(ended.is_set, [(0, PAGE), (2 * PAGE, 5)])
    time.sleep(0.02)
    assert not written
    ended.set()
    until(lambda: len(written) == 2)
    assert written == [(0, PAGE), (2 * PAGE, 5)]


@pytest.mark.whole
def test_threads_end_with_the_last_use_of_a_file(tmp_path: Path) -> None:
    before = {*threading.enumerate()}
    file = ScratchFile(tmp_path, PAGE)
    array, part = file.part(3, np.dtype("f4"))
    file.will_read(lambda: False, [(0, 1)])
    file.will_write(lambda: False, [(0, 1)])
    own = {*threading.enumerate()} - before
    assert len(own) == 2
    ended = weakref.ref(file)
    del file
    gc.collect()
    assert ended() is part.file
    del part
    gc.collect()
    until(lambda: not any(thread.is_alive() for thread in own))
    array[...] = 1      # the mapping is there as long as somebody has it
    assert array.sum() == 3
