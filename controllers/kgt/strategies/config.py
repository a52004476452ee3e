# SPDX-License-Identifier: MIT
"""What a strategy is: the protocol that choice, tuning and command line speak.

A configuration is one strategy with values for its parameters.  Its class answers for the strategy,
where no parameters are known yet.  No answer but the kernel itself takes the text of a kernel.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Protocol, cast

from controllers.kgt.kernel import StageKernel, WorkSizes
from controllers.kgt.launch import Launch
from controllers.kgt.text.analysis import in_vectors
from controllers.kgt.text.fold_values import is_folding
from controllers.program.expression import Given
from controllers.program.items import items_of
from controllers.program.program import Program, Stage
from hitmap.strided import Strided


class Config(Protocol):
    """A frozen dataclass, whose fields are the parameters: numbers, truth values, tuples of such.

    Whoever inherits from it gets the answers of a kernel that computes one step of any box and has
    no parameters; the strategies below differ in what they say themselves.
    """

    strategy: ClassVar[str]         # its name
    kind: ClassVar[str] = ""        # of the devices that it is for; "": for all
    about: ClassVar[str]            # in a few words, for the command line
    vectors: ClassVar[bool] = False     # whether it writes vectors of cells, or what is as narrow
    several: ClassVar[bool] = False     # whether its kernels store several fields
    in_place: ClassVar[bool] = False    # ... compute each cell once, also over what it reads
    folds: ClassVar[bool] = False       # whether its kernels fold
    digests: ClassVar[bool] = False     # ... can take the digest of the field that they update

    given: ClassVar[tuple[type[Given], ...]] = ()   # which kinds of given values it writes
    items: ClassVar[bool] = False       # whether it is for item functions, and for nothing else

    @classmethod
    def computes(cls, program: Program, stage: Stage) -> bool:
        """Whether it can write all operations of the stage, and store all that these update."""
        return (
            cls._is_for(stage)
            and cls._stores(stage)
            and cls._folds(stage)
            and cls._takes_given(stage)
            and (cls.in_place or not stage.overwrites)
            and (not cls.vectors or in_vectors(stage, program.dtypes))
        )

    @classmethod
    def _stores(cls, stage: Stage) -> bool:
        return cls.several or len(stage.stored) == 1

    @classmethod
    def _folds(cls, stage: Stage) -> bool:
        return cls.folds or not is_folding(stage)

    @classmethod
    def _takes_given(cls, stage: Stage) -> bool:
        return all(isinstance(node, cls.given) for node in stage.given)

    @classmethod
    def _is_for(cls, stage: Stage) -> bool:
        return cls.items == (items_of(stage) is not None)

    @classmethod
    def check(cls, program: Program, stage: Stage) -> None:
        """Raise ValueError where it cannot write all operations of the stage, or store all."""
        if not cls._is_for(stage):
            what = "no function of one item (ct.each)" if cls.items else "a function of one item"
            raise ValueError(
                f"stage {stage.name!r} is {what}, which the strategy 'items' alone computes, and "
                f"nothing else; leave {cls.strategy!r} out"
            )
        if not cls._stores(stage):
            raise ValueError(
                f"stage {stage.name!r} updates {', '.join(stage.stored)}, and kernels of the "
                f"strategy {cls.strategy!r} store one field; leave it out, or take 'cell'"
            )
        if not cls._folds(stage):
            raise ValueError(
                f"stage {stage.name!r} folds values in a way that the strategy {cls.strategy!r} "
                f"does not write; leave it out, or take 'cell'"
            )
        if not cls._takes_given(stage):
            raise ValueError(
                f"stage {stage.name!r} uses scalars, indices, coordinates or OpenCL C in a way "
                f"that the strategy {cls.strategy!r} does not write; take 'cell', which does"
            )
        if stage.overwrites and not cls.in_place:
            raise ValueError(
                f"stage {stage.name!r} is computed in place, and kernels of the strategy "
                f"{cls.strategy!r} compute some cells twice; take 'cell', or another buffer"
            )
        if not cls.computes(program, stage):
            raise ValueError(
                f"stage {stage.name!r}: the strategy {cls.strategy!r} is for sums, products and "
                f"quotients in one dtype; take 'cell', which computes all functions"
            )

    @classmethod
    def default(
        cls, program: Program, stage: Stage, exceeds_cache: bool = False, nvidia: bool = False
    ) -> Config:
        """What is good for a large box of a stage of which it `computes` all operations.

        ValueError where the strategy cannot compute the stage for other reasons.
        exceeds_cache: whether the fields exceed the device's cache.  nvidia: as in `Launch`.
        """
        ...

    @classmethod
    def chosen(cls, program: Program, stage: Stage, launch: Launch | None) -> Config | None:
        """The configuration for a launch, or for a large box; None: another strategy is for it."""
        ...

    @classmethod
    def usual_steps(cls, program: Program, stage: Stage) -> int:
        """How many time steps of a large box are best computed by one launch; 1: one, or none."""
        return 1

    @classmethod
    def step_counts(cls, program: Program, stage: Stage) -> Iterable[int]:
        """Numbers of steps per launch over 1 that may be tried for a large box."""
        return ()

    @property
    def steps_per_launch(self) -> int:
        """Time steps that one launch makes."""
        return 1

    def space(self, n_axes: int) -> Iterator[Config]:
        """What may be tried in its place; some may not suit a box, or exceed a device's limits."""
        return iter(())

    def scalars(self) -> Mapping[str, int]:
        """Values of whole numbers that its kernels take as arguments, not as text."""
        return {}

    def alike(self, extent: tuple[int, ...]) -> Iterator[Config]:
        """Others for a box of this extent, that differ in `scalars` and work sizes alone.

        They take no build of their own, so that a few launches tell which one is fastest.
        """
        return iter(())

    def within(self, extent: tuple[int, ...]) -> Config:
        """The same, cut to a box of this extent."""
        return self

    def suits(self, fields: Iterable[Strided]) -> bool:
        """Whether it can compute a box whose cells lie there in the fields."""
        where = list(fields)
        multiple, least = self.multiple, self.least(len(where[0].extent))
        return all(
            all(pitch % multiple == 0 for pitch in cells.pitches[:-1])
            and (cells.first - where[0].first) % multiple == 0
            and all(n >= at_least for n, at_least in zip(cells.extent, least))
            for cells in where
        )

    @property
    def multiple(self) -> int:
        """All pitches are multiples of it, and the first elements are equal modulo it."""
        return 1

    def least(self, n_axes: int) -> tuple[int, ...]:
        """The cells per axis that a box must have."""
        return (1,) * n_axes

    def local_bytes(self, program: Program, stage: Stage) -> int:
        """Local memory of a device that must be known to be there before the kernel is built."""
        return 0

    def origin(self, stage: Stage) -> str:
        """Where the text of the kernel comes from, for people."""
        texts = ", ".join(element.where for element in stage.elements)
        around = f" around OpenCL C ({texts})" if texts else ""
        return f"generated{around}, {self.described()}"

    def name(self, stage: Stage) -> str:
        """What the kernel is called in OpenCL C."""
        return f"kgt_{stage.name}"

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        """The global and the local size, in OpenCL's order, of a launch."""
        ...

    def kernel(self, program: Program, stage: Stage) -> StageKernel:
        """The kernel of the stage; ValueError where the strategy cannot compute it."""
        ...

    def digesting(self, program: Program, stage: Stage) -> StageKernel:
        """The kernel that takes digests, too, of a strategy that has `digests`."""
        raise AssertionError("whoever asks looks first")

    def parameters(self) -> dict[str, Any]:
        """Names and values, in order."""
        return asdict(cast(Any, self))

    def described(self) -> str:
        """The strategy and its parameters, for people.

        >>> from controllers.kgt.strategies.marching import MarchingConfig
        >>> MarchingConfig().described()
        "strategy 'marching', lanes 4, steps 2, axis 0, group 32 x 4 x 1, rows 1"
        """
        parts = [f"strategy {self.strategy!r}"]
        for name, value in self.parameters().items():
            if isinstance(value, bool):
                parts += [name] if value else []
            else:
                text = " x ".join(map(str, value)) if isinstance(value, tuple) else str(value)
                parts.append(f"{name} {text}")
        return ", ".join(parts)
