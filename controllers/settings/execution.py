# SPDX-License-Identifier: MIT
"""Executions: on which devices a program is computed, by which kernels, and what is watched."""
from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict, get_args

import numpy as np

from controllers.check.setting import Check, Setting, setting_of
from controllers.device.selection import AUTO, check_selectors, selectors_of
from controllers.kernel.variant import Kernel
from controllers.memory.ledger import parse_cap
from controllers.plan.overlap import Overlap
from controllers.program.fusion import Fusing
from controllers.program.identifier import short
from controllers.program.program import Math
from controllers.program.storing import Storing
from controllers.settings.launches import (
    MOST_WIDTH,
    WIDTH_SEARCHES,
    HaloWidth,
    check_steps,
    check_width,
)
from controllers.settings.watchdog import limit, limit_of
from hitmap.argument import file_name, number, one_of, whole, wholes, wrong

Balance: TypeAlias = Literal["start", "dynamic", "off"]
Exchange: TypeAlias = Literal["usual", "auto"]
MOST_CHUNKS = 1024  # of a place; a plan lists the operations of each


class ExecutionKeywords(TypedDict, total=False):
    """The fields of an `Execution`, as keywords of calls."""

    devices: str | Sequence[str] | None
    overlap: Overlap
    exchange: Exchange
    steps_per_launch: int | Sequence[int] | None
    halo_width: HaloWidth
    math: Math
    stored: Storing
    fuse: Fusing
    kernel: str | Kernel | None
    tune: float
    balance: Balance | None
    check: Check
    verify_messages: bool
    digest_every: int | None
    watchdog: float | str | None
    trace: bool
    memory_cap: str | int | None
    chunks: int | Literal["auto"] | None
    slots: int | None
    host_memory_cap: str | int | None
    scratch: str | os.PathLike[str] | None
    zero_copy: bool
    exclusive: bool | float


@dataclass(frozen=True)
class Execution:
    """How a program is executed; the result has the same bits, but for `math` and your `kernel`.

    devices: selectors such as "gpu", "cpu", "nvidia:1", "cpu/1,1", "reference"; by default
        all GPUs of a node, else its CPU.  The ranks of a node share them in order.  "auto": those
        that pay, of the others that are named or of all that there are (docs/balance.md).
    overlap: "on", "off", or "auto", which hands borders over beside the computation where
        that is estimated to pay.
    steps_per_launch: time steps that one launch computes, with halos of as many times the reach
        and one exchange (docs/performance.md); by default what promises to be fast on each device,
        and fits.  One number for all, or one for each place, in order of rank as weights are:
        each divides the steps between two exchanges into launches of at most so many.
    halo_width: time steps between two exchanges of halos, a multiple of the steps per launch where
        these are one number (docs/halos.md); by default those of one launch, of unlike ones as few
        as are whole launches at all places (of 12 and 8 steps 24).  "auto" finds out, while steps
        run, how many are the fastest, "auto:exhaustive" and "auto:hill_climb" by other searches.
    math: "strict" (the default: the bits of the reference), or "fast": operations contracted, and
        constants divided beforehand; the bits then depend on the device and on the division.
    stored: what becomes of values that steps mark by `stored`: "always" (written to memory and read
        again), "never" (computed again where they are read), or "auto", what promises to be faster.
    fuse: "auto", by which one sweep computes stages in a row where that moves fewer bytes, or
        "never", each stage by itself.
    kernel: "specialised" (the default: generated for the program), "generic" (one that takes
        any weighted stencil as data), or a kernel of your own, a `Kernel` or the name of a
        registered one; the program then says what it reads, not what it computes.
    tune: for so many seconds, the first steps try other configurations of the kernels, or variants
        of your own, and go on with the fastest, which is kept for later runs (docs/tuning.md); 0,
        the default, takes what was kept or is good in general.
    balance: whether the cuts between devices move while steps run, so that all take equally long
        (docs/balance.md): "start", in the first steps; "dynamic", always; "off", never.  By default
        "start" where weights are "auto", else "off".
    check: watch every access, and raise `CheckError` where one is wrong (docs/checking.md): True,
        or "oclgrind" to run all kernels under Oclgrind.  By default what the environment variable
        CONTROLLERS_CHECK says, else False.  Slow.
    verify_messages: whether every halo message between ranks carries a checksum; one that arrives
        otherwise than it was sent ends the run with a `MessageError` on all ranks.  Fields that are
        divided anew are compared by their digests.
    digest_every: after so many steps the digest of each field is taken, and its NaNs are counted,
        for the report (docs/integrity.md).
    watchdog: seconds after which the job ends if no step or call has ended, every rank saying
        where it is; 0 for never.  By default what the variable CONTROLLERS_WATCHDOG says.
        Without it they say so once, after 30 s, and go on.
    trace: record a timeline of the runs, for `save_trace`.
    memory_cap: the most that a run may take of the memory of each device, in bytes or such as
        "4g"; by default what the environment variable CONTROLLERS_MEMORY_CAP says, else all.
        What does not fit passes through in chunks, or is refused, by a `MemoryCapError`, before
        anything is allocated.
    chunks: in how many parts, at least, the cells of each place pass through its device, while the
        fields live on the host (docs/chunks.md); by default as many as the memory of the device
        needs, or none.  Time steps of a pass are those of `halo_width`.  "auto" finds out, while
        passes run, how many chunks, slots and steps are the fastest, of those that nobody says.
    slots: how many chunks there is room for in the memory of a device at once, 1 or more; by
        default 3: one on its way there, one that is computed, one on its way back.
    host_memory_cap: the most that fields which pass through in chunks may take of each rank's
        memory of the host; what is beyond lies in files.  By default what the environment variable
        CONTROLLERS_HOST_MEMORY_CAP says, else the ranks of a host have half of its memory.
    scratch: the folder of these files, by default the system's for temporary ones (TMPDIR).
    zero_copy: use host memory in place on devices that share it; False treats them like
        devices with memory of their own.
    exclusive: wait until nobody holds the devices, and hold them until the end, so that no other
        process and no task computes on them (docs/arbiter.md); for so many seconds at most, then
        a `TimeoutError` says who holds what.  Else others are only told that they are used.
    """

    devices: str | Sequence[str] | None = None
    overlap: Overlap = "auto"
    exchange: Exchange = "usual"
    steps_per_launch: int | Sequence[int] | None = None
    halo_width: HaloWidth = None
    math: Math = "strict"
    stored: Storing = "auto"
    fuse: Fusing = "auto"
    kernel: str | Kernel | None = None
    tune: float = 0.0
    balance: Balance | None = None
    check: Check = None
    verify_messages: bool = False
    digest_every: int | None = None
    watchdog: float | str | None = None
    trace: bool = False
    memory_cap: str | int | None = None
    chunks: int | Literal["auto"] | None = None
    slots: int | None = None
    host_memory_cap: str | int | None = None
    scratch: str | os.PathLike[str] | None = None
    zero_copy: bool = True
    exclusive: bool | float = False

    def __post_init__(self) -> None:
        check_selectors(self.devices, "devices")
        if self.devices is not None and not isinstance(self.devices, str):
            object.__setattr__(self, "devices", tuple(self.devices))
        one_of(self.overlap, get_args(Overlap), "overlap")
        one_of(self.exchange, get_args(Exchange), "exchange")
        self._check_launches()
        one_of(self.math, get_args(Math), "math")
        one_of(self.stored, get_args(Storing), "stored")
        one_of(self.fuse, get_args(Fusing), "fuse")
        if not isinstance(self.kernel, (str, Kernel, type(None))):
            remedy = "write kernel=Kernel.of(...)"
            raise wrong("kernel", "a Kernel, or the name of one", self.kernel, remedy)
        if not 0 <= number(self.tune, "tune") < math.inf:
            raise ValueError(f"tune is a number of seconds, at least 0, got {self.tune}")
        if self.balance is not None:
            one_of(self.balance, get_args(Balance), "balance")
        if self.check is not None:
            setting_of(self.check)
        if self.watchdog is not None:
            seconds = self.watchdog
            limit(seconds if isinstance(seconds, str) else number(seconds, "watchdog"))
        _flag(self.trace, "trace")
        _flag(self.verify_messages, "verify_messages")
        if self.digest_every is not None:
            whole(self.digest_every, "digest_every", 1)
        for what, cap in (
            ("memory_cap", self.memory_cap), ("host_memory_cap", self.host_memory_cap)
        ):  # fmt: skip
            if cap is not None:
                parse_cap(cap if isinstance(cap, str) else whole(cap, what))
        if self.scratch is not None:
            file_name(self.scratch, "scratch")
        for what, count in (("chunks", self.n_chunks), ("slots", self.slots)):
            if count is not None and not 1 <= whole(count, what) <= MOST_CHUNKS:
                raise ValueError(f"{what}: 1 to {MOST_CHUNKS}, got {short(count)}; or leave it out")
        _flag(self.zero_copy, "zero_copy")
        self._check_exclusive()

    def _check_exclusive(self) -> None:
        """Whether it is true, false, or seconds."""
        if not isinstance(self.exclusive, (bool, np.bool_)) and not (
            0 < number(self.exclusive, "exclusive") < math.inf
        ):
            raise ValueError(
                f"exclusive is True, False, or the seconds to wait at most, got {self.exclusive}; "
                f"write exclusive=True to wait as long as it takes"
            )

    def _check_launches(self) -> None:
        """How many time steps a launch and a round have."""
        steps = self.steps_per_launch
        if isinstance(steps, str) or not isinstance(steps, (Sequence, np.ndarray)):
            if steps is not None:
                check_steps(whole(steps, "steps_per_launch"))
            check_width(self.halo_width, steps)
            return
        object.__setattr__(self, "steps_per_launch", wholes(steps, "steps_per_launch"))
        for each in self.each_steps:
            check_steps(each)
        check_width(self.halo_width)
        if not self.each_steps or self.chooses:
            raise ValueError(
                f"steps_per_launch: one number, or one for each place, got {short(steps)}"
                + ' with devices="auto", which chooses the places' * self.chooses
                + "; write one number, or leave it out"
            )
        if self.halo_width is None and math.lcm(*self.each_steps) > MOST_WIDTH:
            raise ValueError(
                f"launches of {short(steps)} steps end together after "
                f"{math.lcm(*self.each_steps)}, and halos are at most {MOST_WIDTH} steps wide; say "
                f"a halo_width"
            )

    @property
    def each_steps(self) -> tuple[int, ...]:
        """The steps of a launch at each place, where that is asked for; else none."""
        steps = self.steps_per_launch
        return () if steps is None or isinstance(steps, int) else tuple(steps)

    @property
    def most_steps(self) -> int:
        """Of the longest launch that is asked for; 1 where nobody says anything."""
        steps = self.steps_per_launch
        return steps if isinstance(steps, int) else max(self.each_steps, default=1)

    @property
    def chooses(self) -> bool:
        """Whether a run chooses its devices."""
        return self.devices is not None and AUTO in selectors_of(self.devices)

    @property
    def checked(self) -> Setting:
        """The checked mode that is wanted, by default by the environment."""
        return setting_of(self.check)

    @property
    def patience_s(self) -> float | None:
        """The most seconds to wait for devices that are to be held; None for no limit."""
        return None if isinstance(self.exclusive, (bool, np.bool_)) else float(self.exclusive)

    @property
    def limit_s(self) -> float | None:
        """Seconds of the watchdog, by default those of the environment; None for no limit."""
        return limit_of(self.watchdog)

    @property
    def halo_width_search(self) -> str | None:
        """By which search the halo width is found out; None where it is not."""
        return WIDTH_SEARCHES[self.halo_width] if isinstance(self.halo_width, str) else None

    @property
    def n_chunks(self) -> int | None:
        """The chunks of each place that are asked for, at least."""
        return None if self.chunks == AUTO else self.chunks     # type: ignore[return-value]

    @property
    def facts(self) -> dict[str, object]:
        """What all ranks must say alike; devices and their memory are each rank's own."""
        return {
            'devices="auto"': self.chooses,
            "overlap": self.overlap,
            "exchange": self.exchange,
            "steps_per_launch": self.steps_per_launch,
            "halo_width": self.halo_width,
            "math": self.math,
            "stored": self.stored,
            "fuse": self.fuse,
            "tune": self.tune,
            "balance": self.balance,
            "check": self.checked,
            "verify_messages": self.verify_messages,
            "digest_every": self.digest_every,
            "chunks": self.chunks,
            "slots": self.slots,
            "watchdog": self.limit_s,
            "trace": self.trace,
            "exclusive": self.exclusive,
        }


def _flag(value: object, what: str) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise wrong(what, "True or False", value, "write one of the two")
