# SPDX-License-Identifier: MIT
"""Which buffers hold which versions, what is exchanged, and what is carried: from sweeps alone."""
from __future__ import annotations

from collections.abc import Mapping

import pytest

from controllers.program.element import Element, Outcome
from controllers.program.expression import Expression, Read
from controllers.program.fold import Fold
from controllers.program.liveness import Liveness, offsets_of
from controllers.program.maps import All, Along, Copied, Mapped, Row
from controllers.program.program import Field, Program
from controllers.program.schedule import lowered, sweeps
from controllers.program.stage import Stage
from controllers.program.sweep import Sweep, Use, Version
from hitmap import Shape

DOMAIN = Shape.of_extent((12,))
BOTH = {"u": DOMAIN, "v": DOMAIN}
LEFT = ((-1, 0),)
RIGHT = ((0, 1),)


def at(field: str, offset: int = 0) -> Read:
    return Read(field, (offset,))


def stage(
    name: str, field: str, expression: Expression, offsets: tuple[tuple[int, int], ...] = LEFT
) -> Stage:
    return Stage(name, {field: expression}, offsets)


def live(
    *stages: Stage, renames: Mapping[str, str] | None = None, fields: str = "uvw"
) -> Liveness:
    described = tuple(Field(name, "float32") for name in fields)
    program = Program("p", described, stages, renames=renames or {})
    schedule = lowered(program, DOMAIN, (False,))
    return Liveness(dict.fromkeys(fields, DOMAIN), [*sweeps(schedule)], program.renames)


def buffers(of: Liveness, field: str, phase: int = 0) -> list[int]:
    """Of all versions of a field, in order."""
    found = []
    while True:
        try:
            found.append(of.buffer(Version(field, len(found)), phase))
        except KeyError:
            return found


def test_a_field_that_is_only_read_has_one_buffer_and_is_exchanged_before_the_first_step() -> None:
    of = live(stage("s", "u", at("u", -1) + at("v", -1)))
    assert of.n_buffers == {"u": 2, "v": 1, "w": 1} and of.period == 2
    assert of.exchanged == (Version("u", 1), Version("v", 0))
    assert of.opened == {"u": Version("u", 1), "v": Version("v", 0)}
    assert buffers(of, "u") == [0, 1] and buffers(of, "u", 1) == [1, 0]


def test_what_a_sweep_does_not_read_it_writes_in_place() -> None:
    of = live(stage("halve", "v", at("u", -1) / 2), stage("add", "u", at("u") + at("v")))
    assert of.n_buffers == {"u": 1, "v": 1, "w": 1}
    assert of.exchanged == (Version("u", 1),)      # of v nobody reads a neighbour


def overwrites(of: Liveness) -> list[Mapping[str, str]]:
    return [sweep.stage.overwrites for sweep in of.sweeps]


def test_what_is_read_at_the_cell_alone_is_written_over_where_nobody_else_needs_it() -> None:
    add = stage("add", "v", at("v") + at("u", -1))
    of = live(add, stage("move", "u", at("u") + at("v")), fields="uv")
    assert overwrites(of) == [{"v": "v"}, {"u": "u"}] and of.n_buffers == {"u": 1, "v": 1}
    assert of.period == 1 and all(of.carried(Version(f, 1), 0).empty for f in "uv")
    of = live(add, renames={"w": "v"})      # which is v as it was
    assert overwrites(of) == [{}] and of.n_buffers == {"u": 1, "v": 2}


def test_what_a_stage_after_it_reads_is_not_written_over() -> None:
    one, late = stage("one", "u", at("u") + 1), stage("late", "v", at("u"))
    sweeps = [Sweep.of(one, DOMAIN), Sweep.of(late, DOMAIN)]    # of version 0
    assert overwrites(Liveness(BOTH, sweeps)) == [{}, {}]
    sweeps = [Sweep.of(one, DOMAIN), Sweep.of(late, DOMAIN, 1, {"u": 1})]
    assert overwrites(Liveness(BOTH, sweeps)) == [{"u": "u"}, {}]
    assert overwrites(Liveness(BOTH, sweeps, in_place=False)) == [{}, {}]


def test_folds_and_texts_in_opencl_c_keep_what_they_read() -> None:
    folds = Stage("one", {"u": at("u") + 1}, LEFT, {"most": Fold("max", at("u"))})
    assert overwrites(Liveness(BOTH, [Sweep.of(folds, DOMAIN)])) == [{}]
    reads = (("u", (0,)),)
    text = Element("twice", "u_new = 2 * u(0);", "", 0, "a text", (("u", "u"),), reads, ("u",))
    twice = stage("twice", "u", Outcome(text, "u"))
    assert overwrites(Liveness(BOTH, [Sweep.of(twice, DOMAIN)])) == [{}]


def test_two_writings_in_a_step_go_forth_and_back() -> None:
    of = live(stage("one", "u", at("u", -1)), stage("two", "u", at("u", -1)), fields="u")
    assert buffers(of, "u") == [0, 1, 0] and of.period == 1
    assert of.exchanged == (Version("u", 1), Version("u", 2))
    assert all(of.carried(Version("u", n), 0).empty for n in (1, 2))


def test_each_version_is_exchanged_for_its_own_readers() -> None:
    of = live(
        stage("one", "u", at("u", -1)), stage("two", "u", at("u", 1) + at("u"), RIGHT), fields="u"
    )
    assert offsets_of(of.uses(Version("u", 1))) == ((1,), (0,))
    assert offsets_of(of.uses(Version("u", 2))) == ((-1,),)


def test_where_writings_compute_unlike_cells_the_difference_is_carried() -> None:
    of = live(stage("one", "u", at("u", -1)), stage("two", "u", at("u", 1), RIGHT), fields="u")
    assert str(of.carried(Version("u", 1), 0)) == "[0:1]"
    assert str(of.carried(Version("u", 2), 0)) == "[11:12]"
    assert of.carried(Version("u", 0), 0).empty


def test_an_old_version_that_is_read_after_the_next_two_are_written_has_a_third_buffer() -> None:
    first, second, late = (
        stage("one", "u", at("u", -1)),
        stage("two", "u", at("u", -1)),
        stage("late", "v", at("u")),
    )
    inner = Shape((1,), (12,))
    step = [
        Sweep.of(first, inner),
        Sweep.of(second, inner, 1, {"u": 1}),
        Sweep.of(late, inner),      # of version 0
    ]
    of = Liveness(BOTH, step)
    assert buffers(of, "u") == [0, 1, 2] and buffers(of, "u", 1) == [2, 1, 0]
    assert of.n_buffers == {"u": 3, "v": 1} and of.period == 2


def test_updates_of_one_stage_read_what_there_was_before_it() -> None:
    both = Stage("turn", {"u": at("v"), "v": at("u")}, LEFT)
    program = Program("p", (Field("u", "float32"), Field("v", "float32")), (both,))
    (sweep,) = sweeps(lowered(program, DOMAIN, (False,)))
    assert [use.version for use in sweep.uses] == [Version("v", 0), Version("u", 0)]
    of = Liveness(BOTH, [sweep])
    assert overwrites(of) == [{"u": "u", "v": "v"}]     # in each cell both are read first
    assert of.n_buffers == {"u": 1, "v": 1}
    of = Liveness(BOTH, [sweep], in_place=False)
    assert of.n_buffers == {"u": 2, "v": 2}


def test_a_renamed_field_shares_buffers_and_nothing_is_copied_but_fixed_cells() -> None:
    leap = stage("leap", "u", at("u", -1) - at("v"))
    of = live(leap, renames={"v": "u"}, fields="uv")
    assert of.pools == {"u": "u", "v": "u"} and of.n_buffers == {"u": 2} and of.period == 2
    assert [buffers(of, "u", n) for n in range(2)] == [[0, 1], [1, 0]]
    assert [buffers(of, "v", n) for n in range(2)] == [[1], [0]]
    assert str(of.carried(Version("u", 1), 0)) == "[0:1]" and overwrites(of) == [{"u": "v"}]


def test_an_earlier_level_that_is_read_nearby_has_a_buffer_until_the_sweep_ends() -> None:
    leap = stage("leap", "u", at("u", -1) - at("v", -1))
    of = live(leap, renames={"v": "u"}, fields="uv")
    assert of.n_buffers == {"u": 3} and of.period == 3 and overwrites(of) == [{}]
    assert [buffers(of, "u", n) for n in range(3)] == [[0, 2], [2, 1], [1, 0]]
    assert [buffers(of, "v", n) for n in range(3)] == [[1], [0], [2]]
    assert str(of.carried(Version("u", 1), 0)) == "[0:1]"


def test_swapped_fields_change_roles_and_are_exchanged_under_both_names() -> None:
    of = live(stage("s", "w", at("u", -1) + at("v", 1), ((-1, 1),)), renames={"u": "v", "v": "u"})
    assert of.period == 2 and of.n_buffers == {"u": 2, "w": 1}
    assert [buffers(of, "u", n) for n in range(2)] == [[0], [1]]
    assert sorted(offsets_of(of.uses(Version("u", 0)))) == [(-1,), (1,)]


def test_an_earlier_level_that_is_read_at_neighbours_widens_the_exchange() -> None:
    leap = stage("leap", "u", at("u") - at("v", -1))
    of = live(leap, renames={"v": "u"}, fields="uv")
    assert of.exchanged == (Version("u", 1), Version("v", 0))
    assert set(offsets_of(of.uses(Version("u", 1)))) == {(0,), (-1,)}


@pytest.mark.parametrize("reads", [Along(0, DOMAIN), All(DOMAIN), Mapped(lambda box: box)])
def test_what_is_read_by_other_maps_than_offsets_is_exchanged(reads: All) -> None:
    first = Sweep.of(stage("s", "u", at("v")), DOMAIN)
    wide = Sweep(first.stage, (Use(Version("v", 0), reads),), first.updates, DOMAIN)
    assert Liveness(BOTH, [wide]).exchanged == (Version("v", 0),)


@pytest.mark.parametrize("reads", [Row(1), Copied(All(DOMAIN))])
def test_rows_and_copies_are_there_without_an_exchange(reads: Row | Copied) -> None:
    first = Sweep.of(stage("s", "u", at("v")), DOMAIN)
    own = Sweep(first.stage, (Use(Version("v", 0), reads),), first.updates, DOMAIN)
    assert not Liveness(BOTH, [own]).exchanged


def test_versions_that_do_not_exist_are_refused() -> None:
    early = Sweep.of(stage("s", "u", at("v")), DOMAIN, 1, {"v": 1})
    with pytest.raises(ValueError, match="uses v after 1 writings, .* written 0 times by then"):
        Liveness(BOTH, [early])
    twice = Sweep.of(stage("s", "u", at("v")), DOMAIN, 1, {"u": 1})
    with pytest.raises(ValueError, match="makes u after 2 writings, the next one is number 1"):
        Liveness(BOTH, [twice])
