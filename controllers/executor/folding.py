# SPDX-License-Identifier: MIT
"""What the launches of a sweep fold at a place, from the device's memory to the host.

Kernels add sums to vectors of digits, and leave the extremes of each work-item or group in a slot
(`kgt.text.fold_text`).  One more work-group then makes one vector of all, which is downloaded.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np
import pyopencl as cl

from controllers.device.event import AllOf, Command, Event
from controllers.executor.opened_device import OpenedDevice
from controllers.kernel.build import build, enqueue_kernel
from controllers.kgt.kernel import StageKernel
from controllers.kgt.text.fixed import fixed_source
from controllers.kgt.text.fold_text import COPIES, n_extremes, sum_words
from controllers.kgt.text.fold_values import PLACE_BITS, FoldValue
from controllers.program.accumulator import NAN as NAN_AMONG
from controllers.program.accumulator import NONE, SOME, Accumulator, n_words
from controllers.program.exact_sum import Words
from controllers.program.functions import FLOATS
from hitmap.shape import Shape

GROUP = 64
OF_SLOT = 3     # words: whether there is a cell, its key, its place
NAN_KEY = (1 << 63) - 1


class _Launch(NamedTuple):
    """A kernel, the number of its parameter for the slots, and how many it fills."""

    kernel: cl.Kernel
    number: int
    n_slots: int


class DeviceFolding:
    """The folds of the launches of a sweep over some boxes of one place.

    When all launches are `bound`, `command` merges what they have left; one may be bound again.
    domain: in which cells are counted; all boxes lie in it.
    """

    def __init__(
        self, executor: OpenedDevice, values: Sequence[FoldValue], boxes: Sequence[Shape]
    ) -> None:
        self._executor, self._values, self._n_boxes = executor, values, len(boxes)
        check_places(values, boxes)
        self._n_words, self._n_extremes = sum_words(values), n_extremes(values)
        self.domain: Shape | None = None
        self._launches: dict[int, _Launch] = {}     # by the number of the box
        self.digits = executor.constants(np.zeros(COPIES * max(1, self._n_words), np.int64))
        n_words = self._n_words + self._n_boxes * self._n_extremes * OF_SLOT
        self._result = np.zeros(max(1, n_words), np.int64)
        self._command: Command | None = None
        self.nbytes = self.digits.size + self._result.nbytes

    @property
    def arguments(self) -> dict[str, object]:
        """Those of kernels, by parameter; the slots are known when all launches are bound."""
        return {"kgt_digits": self.digits, "kgt_slots": None, "kgt_first_slot": np.int64(0)}

    def bound(
        self, part: int, source: StageKernel, sizes: tuple[tuple[int, ...], tuple[int, ...]]
    ) -> Callable[[cl.Kernel], None]:
        """What is told the kernel of a launch over the box number `part`."""
        counts = zip(*sizes) if source.folds_by_group else ((n, 1) for n in sizes[0])
        n_slots = prod(n // size for n, size in counts)
        names = [parameter.name for parameter in source.parameters]

        def told(kernel: cl.Kernel) -> None:
            self._launches[part] = _Launch(kernel, names.index("kgt_slots"), n_slots)
            if len(self._launches) == self._n_boxes:
                self._command = self._merging()

        return told

    def command(self, wait_for: Sequence[Event] | None = None) -> Event:
        """Merge what the launches before it have left, and download it."""
        if self._command is None:
            assert not self._n_boxes, "all launches are bound before"
            return AllOf(())
        return self._command(wait_for)

    def _merging(self) -> Command:
        """What merges, with memory for all slots, of which the launches know from now on."""
        executor, queue, result = self._executor, self._executor.compute, self._result
        launches = [self._launches[part] for part in range(self._n_boxes)]
        firsts = np.cumsum([0, *(launch.n_slots for launch in launches)], dtype=np.int64)
        n_slots = max(1, int(firsts[-1]) * self._n_extremes * OF_SLOT)
        slots = executor.device_staging(n_slots, np.dtype(np.int64))
        self.nbytes = self.digits.size + 8 * (n_slots + firsts.size) + result.nbytes
        for launch, first in zip(launches, firsts):
            launch.kernel.set_arg(launch.number, slots)
            launch.kernel.set_arg(launch.number + 1, np.int64(first))
        target = executor.constants(result)
        made = build(
            executor.context, "fold_parts", fixed_source("fold_parts"), [f"-DGROUP={GROUP}"]
        )
        kernel = cl.Kernel(made, "fold_parts")
        counts = COPIES, self._n_words, self._n_boxes, self._n_extremes
        memory = self.digits, slots, executor.constants(firsts), target
        kernel.set_args(*memory, *map(np.int64, counts))
        download: Callable[..., Event] = cl.enqueue_copy

        def command(
            wait_for: Sequence[Event] | None = None, keep: object = memory
        ) -> Event:
            enqueue_kernel(queue, kernel, (GROUP,), (GROUP,), None, wait_for)
            return download(queue, result, target, is_blocking=False)

        return command

    @property
    def accumulators(self) -> dict[str, Accumulator]:
        """Of each fold, once `command` is complete, and until it runs again."""
        return dict(self._found())

    def _found(self) -> Iterator[tuple[str, Accumulator]]:
        word, extreme = 0, 0
        slots = self._result[self._n_words :][: self._n_boxes * self._n_extremes * OF_SLOT]
        by_box = slots.reshape(self._n_boxes, self._n_extremes, OF_SLOT)
        for one in self._values:
            empty = Accumulator.empty(one.kind, one.dtype)
            if one.kind == "sum":
                n = n_words(one.kind, one.dtype)
                yield one.name, Accumulator(one.kind, one.dtype, self._result[word : word + n])
                word += n
            else:
                parts = (self._extreme(one, by_box[box, extreme]) for box in range(self._n_boxes))
                yield one.name, reduce(Accumulator.merged, parts, empty)
                extreme += 1

    def _extreme(self, one: FoldValue, slot: Words) -> Accumulator:
        """That of one box."""
        seen, key, place = slot.tolist()
        if one.kind in ("any", "all"):
            return Accumulator(one.kind, one.dtype, np.array([seen != 0], np.int64))
        nan = one.dtype in FLOATS and key == NAN_KEY
        state = NONE if not seen else NAN_AMONG if nan else SOME
        key = 0 if state != SOME else ~key if one.kind.endswith("min") else key
        words = [state, key]
        if one.place:
            assert self.domain is not None, "a launch has told it"
            words.append(number_of(place, self.domain) if seen else 0)
        return Accumulator(one.kind, one.dtype, np.array(words, np.int64))


def number_of(place: int, domain: Shape) -> int:
    """The number of a cell in C order, of its place as kernels write it.

    >>> number_of((3 << 31) + 4, Shape((0, 0), (10, 10)))
    34
    """
    bits, number, left = PLACE_BITS[domain.n_axes], 0, place
    along = []
    for _ in range(domain.n_axes):
        along.append(left & ((1 << bits) - 1))
        left >>= bits
    for axis, index in enumerate(reversed(along)):
        number = number * domain.extent[axis] + index - domain.lower[axis]
    return number


def check_places(values: Sequence[FoldValue], boxes: Sequence[Shape]) -> None:
    """ValueError where the place of a cell does not fit a number."""
    for one in values:
        for box in boxes:
            most = 1 << PLACE_BITS[box.n_axes]
            if one.place and max(box.upper) > most:
                raise ValueError(
                    f"{one.kind} {one.name!r} is for cells up to {most} on an axis of "
                    f"{box.n_axes}, got {max(box.upper)}; use devices='reference' for it"
                )
