# SPDX-License-Identifier: MIT
"""How well copies and kernels of chunks overlap: seen in the last passes of a run."""
# docs/decisions/0070-chunks-are-tuned-while-they-run.md
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from controllers.device.event import Profile
from controllers.engine import Engine, Runner
from controllers.executor.executor import Executor
from controllers.links.shared_links import SharedLinks
from controllers.plan import Operation, Plan
from controllers.plan.chunks.pipeline import Pipeline
from controllers.report.duration import duration

PASSES = 4      # that are looked at, in a run of the engine, at its end


@dataclass(frozen=True)
class PipelineReport:
    """Passes as they were seen, of the device on which they took longest.

    seconds: of `passes` passes.  up_s, kernels_s, down_s: in which the link, each way, and the
    device were busy meanwhile.  ideal_s: what they take at best (COSP, equation 2).  in_files:
    images lie in files, so that the link's time has the disk's in it.  tried: steps of a pass,
    chunks of each place and slots that a search has tried, with the seconds of a step.  links:
    what all devices of a node have at once, where there are several, and that was measured.
    """

    device: str
    passes: int
    steps: int
    chunks: int
    seconds: float
    up_s: float
    kernels_s: float
    down_s: float
    ideal_s: float
    in_files: bool = False
    tried: tuple[tuple[int, int, int, float], ...] = ()
    links: SharedLinks | None = None

    @property
    def achieved(self) -> float:
        """The ideal time over that of the passes: 1 is perfect."""
        return self.ideal_s / self.seconds if self.seconds else 0.0

    @property
    def pipeline(self) -> Pipeline:
        """Of one pass."""
        return Pipeline(*(one / self.passes for one in (self.up_s, self.down_s, self.kernels_s)))

    @property
    def bound(self) -> str:
        """What takes longest, for people."""
        bound = self.pipeline.bound
        return f"{bound}, with files under it" if self.in_files and bound == "the link" else bound

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        links = None if self.links is None else self.links.as_dict()
        return {**asdict(self), "links": links, "achieved": self.achieved, "bound": self.bound}

    def __str__(self) -> str:
        """
        >>> print(PipelineReport("gpu", 2, 8, 5, 2.5, 1.0, 2.0, 1.0, 2.2))
        chunks: a pass of 8 steps takes 1.25 s on gpu, at best 1.1 s: 88% achieved; ...
        """
        each, links = self.pipeline, "" if self.links is None else f"\n  {self.links}"
        return (
            f"chunks: a pass of {self.steps} step{'s' * (self.steps > 1)} takes "
            f"{duration(self.seconds / self.passes)} on {self.device}, at best "
            f"{duration(self.ideal_s / self.passes)}: {self.achieved:.0%} achieved; "
            f"{duration(each.up_s)} up and {duration(each.down_s)} down the link, "
            f"{duration(each.kernels_s)} of kernels: bound by {self.bound}{links}"
        )

    @classmethod
    def of_ranks(cls, found: Sequence[PipelineReport | None]) -> PipelineReport | None:
        """That of the slowest device, where any has run passes."""
        seen = [one for one in found if one is not None]
        return max(seen, key=lambda one: one.seconds / one.passes, default=None)


class _Passes:
    """Is told of all passes of a run of an engine; or of a part of a step."""

    def __init__(self, plan: Plan, step: int = 0) -> None:
        self.plan, self.step = plan, step
        self.heard: list[tuple[int, Operation, Profile]] = []

    def steps(self, first: int, last: int) -> range:
        return range(first, last + 1)

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        self.heard.append((step, operation, profile))

    def within(self, engine: Runner, step: int) -> _Passes:
        """The same: passes have no parts."""
        return self


class PipelineLog:
    """Is told of the last passes of each run of an engine."""

    def __init__(self) -> None:
        self._heard: list[_Passes] = []         # whole steps, or parts of them
        self._next: Engine | None = None
        self._executors: Mapping[int, Executor] = {}

    def begin(self, engine: Engine) -> None:
        """This one is going to run."""
        self._next = engine

    def steps(self, first: int, last: int) -> range:
        """The last ones: those that only begin to fill the pipeline come before."""
        assert self._next is not None, "it has begun"
        self._heard = [_Passes(self._next.plan)]
        self._executors = self._next.executors
        return range(max(first, last + 1 - PASSES), last + 1)

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        self._heard[0].add(step, operation, profile)

    def within(self, engine: Runner, step: int) -> _Passes:
        """Who is told of the passes of a part of a step."""
        self._heard.append(_Passes(engine.plan, step))
        return self._heard[-1]

    def report(self) -> PipelineReport | None:
        """What was seen on this rank; None where nothing was.

        Of steps that have parts all passes of a step count as one.
        """
        each: dict[Executor, list[PipelineReport]] = defaultdict(list)
        spans: dict[Executor, list[tuple[int, int]]] = defaultdict(list)
        for passes in self._heard:
            found: dict[Executor, list[tuple[int, Operation, Profile]]] = defaultdict(list)
            for one in passes.heard:
                if one[1].on_device and one[1].lane != "host":
                    found[self._executors[one[1].place]].append(one)
            for device, heard in found.items():
                each[device].append(self._of(device, passes.plan, heard))
                spans[device] += [(one.start, one.end) for _, _, one in heard]
        n_steps = len({passes.step for passes in self._heard[1:]})
        return PipelineReport.of_ranks([
            reports[0] if not n_steps else _together(reports, n_steps, spans[device])
            for device, reports in each.items()
        ])  # fmt: skip

    def _of(
        self, device: Executor, plan: Plan, heard: Sequence[tuple[int, Operation, Profile]]
    ) -> PipelineReport:
        passes = len({step for step, _, _ in heard})
        n_chunks = len({operation.place for _, operation, _ in heard})
        busy: dict[str, int] = defaultdict(int)
        for lane, begin, end in _spans(heard):
            busy[lane] += end - begin
        up_s, kernels_s, down_s = (
            busy[lane] * 1e-9 for lane in ("transfer", "compute", "retrieve")
        )
        seconds = 1e-9 * (
            max(one.end for _, _, one in heard) - min(one.start for _, _, one in heard)
        )
        pipeline = Pipeline(up_s / passes, down_s / passes, kernels_s / passes)
        return PipelineReport(
            device.device.name, passes, plan.span, n_chunks, seconds, up_s, kernels_s, down_s,
            pipeline.ideal_s(n_chunks, passes), any(one.in_file for one in plan.memories),
        )  # fmt: skip


def _together(
    parts: Sequence[PipelineReport], n_steps: int, spans: Sequence[tuple[int, int]]
) -> PipelineReport:
    """The passes of all parts of so many steps, as one pass of each step."""
    first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
    return PipelineReport(
        parts[0].device, n_steps, 1, max(one.chunks for one in parts), (last - first) * 1e-9,
        sum(one.up_s for one in parts), sum(one.kernels_s for one in parts),
        sum(one.down_s for one in parts), sum(one.ideal_s for one in parts),
        any(one.in_files for one in parts),
    )  # fmt: skip


def _spans(
    heard: Sequence[tuple[int, Operation, Profile]]
) -> Iterator[tuple[str, int, int]]:
    """When each operation was under way, by lane.

    An event of several commands is the last one's; the first began when the lane was free, and
    what it waits for had ended.
    """
    ends: dict[str, int] = {}
    ended: dict[tuple[int, int], int] = {}
    for step, operation, profile in heard:
        begin, end = profile.start, profile.end
        if sum(len(one.cells) for one in operation.reads) > 1 and operation.lane in ends:
            awaited = (ended.get((step - e.steps_back, e.number), 0) for e in operation.after)
            begin = min(begin, max(ends[operation.lane], *awaited, 0))
        ends[operation.lane] = ended[step, operation.number] = end
        yield operation.lane, begin, end
