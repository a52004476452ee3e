# SPDX-License-Identifier: MIT
"""Which strategy computes a box of a stage on a device, and with which configuration.

    CPU     rows, its stores past the caches where the fields exceed them; boxes of short rows: cell
            wavefront for several time steps at once
    GPU     marching, on aligned vectors where all rows start aligned; narrow boxes: cell
            streaming for several time steps at once
    others  cell

Kernels of several steps are chosen with the plan, which has to make room for them.  A weighted sum
of very many terms is not written out (`loops_over_terms`).

Only how fast a box is computed depends on the choice, not one bit of the result.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from controllers.kgt.comment import weighted_sum
from controllers.kgt.emitter import check_vectors, in_vectors, used_fields
from controllers.kgt.generator import Configuration, generate
from controllers.kgt.marching import MarchingConfiguration
from controllers.kgt.rows import RowsConfiguration
from controllers.kgt.streaming import FLOPS, StreamingConfiguration
from controllers.kgt.wavefront import WavefrontConfiguration
from controllers.language.weights import FIELD
from controllers.program.program import INTEGERS, Program, Stage
from hitmap.strided import Strided

STRATEGIES = ("cell", "rows", "marching", "wavefront", "streaming")
# the devices that a strategy is for
KINDS = {"rows": "cpu", "marching": "gpu", "wavefront": "cpu", "streaming": "gpu"}
LOCAL_BYTES = 1 << 18   # of a CPU of which nothing is known
MAX_ITEMS = 256         # of a work-group, on a GPU of which nothing is known
# A term takes the CPU's driver some 20 ms in "rows", 45 ms in "wavefront" (PoCL 3.0, AMD Zen 4).
MOST_TERMS = 256        # of a sum that is written out
MOST_FLOPS = 256        # per cell, of several steps at once by default
NARROW = 64     # vectors in a row below which a GPU's work-groups of "marching" are half empty


@dataclass(frozen=True)
class Launch:
    """What is known of a launch: where its cells lie in each field.

    exceeds_cache: whether the tiles it works on do not fit the device's cache.
    n_steps: the time steps that it computes.
    local_bytes, max_items: of a work-group on the device, 0 where that is not known.
    units: of the device, which compute at the same time; 0 where that is not known.
    nvidia: whether the device is one of NVIDIA's.
    """

    fields: Mapping[str, Strided]
    exceeds_cache: bool = False
    n_steps: int = 1
    local_bytes: int = 0
    max_items: int = 0
    units: int = 0
    nvidia: bool = False

    @property
    def extent(self) -> tuple[int, ...]:
        """The cells of the box per axis."""
        return next(iter(self.fields.values())).extent


def choose(
    program: Program, stage: Stage, kind: str, launch: Launch | None = None
) -> Configuration:
    """The configuration for `stage` on a device of this kind; without `launch` for a large box.

    ValueError where no strategy computes as many steps of the box at once.

    >>> from controllers.language.weights import Stencil
    >>> program = Stencil.of("s", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
    >>> choose(program, program.stages[0], "cpu")   # doctest: +ELLIPSIS
    RowsConfiguration(lanes=16, rows=4, planes=1, band=16, depth=1, segment=16384, ...)
    >>> choose(program, program.stages[0], "cpu", Launch({"u": Strided(0, (8, 1), (100, 7))}))
    """
    if launch is not None and launch.n_steps > 1:
        return _of_several_steps(program, stage, kind, launch)
    if loops_over_terms(stage) or not in_vectors(stage):
        return None
    if kind == "cpu":
        exceeds = launch is None or launch.exceeds_cache
        rows = RowsConfiguration.default(program, stage, exceeds)
        if launch is None:
            return rows
        ends_alone = launch.extent[-1] < 2 * rows.lanes     # "cell" is about as fast there
        return None if ends_alone else rows.within(launch.extent)
    if kind == "gpu":
        default = MarchingConfiguration.default(program, stage)
        marching = replace(default, reciprocals=True)       # a GPU has fast fma
        if launch is None:
            return marching
        if launch.extent[-1] < NARROW * marching.lanes:
            return None
        if not _aligned(launch, marching.lanes):
            marching = replace(marching, lanes=1, steps=4 if program.n_axes > 1 else 1)
        return marching.within(launch.extent)
    return None


def terms_of(stage: Stage) -> tuple[Mapping[tuple[int, ...], float], float] | None:
    """Weights by offset, and the factor, of a weighted sum over one field; None of others.

    It is what kernels_cl/generic_stencil.cl takes as data.
    """
    return weighted_sum(stage.expression) if used_fields(stage) == (FIELD,) else None


def loops_over_terms(stage: Stage) -> bool:
    """Whether a kernel for one step takes the terms as data: written out, it is built for long."""
    terms = terms_of(stage)
    return terms is not None and len(terms[0]) > MOST_TERMS


def usual_steps(program: Program, stage: Stage, kind: str) -> int:
    """How many steps of a large box are best computed by one launch."""
    if program.flops_per_cell > MOST_FLOPS or not in_vectors(stage):
        return 1
    if kind == "cpu":
        return WavefrontConfiguration.default(program, stage).steps_per_launch
    if 2 * program.flops_per_cell > FLOPS and program.math == "strict":
        return 1    # bound by arithmetic, of which overlapping tiles have more
    streaming = _usual_streaming(program, stage) if kind == "gpu" else None
    return streaming.steps_per_launch if streaming else 1


def step_counts(program: Program, stage: Stage, kind: str) -> tuple[int, ...]:
    """Numbers of steps per launch that may be tried for a large box on a device of this kind."""
    made: WavefrontConfiguration | StreamingConfiguration | None = None
    if loops_over_terms(stage) or not in_vectors(stage):
        return (1,)
    if kind == "cpu":
        made = WavefrontConfiguration.default(program, stage)
    elif kind == "gpu":
        made = _usual_streaming(program, stage)
    if made is None:
        return (1,)
    found = {other.steps_per_launch for other in made.search_space(program.n_axes)}
    return (1, *sorted(found))


def _of_several_steps(program: Program, stage: Stage, kind: str, launch: Launch) -> Configuration:
    made: Configuration = None
    if kind == "cpu":
        wavefront = WavefrontConfiguration.default(program, stage, launch.exceeds_cache)
        wavefront = replace(wavefront, steps_per_launch=launch.n_steps).within(launch.extent)
        made = wavefront.fitting(program, stage, launch.local_bytes or LOCAL_BYTES)
    if kind == "gpu":
        made = _streaming(program, stage, launch)
    if made is not None and in_vectors(stage):
        if generate(program, stage, made).suits(launch.fields.values()):
            return made
    extent = " x ".join(map(str, launch.extent))
    raise ValueError(
        f"no kernel computes {launch.n_steps} steps of {extent} cells at once on a {kind}; use "
        f"fewer steps per launch, or other places"
    )


def _usual_streaming(
    program: Program, stage: Stage, nvidia: bool = False
) -> StreamingConfiguration | None:
    """The default; None where cells are integers, or a tile has no room for two steps."""
    if program.dtype in INTEGERS:
        return None
    try:
        return StreamingConfiguration.default(program, stage, nvidia)
    except ValueError:
        return None


def _streaming(program: Program, stage: Stage, launch: Launch) -> StreamingConfiguration | None:
    """Of as many steps as the launch has; None where a tile has no room for them."""
    usual = _usual_streaming(program, stage, launch.nvidia)
    if usual is None:
        return None
    made = replace(usual, steps_per_launch=launch.n_steps)
    if not _aligned(launch, made.vector):
        made = replace(made, vector=1)
    x, y, z = made.group
    most = launch.max_items or MAX_ITEMS
    while x * y * z > most and y > 1:
        y -= 1
    made = replace(made, group=(x, y, z))
    if not made.fits(stage):
        return None
    return made.fitting(program, stage, launch.extent, launch.units)


def configuration_of(
    strategy: str, program: Program, stage: Stage, exceeds_cache: bool = True
) -> Configuration:
    """The default configuration of a strategy, for a large box."""
    if strategy not in STRATEGIES:
        raise ValueError(f"the strategy is one of {', '.join(STRATEGIES)}, got {strategy!r}")
    if strategy != "cell":
        check_vectors(stage, strategy)
    if strategy == "rows":
        return RowsConfiguration.default(program, stage, exceeds_cache)
    if strategy == "wavefront":
        return WavefrontConfiguration.default(program, stage, exceeds_cache)
    if strategy == "streaming":
        return StreamingConfiguration.default(program, stage)
    return choose(program, stage, KINDS.get(strategy, ""))


def described(configuration: Configuration) -> str:
    """A strategy and its parameters, for people.

    >>> described(MarchingConfiguration())
    "strategy 'marching', lanes 4, steps 2, axis 0, group 32 x 4 x 1"
    """
    if configuration is None:
        return "strategy 'cell'"
    parts = [f"strategy {configuration.strategy!r}"]
    for name, value in asdict(configuration).items():
        if isinstance(value, bool):
            parts += [name] if value else []
        else:
            text = " x ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            parts.append(f"{name} {text}")
    return ", ".join(parts)


def _aligned(launch: Launch, lanes: int) -> bool:
    firsts = {cells.first % lanes for cells in launch.fields.values()}
    pitches = (pitch for cells in launch.fields.values() for pitch in cells.pitches[:-1])
    return len(firsts) == 1 and all(pitch % lanes == 0 for pitch in pitches)
