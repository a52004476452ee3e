# SPDX-License-Identifier: MIT
"""Launches that are wrong are refused: over cells that no tile has, structs laid out otherwise."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from sample import sample

from controllers import Controller, Kernel, reading, updating, writing
from controllers.controller import user_launch as module
from controllers.controller.footprint import touches
from controllers.language.source import KernelSource
from hitmap.shape import Shape


def kernel(body: str, front: str = "") -> Kernel:
    return Kernel.of("k", f"""{front}
        __kernel void k(__global const float *old, __global float *new, TILE(old), TILE(new), BOX)
        {{ CELL; {body} }}""")  # fmt: skip


FILL = Kernel.of("fill", """
    __kernel void fill(__global float *u, TILE(u), BOX) { CELL; HERE(u) = 1; }""")
SMOOTH = "HERE(new) = NEAR(old, -1) + NEAR(old, 2);"
GUARDED = "HERE(new) = INDEX(0) > 0 ? NEAR(old, -1) : 0;"
IN_BRANCH = "if (INDEX(0) > 0) { HERE(new) = NEAR(old, -1); } HERE(new) += 1;"
COMPUTED = "float sum = 0; for (int d = 0; d < 2; ++d) sum += NEAR(old, d); HERE(new) = sum;"


@pytest.fixture(scope="module")
def controller() -> Iterator[Controller]:
    with Controller("cpu") as opened:
        yield opened


@pytest.mark.parametrize("n_cells", [7, 90, 50_000_000])
def test_a_box_beyond_the_tile_that_is_written_is_refused(
    controller: Controller, n_cells: int
) -> None:
    u = controller.tile((6,))
    message = rf"'fill': .*\[0:{n_cells}\] leads HERE\(u\) out of the cells \[0:6\].*over \[0:6\]"
    with pytest.raises(ValueError, match=message):
        controller.launch(FILL, Shape.of_extent((n_cells,)), u=u)
    assert not u.read().any()


def test_a_box_beyond_a_selection_is_refused(controller: Controller) -> None:
    u = controller.tile((8, 8))
    part = u.select(Shape((2, 2), (4, 4)))
    with pytest.raises(ValueError, match=r"\[2:4, 2:4\].*launch over \[2:4, 2:4\]"):
        controller.launch(FILL, u, u=part)
    controller.launch(FILL, part, u=part)
    assert u.read().sum() == 4


@pytest.mark.parametrize("checked", [False, True])
def test_cells_that_a_launch_only_writes_it_cannot_read_by_another_name(checked: bool) -> None:
    double = kernel("HERE(new) = 2 * HERE(old);")
    with Controller("cpu", check=checked) as one:
        u = one.tile(np.ones(7, np.float32))        # of an odd extent some cells come twice
        message = r"'k': 'new' is given as writing.*'old' reads \[2:7\].*updating"
        with pytest.raises(ValueError, match=message):
            one.launch(double, u, old=reading(u[2:]), new=writing(u))
        assert np.array_equal(u.read(), [1] * 7)
        one.launch(double, u, old=reading(u), new=updating(u))
        one.launch(FILL, u[2:], u=writing(u[2:]))
        assert np.array_equal(u.read(), [2] * 2 + [1] * 5)


def test_cells_beside_those_that_are_written_may_be_read(controller: Controller) -> None:
    u = controller.tile(np.arange(6, dtype=np.float32))
    shift = kernel("HERE(new) = NEAR(old, -3);")
    controller.launch(shift, Shape((3,), (6,)), old=reading(u[:3]), new=writing(u))
    assert u.read().tolist() == [0, 1, 2] * 2


@pytest.mark.parametrize(
    ("body", "front", "over", "within"),
    sample([
        (SMOOTH, "", (0, 9), "[1:9]"),
        (SMOOTH, "", (1, 9), "[1:8]"),
        (SMOOTH, "", (1, 8), None),
        (GUARDED, "", (0, 10), None),
        (IN_BRANCH, "", (0, 10), None),
        (GUARDED, "", (0, 11), "[0:10]"),
        (COMPUTED, "", (0, 10), None),
        (COMPUTED, "", (0, 11), "[0:10]"),
        ("HERE(new) = AT(old, 9 - INDEX(0));", "", (0, 10), None),
        ("HERE(new) = LEFT(old);", "#define LEFT(t) NEAR(t, -1)", (0, 10), None),
        ("HERE(new) = LEFT;", "#define LEFT NEAR(old, -1)", (0, 11), "[0:10]"),
        ('HERE(new) = 1; /* NEAR(old, -1) */ // NEAR(old, 1)\n', "", (0, 10), None),
        ("if (INDEX(0) == 0) return; HERE(new) = NEAR(old, -1);", "", (0, 10), None),
        ("HERE(new) = NEAR(old, -1);", "__kernel void other(__global int *old) { old[0] = 1; }",
         (0, 10), "[1:10]"),
    ], 3),
)  # fmt: skip
def test_what_is_near_must_lie_in_the_tile_unless_a_branch_may_see_to_it(
    controller: Controller, body: str, front: str, over: tuple[int, int], within: str | None
) -> None:
    tiles = {"old": controller.tile((10,)), "new": controller.tile((20,))}
    box = Shape((over[0],), (over[1],))
    if within is None:
        controller.launch(kernel(body, front), box, **tiles).wait()
    else:
        with pytest.raises(ValueError, match="out of the cells") as caught:
            controller.launch(kernel(body, front), box, **tiles)
        assert f"launch over {within}" in str(caught.value)


def test_a_text_says_what_each_accessor_touches() -> None:
    source = KernelSource("""
        #define RIGHT(t) NEAR(t, \\
                              1)
        kernel void a(global float *u) { CELL; HERE(v); }
        kernel void b(global float *u) {
            CELL;
            NEW(u) = NEAR(u, +1) * f(NEAR(v, ( -2 ))) + (NEAR(u, 1) > 0 && NEAR(w, 3) > 0);
            for (int i = 0; i < 2; ++i) NEAR(x, i);
            do { NEAR(y, 1); } while (printf("} NEAR(z, 1)") > 0);
            NEAR(q, INDEX(0) - 1);
        }""")
    found = {t.name: (t.offset, t.always) for t in touches(source.body("b"), source.code)}
    assert found == {
        "u_new": ((), True), "u": ((1,), True), "v": ((-2,), True), "w": ((3,), False),
        "x": (None, False), "y": ((1,), False), "q": (None, True), "t": ((1,), False),
    }  # fmt: skip


STRUCT = """
    typedef struct { int id; double x; float v[2]; } Particle;
    struct __attribute__((packed)) Packed { int id; double x; };
    __kernel void move(__global Particle *p, TILE(p), BOX) { CELL; HERE(p).x += HERE(p).id; }
    __kernel void pack(__global struct Packed *p, TILE(p), BOX) { CELL; HERE(p).x = HERE(p).id; }
"""
FIELDS = [("id", "i4"), ("x", "f8"), ("v", "f4", 2)]
ELSEWHERE = {"names": ["id", "x", "v"], "formats": ["i4", "f8", ("f4", 2)],
             "offsets": [16, 8, 0], "itemsize": 24}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [
        ("move", np.dtype(FIELDS, align=True), None),
        ("move", np.dtype(FIELDS), "'Particle'.*24 bytes on the device, 20 in NumPy.*align=True"),
        ("move", np.dtype(ELSEWHERE), "'id' has 4 bytes from offset 0 .*, 4 from offset 16"),
        ("move", np.dtype([("id", "f8"), *FIELDS[1:]]), "'id' has 4 bytes .*, 8 from offset 0"),
        ("move", np.dtype([("other", "f8", 3)]), None),     # sizes are all that can be compared
        ("pack", np.dtype(FIELDS[:2]), None),
        ("pack", np.dtype(FIELDS[:2], align=True), "12 bytes on the device, 16 in NumPy.*packed"),
    ],
)
def test_a_dtype_must_be_laid_out_as_the_struct_of_the_kernel(
    controller: Controller, name: str, dtype: np.dtype[np.void], message: str | None
) -> None:
    tile, kernel = controller.tile((5,), dtype), Kernel.of(name, STRUCT)
    if message is not None:
        with pytest.raises(TypeError, match=message):
            controller.launch(kernel, tile, p=tile)
        return
    cells = np.zeros(5, dtype)
    if "id" in cells.dtype.names:
        cells["id"] = np.arange(5)
    tile.write(cells)
    controller.launch(kernel, tile, p=tile)
    if "id" in cells.dtype.names:
        assert tile.read()["x"].tolist() == [0, 1, 2, 3, 4]


def test_a_layout_is_compared_once(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[npt.DTypeLike] = []
    monkeypatch.setattr(module, "check_structure", lambda *given: calls.append(given[-1]))
    tile = controller.tile((5,), np.dtype([("a", "i4")]))
    text = "typedef struct { int a; } S; __kernel void s(__global S *p, TILE(p), BOX) { CELL; }"
    for _ in range(3):
        controller.launch(Kernel.of("s", text), tile, p=tile)
    assert calls == [tile.dtype]
