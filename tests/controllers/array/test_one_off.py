# SPDX-License-Identifier: MIT
"""One-off programs run on whatever tiles, kernels and modes a computation has."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import controllers as ct
from hitmap import SerialCommunicator

SERIAL = SerialCommunicator()
HEAT = ct.Stencil.of("heat", pattern=[[0, 1, 0], [1, 0, 1], [0, 1, 0]], factor=4)


@pytest.mark.parametrize("n_places", [1, 3])
def test_fields_at_half_points_meet_those_at_cells_and_stay_0_on_walls(n_places: int) -> None:
    random = np.random.default_rng(0)
    with ct.Computation(
        [], ct.Grid(y=6, x=8), p=random.random((6, 8)), vx=random.random((6, 9)), comm=SERIAL,
        location=dict(vx="x"), boundary=dict(p="mirror", vx=ct.mirror(-1)), devices=["reference"],
        places_per_controller=n_places,
    ) as run:  # fmt: skip
        vx = np.asarray(run.vx)
        run.p[...] = run.vx[:, 1:] - run.vx[:, :-1]
        p = vx[:, 1:] - vx[:, :-1]
        run.vx[:, 1:-1] += run.p[:, 1:] - run.p[:, :-1]
        vx[:, 1:-1] += p[:, 1:] - p[:, :-1]
        assert np.array_equal(run.p, p) and np.array_equal(run.vx, vx)
        run.vx += 1
        vx[:, 1:-1] += 1
        assert np.array_equal(run.vx, vx) and run.vx[1:, 2:].argmax() == vx[1:, 2:].argmax()


def test_a_halo_for_which_tiles_have_no_room_is_made_in_a_copy() -> None:
    with ct.Computation(
        [], (9, 5), a=lambda y, x: y, b=0, comm=SERIAL, devices=["reference"],
        places_per_controller=3,
    ) as run:  # fmt: skip
        run.b[1:] = run.a[:-1] * 2
        assert "no room" not in run.explain()
        run.b[4:] = run.a[4:] - run.a[:-4]
        assert (np.asarray(run.b[4:]) == 4).all()
        assert "b = an expression of a over [4:9, 0:5]; first copied" in run.explain()


@pytest.mark.parametrize("options", [
    {"check": True}, *(pytest.param(one, marks=pytest.mark.whole) for one in (
        {"kernel": "generic"}, {"zero_copy": False}, {"steps_per_launch": 3},
    )),
], ids=str)  # fmt: skip
def test_any_mode_computes_expressions_between_steps(options: dict[str, Any]) -> None:
    start = np.random.default_rng(1).random((20, 30)).astype("f4")
    device = "reference" if "check" in options else "cpu"
    with ct.Computation(
        HEAT, start, comm=SERIAL, devices=[device], places_per_controller=2, **options
    ) as run:
        run.run(4)
        right = np.array(run.u)
        run.u[1:-1] = run.u[2:] * 2.0 - run.u[:-2]
        right[1:-1] = right[2:] * 2 - right[:-2]
        run.u += 1
        right += 1
        assert np.array_equal(run.u, right) and run.u.max() == right.max()
        run.run(3)
        right = ct.reference_run(HEAT.program("float32"), right, 3, (False, False))
        assert np.array_equal(run.u, right)


def test_values_that_nobody_looks_at_any_more_give_their_tiles_to_others() -> None:
    with ct.Computation([], (6, 8), u=1, v=2, devices="reference", comm=SERIAL) as run:
        for number in range(6):
            assert (np.asarray(run.u * run.v + number) == 2 + number).all()
        store, bound = run._arrays.store, run._arrays._bound
        assert store._n_made == 1 and len(bound._known) == 1


def test_equal_expressions_of_fields_are_made_once_and_zeros_of_either_sign_are_two() -> None:
    with ct.Computation([], (4,), u=-1, devices="reference", comm=SERIAL) as run:
        one, other = run.u[1:] + 2 * run.u[:-1], run.u[1:] + 2 * run.u[:-1]
        assert one.term is other.term and one is not other
        assert (run.u * 2).term is not (run.u * 2.0).term       # which is an argument
        assert [np.signbit(run.u * zero).all() for zero in (0.0, -0.0)] == [True, False]
        held = run.u + 1
        run.u[...] = 5
        assert (held + 1).term is not (held + 1).term, "tiles of its own are given to others"
        assert (held + 1 == 1).all()
