# SPDX-License-Identifier: MIT
"""What the launches of a sweep fold at a place, from the device's memory to the host.

Kernels add sums to vectors of digits, and leave the extremes of each work-item or group in a slot
(`kgt.text.fold_text`).  One more kernel then makes one vector of all, which is downloaded.  Where
there are no slots, the vectors are downloaded as they are, which takes less time on a GPU.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyopencl as cl

from controllers.device.event import AllOf, Command, Event
from controllers.executor.opened_device import OpenedDevice
from controllers.executor.result import Result
from controllers.executor.scalar_arguments import set_scalar
from controllers.kernel.build import build, enqueue_kernel
from controllers.kgt.kernel import StageKernel
from controllers.kgt.text.fixed import fixed_source
from controllers.kgt.text.fold_memory import memory_nbytes, n_digits, n_result, n_slots
from controllers.kgt.text.fold_values import FoldValue
from controllers.kgt.text.fold_words import (
    COPIES,
    OF_SLOT,
    TURNS,
    in_words,
    is_most,
    n_extremes,
    sum_words,
    words_of,
)
from controllers.program.accumulator import NAN as NAN_AMONG
from controllers.program.accumulator import NONE, SOME, Accumulator, n_words
from controllers.program.exact_sum import Words
from controllers.program.functions import FLOATS
from hitmap.shape import Shape

CPU_GROUP, GPU_GROUP = 1, 1024  # items that merge; without barriers a CPU compiles in less time
_TURNS = tuple(map(np.int64, range(TURNS)))
NAN_KEY = (1 << 63) - 1


class _Launch(NamedTuple):
    """A kernel, the number of its parameter for the slots or the turn, and that of its box."""

    kernel: cl.Kernel
    number: int
    part: int

    def tell(self, slots: cl.Buffer, firsts: Words) -> None:
        """Where its slots are."""
        self.kernel.set_arg(self.number, slots)
        self.kernel.set_arg(self.number + 1, firsts[self.part])

    def take_turn(self, turn: int) -> None:
        """Which of the vectors it folds into from now on."""
        set_scalar(self.kernel, self.number, _TURNS[turn])


class DeviceFolding:
    """The folds of the launches of a sweep over some boxes of one place.

    When a launch for each box is `bound`, `command` merges what they have left; there may be
    several for a box, which take turns.
    domain: in which cells are counted; all boxes lie in it.
    """

    def __init__(
        self, executor: OpenedDevice, values: Sequence[FoldValue], boxes: Sequence[Shape]
    ) -> None:
        self._executor, self._values, self._n_boxes = executor, values, len(boxes)
        self._n_words, self._n_extremes = sum_words(values), n_extremes(values)
        self._in_words = in_words(values)
        self.domain: Shape | None = None
        self._launches: list[_Launch] = []
        self._turn = 0
        self._n_slots = [0] * len(boxes)
        self.digits, self._seen = executor.words(n_digits(values))
        self._download = Result(executor, n_result(values, len(boxes)))
        self._result = self._download.array     # as it was read last
        self._memory: tuple[cl.Buffer, Words] | None = None     # of all slots; each box's first
        self._command: Command | None = None
        self.nbytes = self.digits.size

    @property
    def arguments(self) -> dict[str, object]:
        """Those of kernels, by parameter; the slots are known when all launches are bound."""
        start = dict.fromkeys(("kgt_fold_turn", "kgt_first_slot"), np.int64(0))
        return {"kgt_digits": self.digits, "kgt_slots": None, **start}

    def bound(
        self, part: int, source: StageKernel, sizes: tuple[tuple[int, ...], tuple[int, ...]]
    ) -> Callable[[cl.Kernel], None]:
        """What is told the kernel of a launch over the box number `part`."""
        names = [parameter.name for parameter in source.parameters]
        if self._in_words:
            self._command = self._command or self._downloading()
        slots = n_slots(source, sizes)

        def told(kernel: cl.Kernel) -> None:
            first = "kgt_fold_turn" if self._in_words else "kgt_slots"
            launch = _Launch(kernel, names.index(first), part)
            self._launches.append(launch)
            if self._in_words:
                launch.take_turn(self._turn)
                return
            if self._memory is not None and slots <= self._n_slots[part]:
                launch.tell(*self._memory)
                return
            self._n_slots[part] = max(slots, self._n_slots[part])
            if all(self._n_slots):
                self._command = self._merging()

        return told

    def command(self, wait_for: Sequence[Event] | None = None) -> Event:
        """Merge what the launches before it have left, and download it."""
        if self._command is None:
            assert not self._n_boxes, "all launches are bound before"
            return AllOf(())
        return self._command(wait_for)

    @property
    def reading(self) -> Command:
        """`command`, for a host that waits for the launches and looks before the next ones.

        Where the host has the device's memory it reads there.
        """
        if not self._in_words or self._seen is None:
            return self.command
        by_turn = self._seen.reshape(TURNS, -1)

        def read(wait_for: Sequence[Event] | None = None) -> Event:
            self._result = by_turn[self._turn]
            self._take_next_turn()
            return AllOf(wait_for or ())

        return read

    def _take_next_turn(self) -> None:
        self._turn = (self._turn + 1) % TURNS
        for launch in self._launches:
            launch.take_turn(self._turn)

    def _downloading(self) -> Command:
        """What downloads the vectors, and tells the launches whose turn is next."""
        lane, digits, n_words = self._executor.compute_lane, self.digits, len(self._result)

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            after = cl.enqueue_marker(lane.queue) if self._download.is_apart else None
            done = self._download.download(digits, after, self._turn * n_words)
            self._result = self._download.array
            self._take_next_turn()
            return done

        return command

    def _merging(self) -> Command:
        """What merges, with memory for all slots, of which the launches know from now on."""
        executor, lane = self._executor, self._executor.compute_lane
        firsts = np.cumsum([0, *self._n_slots], dtype=np.int64)
        n_words = int(firsts[-1]) * self._n_extremes * OF_SLOT
        slots = executor.constants(np.zeros(n_words, np.int64))
        self._memory = slots, firsts
        self.nbytes = memory_nbytes(self._values, self._n_slots)
        for launch in self._launches:
            launch.tell(slots, firsts)
        target, seen = executor.words(len(self._result))
        if seen is not None:
            self._result = seen
        kernel, sizes = self._parts()
        counts = COPIES, self._n_words, self._n_boxes, self._n_extremes
        memory = self.digits, slots, executor.constants(firsts), target
        kernel.set_args(*memory, *map(np.int64, counts))
        download = self._download.download

        def command(
            wait_for: Sequence[Event] | None = None, keep: object = memory
        ) -> Event:
            merged = enqueue_kernel(lane.queue, kernel, *sizes, None, wait_for)
            return merged if seen is not None else download(target, merged)

        return command

    def _parts(self) -> tuple[cl.Kernel, tuple[tuple[int], tuple[int]]]:
        """The kernel that merges, and its sizes: on GPUs a group for a few words or an extreme."""
        group, side, n_groups = CPU_GROUP, 1, 1
        if self._executor.device.kind != "cpu":
            most = min(GPU_GROUP, self._executor.device.max_items)
            group, side = 1 << most.bit_length() - 1, COPIES
            n_groups = -(-self._n_words * side // group) + self._n_boxes * self._n_extremes
        options = [f"-DGROUP={group}", f"-DSIDE={side}", *self._executor.own_options]
        made = build(self._executor.context, "fold_parts", fixed_source("fold_parts"), options)
        return cl.Kernel(made, "fold_parts"), ((max(1, n_groups) * group,), (group,))

    @property
    def accumulators(self) -> dict[str, Accumulator]:
        """Of each fold, once `command` is complete, and until it runs again."""
        return dict(self._found())

    def _found(self) -> Iterator[tuple[str, Accumulator]]:
        word, extreme = 0, 0
        words, by_box = self._merged() if self._in_words else (
            self._result[: self._n_words],
            self._result[self._n_words :].reshape(-1, self._n_extremes, OF_SLOT).tolist(),
        )  # fmt: skip
        for one in self._values:
            if one.kind == "sum":
                n = n_words(one.kind, one.dtype)
                yield one.name, Accumulator(one.kind, one.dtype, words[word : word + n])
                word += n
            else:
                parts = [self._extreme(one, slots[extreme]) for slots in by_box]
                found = parts or [Accumulator.empty(one.kind, one.dtype)]
                yield one.name, reduce(Accumulator.merged, found)
                extreme += 1

    def _merged(self) -> tuple[Words, list[list[list[int]]]]:
        """The words of all sums, and the extremes as those of one box, from all vectors."""
        vectors, slots, at = self._result.reshape(COPIES, -1), [], self._n_words
        for one in self._values:
            if one.kind == "sum":
                continue
            if words_of(one) == 1:      # little-endian
                halves = vectors.view(np.uint32)[:, 2 * at : 2 * at + 2]
                low, high = np.maximum.reduce(halves).tolist()
                slots.append([low if is_most(one) else high, low - (1 << 31), 0])
            else:
                most = int(np.maximum.reduce(vectors.view(np.uint64)[:, at]))
                slots.append([most != 0, most - (1 << 63), 0])
            at += words_of(one)
        return np.add.reduce(vectors[:, : self._n_words]), [slots]

    def _extreme(self, one: FoldValue, slot: Sequence[int]) -> Accumulator:
        """That of one box."""
        seen, key, place = slot
        if one.kind in ("any", "all"):
            return Accumulator(one.kind, one.dtype, np.array([seen != 0], np.int64))
        of_32_bits = self._in_words and words_of(one) == 1
        nan = one.dtype in FLOATS and key == (NAN_KEY >> 32 if of_32_bits else NAN_KEY)
        state = NONE if not seen else NAN_AMONG if nan else SOME
        key = 0 if state != SOME else ~key if one.kind.endswith("min") else key
        words = [state, key]
        if one.place:
            assert self.domain is not None, "a launch has told it"
            words.append(number_of(place, one.bits, self.domain) if seen else 0)
        return Accumulator(one.kind, one.dtype, np.array(words, np.int64))


def number_of(place: int, bits: Sequence[int], domain: Shape) -> int:
    """The number of a cell in C order, of its place as kernels write it, with so many bits by axis.

    >>> number_of((3 << 31) + 4, (31, 31), Shape((0, 0), (10, 10)))
    34
    """
    along, left = [], place
    for n in reversed(bits):
        along.append(left & ((1 << n) - 1))
        left >>= n
    number = 0
    for axis, index in enumerate(reversed(along)):
        number = number * domain.extent[axis] + index - domain.lower[axis]
    return number
