# SPDX-License-Identifier: MIT
"""Random programs on two controllers agree with NumPy arrays, whatever is done in which order."""
from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from opened import ways_to_open

from controllers import Controller, Kernel, reading, updating, writing
from controllers.controller.tied_tile import Selection, TiedTile, TileKind
from hitmap.shape import Shape

DOMAIN = Shape((-3, 2), (6, 9))
N_PROGRAMS, N_ACTIONS, MOST_TILES = (10, 200), 25, 8     # programs by default, with --whole

# `turns` makes some launches slow, so that a wait that is missing shows
ADD = Kernel.of("add", """
    __kernel void add(__global int *u, TILE(u), BOX, const int by, const int turns)
    {
        CELL;
        uint x = HERE(u);
        for (int turn = 0; turn < turns; ++turn) x = x * 1664525u + 1013904223u;
        for (int turn = 0; turn < turns; ++turn) x = (x - 1013904223u) * 4276115653u;
        HERE(u) = (int)x + by;
    }""")  # fmt: skip
JOIN = Kernel.of("join", """
    __kernel void join(__global const int *a, __global const int *b, __global int *c,
                       TILE(a), TILE(b), TILE(c), BOX)
    { CELL; HERE(c) = 3 * HERE(a) + NEAR(b, 0, 1) + (int)INDEX(0); }""", roles={"c": "out"})


@dataclass(eq=False)
class Modelled:
    """A tile and what it should hold."""

    controller: Controller
    tile: TiedTile
    model: npt.NDArray[np.int32]

    def part(self, cells: Shape) -> tuple[Selection, npt.NDArray[np.int32]]:
        return self.tile.select(cells), self.model[cells.slices(DOMAIN.lower)]


@st.composite
def boxes(draw: st.DrawFn, within: Shape = DOMAIN) -> Shape:
    """A box inside of `within`, with at least one cell."""
    ends = [
        sorted(draw(st.lists(st.integers(a, b), min_size=2, max_size=2, unique=True)))
        for a, b in zip(within.lower, within.upper)
    ]
    return Shape(tuple(end[0] for end in ends), tuple(end[1] for end in ends))


class Programs(RuleBasedStateMachine):
    """The verbs in any order; a NumPy array for each tile does the same at once."""

    controllers: tuple[Controller, Controller]

    def __init__(self) -> None:
        super().__init__()
        self.tiles: list[Modelled] = []
        for controller in self.controllers:
            for kind in ("tied", "tied", "internal"):
                self.allocate(controller, kind)

    def allocate(self, controller: Controller, kind: TileKind) -> None:
        tile = controller.tile(DOMAIN, "int32", kind)
        self.tiles.append(Modelled(controller, tile, np.zeros(DOMAIN.extent, np.int32)))

    def pick(
        self, data: st.DataObject, like: Modelled | None = None, tied: bool = False
    ) -> Modelled:
        """A tile other than `like`, of the same controller."""
        fitting = [
            one for one in self.tiles
            if (like is None or (one is not like and one.controller is like.controller))
            and (not tied or one.tile.kind == "tied")
        ]  # fmt: skip
        return data.draw(st.sampled_from(fitting))

    @rule(data=st.data(), number=st.integers(0, 1), kind=st.sampled_from(["tied", "internal"]))
    def replace(self, data: st.DataObject, number: int, kind: TileKind) -> None:
        """Free one tile, allocate another one; of each kind some stay."""
        old = self.pick(data)
        forms = [(one.controller, one.tile.kind) for one in self.tiles]
        if forms.count((old.controller, old.tile.kind)) > 1:
            self.tiles.remove(old)
            old.controller.free(old.tile)
            assert old.tile.freed
        if len(self.tiles) < MOST_TILES:
            self.allocate(self.controllers[number], kind)

    @rule(data=st.data(), cells=boxes(), by=st.integers(-5, 5), turns=st.sampled_from([0, 20_000]))
    def add(self, data: st.DataObject, cells: Shape, by: int, turns: int) -> None:
        one = self.pick(data)
        selection, model = one.part(cells)
        one.controller.launch(ADD, cells, u=selection, by=by, turns=turns)
        model += np.int32(by)

    @rule(data=st.data(), cells=boxes(Shape((-3, 2), (6, 8))), whole=st.booleans())
    def join(self, data: st.DataObject, cells: Shape, whole: bool) -> None:
        c = self.pick(data)
        a, b = self.pick(data, like=c), self.pick(data, like=c)
        target, model = c.part(cells)
        near, near_model = b.part(cells.shift((0, 1)))
        here, here_model = a.part(cells)
        rows = np.arange(cells.lower[0], cells.upper[0], dtype=np.int32)[:, None]
        model[...] = 3 * here_model + near_model + rows
        kept = c.tile if whole else target
        c.controller.launch(JOIN, target, a=here, b=near, c=kept)

    @rule(data=st.data(), one=boxes(), sleeps=st.booleans(), number=st.integers(0, 1))
    def task(self, data: st.DataObject, one: Shape, sleeps: bool, number: int) -> None:
        """A host task of either controller, on tiles of any."""
        a, b = self.pick(data, tied=True), self.pick(data, tied=True)
        if a is b:
            return
        (x, x_model), (y, y_model) = a.part(one), b.part(one)

        def mixed(left: npt.NDArray[np.int32], right: npt.NDArray[np.int32]) -> None:
            if sleeps:
                time.sleep(0.002)
            right += 2 * left

        self.controllers[number].host_task(mixed, reading(x), updating(y))
        y_model += 2 * x_model

    @rule(data=st.data(), cells=boxes(), value=st.integers(-9, 9))
    def fill(self, data: st.DataObject, cells: Shape, value: int) -> None:
        one = self.pick(data, tied=True)
        selection, model = one.part(cells)
        one.controller.host_task(lambda x: x.fill(value), writing(selection))
        model[...] = value

    @rule(data=st.data(), cells=boxes(), to_device=st.booleans())
    def move(self, data: st.DataObject, cells: Shape, to_device: bool) -> None:
        one = self.pick(data, tied=True)
        selection, model = one.part(cells)
        if to_device:
            one.controller.move_to(selection)
        else:
            one.controller.move_from(selection).wait()
            assert np.array_equal(selection.tile.image(cells), model)

    @rule(data=st.data())
    def swap(self, data: st.DataObject) -> None:
        a = self.pick(data)
        b = self.pick(data, like=a)
        if a.tile.kind == b.tile.kind:
            a.controller.swap(a.tile, b.tile)
            a.model, b.model = b.model, a.model

    @rule(data=st.data(), outer=boxes())
    def read(self, data: st.DataObject, outer: Shape) -> None:
        a = self.pick(data)
        cells = data.draw(boxes(outer))
        assert np.array_equal(a.tile.select(outer).select(cells).read(), a.part(cells)[1])

    @rule(data=st.data(), cells=boxes(), seed=st.integers(0, 99))
    def write(self, data: st.DataObject, cells: Shape, seed: int) -> None:
        values = np.random.default_rng(seed).integers(-99, 99, cells.extent, np.int32)
        selection, model = self.pick(data).part(cells)
        selection.write(values)
        model[...] = values

    @rule(number=st.integers(0, 1))
    def wait(self, number: int) -> None:
        self.controllers[number].wait()

    def teardown(self) -> None:
        """At the end all tiles hold what they should."""
        for one in self.tiles:
            assert np.array_equal(one.tile.read(), one.model)
        for one in self.tiles:
            one.controller.free(one.tile)


@pytest.fixture(scope="module", params=ways_to_open(two_images=True))
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Controller, Controller]]:
    with request.param() as one, Controller("cpu") as other:
        yield one, other


def test_random_programs_agree_with_numpy(
    pair: tuple[Controller, Controller], pytestconfig: pytest.Config
) -> None:
    machine = type("Programs", (Programs,), {"controllers": pair})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=N_PROGRAMS[pytestconfig.getoption("whole")],
            stateful_step_count=N_ACTIONS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        ),
    )
