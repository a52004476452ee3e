# SPDX-License-Identifier: MIT
"""Tiles and selections beside NumPy's arrays: indices, forms, conversions, roles at the launch."""
from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from opened import ways_to_open

from controllers import Controller, Kernel, reading, updating, writing
from controllers.controller.index import selected
from hitmap.shape import Shape

BOX = Shape((-2, 3, 0), (5, 8, 4))
ADD = Kernel.of("add_one", """
    __kernel void add_one(__global int *u, TILE(u), BOX) { CELL; HERE(u) += 1; }""")
COPY = Kernel.of("copy", """
    __kernel void copy(__global const int *old, __global int *new, TILE(old), TILE(new), BOX)
    { CELL; HERE(new) = HERE(old); }""")
ODD_NAMES = Kernel.of("odd_names", """
    __kernel void odd_names(__global int *group, TILE(group), BOX, int lambda, int kernel_,
                            int self)
    { CELL; HERE(group) = 100 * lambda + 10 * kernel_ + self; }""", roles={"group": "writing"})


@pytest.fixture(params=ways_to_open(), scope="module")
def controller(request: pytest.FixtureRequest) -> Iterator[Controller]:
    with request.param() as opened:
        yield opened


def random_index(rng: random.Random) -> Any:
    """Something to write in brackets, for an array of three axes."""

    def one(n: int) -> Any:
        ends = [rng.choice([None, rng.randint(-n - 2, n + 2)]) for _ in range(2)]
        return rng.choice([slice(*ends), slice(*ends, 1), rng.randint(-n, n - 1)])

    each: list[Any] = [one(n) for n in BOX.extent]
    if rng.random() < 0.3:
        each[rng.randrange(3)] = ...
    each = each[: rng.randint(1, 3)]
    return tuple(each) if len(each) > 1 or rng.random() < 0.5 else each[0]


def test_random_indices_select_what_they_do_in_numpy() -> None:
    rng = random.Random(1)
    numbers = np.arange(BOX.n_cells).reshape(BOX.extent)
    for _ in range(500):
        index = random_index(rng)
        try:
            expected = numbers[index].ravel()
        except IndexError:
            with pytest.raises(IndexError):
                selected(index, BOX)
            continue
        box = selected(index, BOX)
        assert box in BOX
        assert numbers[box.slices(BOX.lower)].ravel().tolist() == expected.tolist(), index


@pytest.mark.parametrize(
    ("index", "kind", "message"),
    [
        (7, IndexError, "index 7 of axis 0 is not among its 7 cells"),
        ((0, -6), IndexError, "index -6 of axis 1"),
        (slice(None, None, 2), ValueError, "axis 0 has the step 2"),
        (slice(None, None, -1), ValueError, "step -1.*side by side"),
        ((0, 0, 0, 0), IndexError, "more than 3 axes"),
        ((..., ...), IndexError, "more than one"),
        (None, TypeError, "axis 0 is None"),
        (True, TypeError, "axis 0 is True"),
        ([0, 1], TypeError, r"axis 0 is \[0, 1\].*write slices"),
        ("u", TypeError, "axis 0 is 'u'"),
        (1.0, TypeError, "axis 0 is 1.0"),
    ],
)
def test_an_index_that_selects_no_box_is_refused(
    index: object, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        selected(index, BOX)


def test_selections_are_read_written_launched_and_selected_from(controller: Controller) -> None:
    tile = controller.tile(BOX, "int32")
    model = np.zeros(BOX.extent, np.int32)
    tile[2:4, :].write(5)
    model[2:4] = 5
    controller.launch(ADD, tile[..., -1], u=tile[..., -1])
    model[..., -1] += 1
    part = tile[1:][:-1, 2]
    assert part.box == Shape((-1, 5, 0), (4, 6, 4)) and part.shape == (5, 1, 4)
    assert (part.tile, part.dtype) == (tile, np.dtype("int32"))
    assert np.array_equal(part.read(), model[1:-1, 2:3])
    assert np.array_equal(tile.read(), model)
    empty = tile[3:3]
    empty.write(9)
    assert empty.read().shape == np.asarray(empty).shape == (0, 5, 4)
    assert np.array_equal(tile, model)


def test_indices_are_global_and_broadcast(controller: Controller) -> None:
    tile = controller.tile(BOX, "int32")
    i, j, k = tile[2:].indices()
    assert (i.shape, j.shape, k.shape) == ((5, 1, 1), (1, 5, 1), (1, 1, 4))
    tile[2:].write(100 * i + 10 * j + k)
    expected = np.fromfunction(lambda i, j, k: 100 * i + 10 * (j + 3) + k, (5, 5, 4))
    assert np.array_equal(tile[2:].read(), expected) and not tile[:2].read().any()


def test_a_tile_of_an_array_has_its_form_and_values(controller: Controller) -> None:
    values = np.arange(12, dtype=np.int32).reshape(3, 4).T
    for kind in ("tied", "internal", "host"):
        tile = controller.tile(values, kind=kind)  # type: ignore[arg-type]
        assert (tile.box, tile.shape, tile.dtype, tile.kind) == (
            Shape.of_extent((4, 3)), (4, 3), values.dtype, kind,
        )  # fmt: skip
        assert np.array_equal(tile.read(), values)
    tile = controller.tile(values)
    controller.launch(ADD, tile, u=tile)
    assert np.array_equal(tile, values + 1) and values[0, 0] == 0, "the array is left as it is"
    assert controller.tile(values, "float64").dtype == np.float64
    structs = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])
    assert controller.tile(structs).read() == structs
    with pytest.raises(ValueError, match="holds 300, but uint8"):
        controller.tile(np.array([300]), "uint8")
    with pytest.raises(TypeError, match="dtype of a tile"):
        controller.tile(np.array(["a"]))
    with pytest.raises(ValueError, match="at least one cell"):
        controller.tile(np.array(3))
    assert controller.tile((2, 2)).dtype == np.float32


def test_numpy_takes_tiles_as_arrays(controller: Controller) -> None:
    tile = controller.tile(np.arange(6, dtype=np.int32))
    controller.launch(ADD, tile, u=tile)
    view = np.asarray(tile)
    assert view.tolist() == [1, 2, 3, 4, 5, 6] and not view.flags.writeable
    assert np.shares_memory(view, tile.host), "the host's image itself"
    assert np.asarray(tile[1:3]).tolist() == [2, 3] and np.sum(tile) == 21
    copy = np.array(tile)
    copy[0] = 9
    assert np.asarray(tile, "float64").dtype == np.float64
    assert tile.__array__(copy=True).flags.writeable and tile.read()[0] == 1
    assert tile.__array__(copy=False).tolist() == view.tolist()
    inner = controller.tile(np.arange(3, dtype=np.int32), kind="internal")
    assert np.asarray(inner).tolist() == [0, 1, 2]
    for cells, dtype in ((inner, None), (tile, "float64")):
        with pytest.raises(ValueError, match="by a copy only"):
            cells.__array__(dtype, copy=False)
    tile.write(inner.tile[0])
    assert tile.read().tolist() == [0] * 6


def test_a_wait_for_a_tile_leaves_other_work_alone(controller: Controller) -> None:
    go, tile, other = threading.Event(), controller.tile((4,), "int32"), controller.tile((4,))
    controller.launch(ADD, tile, u=tile)
    controller.host_task(lambda cells: go.wait(60), updating(other[:2]))
    try:
        controller.wait(tile)
        controller.wait(tile[1:], other[2:])
        controller.launch(ADD, tile, u=tile).wait()
    finally:
        go.set()
    controller.wait(other)

    def fails(cells: npt.NDArray[np.float32]) -> None:
        raise ArithmeticError("a wrong number")

    controller.host_task(fails, writing(other))
    controller.wait(tile)
    with pytest.raises(ArithmeticError):
        controller.wait(tile, other)
    with pytest.raises(ArithmeticError):
        controller.wait()


def test_roles_are_stated_at_the_launch_or_declared(controller: Controller) -> None:
    old, new = (controller.tile((4,), "int32") for _ in range(2))
    old.write(7)
    gone: list[object] = []
    new.write(1)
    real = type(new).refresh

    def spied(cells: Any, side: Any) -> Any:
        gone.append(cells.tile)
        return real(cells, side)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(new), "refresh", spied)
        controller.launch(COPY, old, old=reading(old), new=writing(new))
        assert gone == [old], "what is only written is not moved"
        controller.launch(COPY, old, old=old, new=new)
        assert gone == [old, old, new]
    assert new.read().tolist() == [7] * 4
    refused = [
        (COPY, {"old": updating(old), "new": new}, "'old' is declared 'updating'.*to const"),
        (COPY, {"old": old, "new": reading(new)}, "'new' is declared 'reading'.*no pointer"),
        (ODD_NAMES, {"group": updating(old)}, "'group' is declared 'writing'.*gives updating"),
    ]
    for kernel, arguments, message in refused:
        with pytest.raises(ValueError, match=message):
            controller.launch(kernel, old, arguments)


def test_roles_are_checked_when_they_are_declared() -> None:
    text = "__kernel void k(__global int *u) { u[0] = 1; }"
    for word, role in (("writing", "out"), ("updating", "inout"), ("out", "out")):
        assert Kernel.of("k", text, roles={"u": word}).roles == {"u": role}  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="role of 'v' is declared, and the text names no 'v'"):
        Kernel.of("k", text, roles={"v": "writing"})
    with pytest.raises(ValueError, match="one of reading, writing, updating, got 'wrote'"):
        Kernel.of("k", text, roles={"u": "wrote"})  # type: ignore[dict-item]


def test_parameters_may_have_any_name(controller: Controller) -> None:
    tile = controller.tile((4,), "int32")
    names = {"group": tile, "lambda": 1}
    controller.launch(ODD_NAMES, tile, names, group=(2,), kernel_=2, self=3)
    assert tile.read().tolist() == [123] * 4
    with pytest.raises(TypeError, match="'self' is given twice"):
        controller.launch(ODD_NAMES, tile, {"self": 1}, self=3)
    with pytest.raises(TypeError, match="arguments: a dict"):
        controller.launch(ODD_NAMES, tile, [tile])  # type: ignore[arg-type]


def test_cells_tell_people_what_they_are() -> None:
    with Controller("cpu") as controller:
        tile = controller.tile((4, 5), "int32")
        name = controller.device.name
        assert repr(tile) == f"<tied tile [0:4, 0:5] of int32 on {name!r}>"
        assert repr(tile[1]) == f"<cells [1:2, 0:5] of {tile!r}>"
        assert repr(writing(tile)) == f"writing({tile!r})"
        controller.free(tile)
        assert repr(tile).startswith("<freed tied tile")
