# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from controllers import Division, Execution, Stencil
from controllers.settings.division import DivisionKeywords
from controllers.settings.domain import bounded, check_some_computed, domain_of
from controllers.settings.execution import ExecutionKeywords
from controllers.settings.request import Request, divided_anew, grouped
from hitmap import Layout, Shape

STENCIL = Stencil.of("mean", [(-1, 1), (0, 3)], [1] * 12, 12)
MEAN = STENCIL.program("float32")
CUBE = Stencil.of("here", [(0, 0)] * 3, [1], 2).program("float32")
DOMAIN = Shape.of_extent((12, 8))


@pytest.mark.parametrize(
    ("group", "keywords"), [(Division, DivisionKeywords), (Execution, ExecutionKeywords)]
)
def test_the_keywords_are_the_fields_of_the_groups(group: type, keywords: type) -> None:
    def spelt(annotations: dict[str, Any]) -> dict[str, str]:
        return {name: getattr(a, "__forward_arg__", a) for name, a in annotations.items()}

    assert spelt(group.__annotations__) == spelt(keywords.__annotations__)


def test_the_words_name_the_layouts_of_hitmap() -> None:
    assert Division("bands").layout_of(DOMAIN, 3).owned == Layout.bands(DOMAIN, 3).owned
    assert Division("blocks").layout_of(DOMAIN, 6).owned == Layout.blocks(DOMAIN, 6).owned
    weights = [1, 3, 2]
    weighted = Division("weighted", weights).layout_of(DOMAIN, 3)
    assert weighted.owned == Layout.weighted(DOMAIN, weights).owned
    assert [box.extent[0] for box in weighted.owned] == [2, 6, 4]


def test_without_a_word_weights_decide() -> None:
    assert Division().layout_of(DOMAIN, 2).owned == Layout.bands(DOMAIN, 2).owned
    assert Division(weights=[5, 1]).layout_of(DOMAIN, 2).owned[0].extent == (10, 8)


def test_dims_and_a_ready_layout_say_how_many_places_there_are() -> None:
    grid = Division(dims=(3, 2), align=2, places_per_controller=3).layout_of(DOMAIN, 2)
    assert grid.topology is not None and grid.topology.dims == (3, 2)
    assert {box.lower[1] for box in grid.owned} == {0, 4}
    ready = Layout.weighted(DOMAIN, [1, 5])
    assert Division(layout=ready).layout_of(DOMAIN, 2) is ready
    for division, match in (
        (Division(dims=(4, 2)), r"dims \(4, 2\), 8 places: .*2 controllers with 1 .*2 in all"),
        (Division(dims=(1, 1, 2)), r"dims.*2 axes, got \(1, 1, 2\)"),
        (Division(layout=Layout.bands(DOMAIN, 3)), "layout of 3 places.*give one of 2 places"),
        (Division(layout=Layout.bands(Shape.of_extent((9, 8)), 2)), r"\[0:9.*field of \[0:12"),
    ):
        with pytest.raises(ValueError, match=match):
            division.layout_of(DOMAIN, 2)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"partition": "stripes"}, r"bands, blocks, weighted.*'stripes'"),
        ({"partition": "bands", "weights": [1, 1]}, r"weighted.*'bands' with weights \[1, 1\]"),
        ({"partition": "blocks", "weights": [1, 1]}, r"weighted.*'blocks'"),
        ({"partition": "weighted"}, r"weighted.*'weighted' with weights None"),
        ({"dims": (2, 2), "partition": "blocks"}, "dims: .*got partition 'blocks' too; leave"),
        ({"dims": (2, 2), "weights": [1]}, r"dims: .*got weights \(1,\) too"),
        ({"layout": Layout.bands(DOMAIN, 2), "dims": (2, 1)}, r"layout: .*got dims \(2, 1\) too"),
        ({"layout": Layout.bands(DOMAIN, 2), "align": 2}, "layout: .*got align 2 too"),
        ({"places_per_controller": 0}, "at least one place, got 0"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Division(**options)


def test_groups_are_values_that_hold_plain_numbers() -> None:
    division = Division(weights=np.array([1, 3]), align=[np.int64(2), 1])
    assert division == Division(weights=[1, 3], align=(2, 1))
    assert hash(division) == hash(Division(weights=(1, 3), align=(2, 1)))
    assert Execution(devices=["cpu", "gpu"]) == Execution(devices=("cpu", "gpu"))
    assert Division(layout=Layout.bands(DOMAIN, 2)).facts != Division().facts


def test_keywords_change_what_the_groups_say() -> None:
    division, execution = grouped(
        Division(weights=[1, 2], align=2), Execution(devices="cpu"), {"align": 4, "overlap": "on"}
    )
    assert division == Division(weights=[1, 2], align=4)
    assert execution == Execution(devices="cpu", overlap="on")
    with pytest.raises(TypeError, match="no keyword 'devics'; did you mean devices?"):
        grouped(None, None, {"devics": "cpu"})
    with pytest.raises(TypeError, match="division: a Division is expected, got str 'bands'"):
        grouped("bands", None, {})  # type: ignore[arg-type]
    before = Division(places_per_controller=3)
    assert divided_anew(before, None, {"dims": (3, 1)}).places_per_controller == 3
    assert divided_anew(before, Division(), {}).places_per_controller == 1
    with pytest.raises(TypeError, match="no keyword 'devices'; a division has partition"):
        divided_anew(before, None, {"devices": "cpu"})


def test_an_array_says_sizes_and_dtype() -> None:
    field = np.zeros((9, 8), "f4")
    request = Request.of(STENCIL, field)
    assert (request.sizes, request.program.dtype) == ((9, 8), "float32")
    assert request.initial[0].value is field
    assert Request.of(STENCIL, field, dtype=np.float64).program.dtype == "float64"
    assert Request.of(STENCIL, (9, 8)).program.dtype == "float64"
    assert Request.of(MEAN, np.array([9, 8])).sizes == (9, 8)
    for sizes, kind, match in (
        ((30.0, 40), TypeError, "got float 30.0; write 30"),
        ([[1.0, 2.0]], TypeError, "an initial field is a NumPy array: write np.asarray"),
        (np.zeros((2, 2, 2)), ValueError, "as many axes as the program, got one of 3"),
        (np.zeros((9, 8), bool), ValueError, "dtype is one of float32.*'bool'"),
    ):
        with pytest.raises(kind, match=match):
            Request.of(STENCIL, sizes)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'mean' are float32, got float64; leave it out"):
        Request.of(MEAN, 9, dtype="f8")


def test_a_wrong_number_of_weights_is_refused() -> None:
    with pytest.raises(ValueError, match=r"3 places .* got 2.*\[1, 2\].*order of rank"):
        Division("weighted", [1, 2]).layout_of(DOMAIN, 3)


@pytest.mark.parametrize("weights", [[1.0, -1.0], [0.0, 0.0], [1.0, float("nan")]])
def test_weights_that_are_no_shares_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="not negative"):
        Division("weighted", weights).layout_of(DOMAIN, 2)


def test_a_field_has_less_than_2_to_the_63_bytes() -> None:
    assert domain_of(MEAN, (2**61 - 1, 1)).n_cells == 2**61 - 1
    with pytest.raises(ValueError, match="less than 2\\^63 bytes, got .*use a smaller one"):
        domain_of(MEAN, (2**61, 1))


@pytest.mark.parametrize(
    ("extent", "periodic", "axis"),
    [((2, 9), (False, False), 0), ((9, 3), (False, False), 1), ((2, 3), (True, False), 1)],
)
def test_a_domain_in_which_no_cell_would_be_computed_is_refused(
    extent: tuple[int, ...], periodic: tuple[bool, ...], axis: int
) -> None:
    with pytest.raises(ValueError, match=f"axis {axis}, .* {extent[axis]} cells.*larger field"):
        check_some_computed(MEAN, Shape.of_extent(extent), periodic)
    check_some_computed(MEAN, Shape.of_extent(extent), (True, True))
    check_some_computed(MEAN, Shape.of_extent((3, 4)), (False, False))


def test_one_boundary_is_that_of_all_axes() -> None:
    assert bounded(CUBE, "periodic").periodic == (True, True, True)
    assert bounded(CUBE, ["fixed"]).periodic == (False, False, False)
    assert bounded(MEAN, ["fixed", "periodic"]).periodic == (False, True)
    assert bounded(MEAN, ("periodic",)).periodic == (True, True)
    assert bounded(MEAN, None) is MEAN


def test_an_unknown_boundary_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"fixed, periodic.*'open'"):
        bounded(MEAN, ["fixed", "open"])


@pytest.mark.parametrize("words", [[], ["fixed"] * 2, ["fixed"] * 4])
def test_a_wrong_number_of_boundaries_is_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match=rf"3 axes .* got {len(words)}"):
        bounded(CUBE, words)
