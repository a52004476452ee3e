# SPDX-License-Identifier: MIT
"""What somebody still has of a computation keeps its values; views see what is assigned."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import controllers as ct
from hitmap import SerialCommunicator

U = np.arange(35.0).reshape(5, 7)


@ct.step
def halve(u: Any, v: Any) -> dict[str, Any]:
    return dict(u=(u[0, 1] + u[0, -1]) / 4 + v)


def started(steps: Any = halve, **more: Any) -> Any:
    options = {"u": U, "v": 2, "boundary": "periodic", "places_per_controller": 2, **more}
    return ct.Computation(
        steps, U.shape, comm=SerialCommunicator(), devices=["reference"], **options
    )


def test_expressions_hold_versions_and_slices_are_views() -> None:
    with started() as run:
        w, view, kept = run.u * 2 + run.v, run.u[1:3], run.u[1:3] + 0
        run.u[1:3] = -1
        assert np.array_equal(w, U * 2 + 2) and np.array_equal(kept, U[1:3])
        assert (view == -1).all() and view.shape == (2, 7)
        view[:, 2:4] *= 3
        assert run.u[2, 3] == -3 and run.u[2, 4] == -1
        before, now = run.u[1:3], np.array(run.u)
        run.run(1)
        assert np.array_equal(before, now[1:3]) and not np.array_equal(run.u, now)
        w = run.u * 2
        run.u[...] = w
        run.u[...] = run.u + 1
        assert np.array_equal(run.u, np.asarray(w) + 1), "w is that of before"


def test_what_is_kept_outlives_the_computation_and_its_division() -> None:
    with started([], places_per_controller=3) as run:
        view, w = run.u[::2], np.sqrt(run.u)
        run.redistribute(weights=[1, 2, 5])
        assert np.array_equal(w, np.sqrt(U)) and np.array_equal(w + run.u, np.sqrt(U) + U)
        assert run.u.tolist() == U.tolist() and run.u.std() == U.std()
        assert np.array_equal(view.T, U[::2].T) and w[1:].reshape(-1).shape == (28,)
        with pytest.raises(AttributeError, match="fill"):
            run.u.fill(0)
    assert np.array_equal(view, U[::2]) and np.array_equal(view + w[::2], U[::2] + np.sqrt(U[::2]))
    assert w.max() == np.sqrt(34) and w[4, 6] == np.sqrt(34)


def test_operators_write_fields_in_place() -> None:
    with started([]) as run:
        run.u += run.v
        run["u"] *= 2.0
        run.u[1:] -= run.u[:-1]
        np.add(run.u, 1, out=run.v)
        right = (U + 2) * 2
        right[1:] -= right[:-1].copy()
        assert np.array_equal(run.u, right) and np.array_equal(run.v, right + 1)
        with pytest.raises(AttributeError, match=r"run.u\[...\] = values"):
            run.u = run.v
        with pytest.raises(TypeError, match=r"run\['u'\]\[...\] = values"):
            run["u"] = run.v


def test_operands_that_lie_elsewhere_are_brought_together() -> None:
    with started([]) as run, started([], u=3.0) as other:
        run.u[...] = run.u * other.u + run.u[2] - run.u[:, 1:2]
        right = U * 3 + U[2] - U[:, 1:2]
        assert np.array_equal(run.u, right)
        assert np.array_equal(run.u[:3] + run.u[1:4][::-1], right[:3] + right[1:4][::-1])
        assert np.array_equal(run.u[::2] * 2, right[::2] * 2)
        run.v[::2] = run.u[::2] * 2
        assert np.array_equal(run.v[::2], right[::2] * 2) and run.v[1, 1] == 2
        assert np.array_equal(np.float32(0.1) * run.u, np.float32(0.1) * right)
        run.v[3] = run.u[:, 2:3].reshape(-1)[0]
        assert (run.v[3] == right[0, 2]).all()
        assert np.array_equal(np.sort(run.u, axis=0), np.sort(right, axis=0))
        assert np.array_equal(np.concatenate([run.u, run.v]), np.concatenate([right, run.v]))


def test_what_does_not_fit_is_refused() -> None:
    fine, coarse = ct.Grid(y=5, x=7, upper=(1, 1)), ct.Grid(y=5, x=7, upper=(2, 2))
    with started([], k=np.int32(1), dtype=dict(u="f8", v="f4", k="i4")) as run:
        for call, kind, words in (
            (lambda: run.u + run.u[1:], ValueError, r"np.add: operands .* \(5, 7\), \(4, 7\)"),
            (lambda: np.exp(run.u), ValueError, "strict arithmetic refuses .*np.asarray.*fast"),
            (lambda: run.k.__setitem__(..., run.u * 1), TypeError, "k holds int32.*astype"),
            (lambda: run.u + 1j, TypeError, "numbers and arrays, got complex"),
            (lambda: run.u + np.zeros(7, "c8"), TypeError, "array of complex64"),
            (lambda: run.u[run.k], IndexError, "a mask is a comparison .*int32"),
            (lambda: run.u[run.u > 0].__len__() + run.u[run.v[1:] > 0], IndexError, "mask"),
            (lambda: run.u.__setitem__(run.u > 0, [1, 2]), ValueError, r"number or an array.*\(5"),
            (lambda: (run.u > 0) - (run.v > 0), TypeError, "truth values"),
            (lambda: run.k.__setitem__(..., run.k + 2**40), ValueError, "beyond the range"),
            (lambda: bool(run.u > 0), ValueError, "35 cells"),
        ):
            with pytest.raises(kind, match=words):
                call()
        assert (np.asarray(run.u) == U).all() and (np.asarray(run.k) == 1).all(), "nothing is torn"
    with (
        ct.Computation([], fine, u=1, comm=SerialCommunicator(), devices="reference") as one,
        ct.Computation([], coarse, u=1, comm=SerialCommunicator(), devices="reference") as two,
        pytest.raises(ValueError, match="unlike grids.*np.asarray"),
    ):
        one.u + two.u


def test_what_numpy_writes_and_what_devices_lack() -> None:
    rng = np.random.default_rng(5)
    u, v = rng.random((6, 7)) - 0.5, rng.random((6, 7))
    with ct.Computation([], (6, 7), u=u, v=v, devices="reference") as run:
        np.copyto(run.u, run.v, where=run.u < 0)
        np.copyto(u, v, where=u < 0)
        run.u[u > 0.7] = 0.25           # a mask of the host
        assert run.u[v > 0.5].sum() == math.fsum(np.where(u > 0.7, 0.25, u)[v > 0.5])
        u[u > 0.7] = 0.25
        np.fmax(run.u, 0.3, out=run.u)
        np.round(run.v, 1, out=run.v)
        assert np.array_equal(run.u.get(), np.fmax(u, 0.3))
        assert np.array_equal(run.v.get(), np.round(v, 1))
        assert 0.3 in run.u and -1 not in run.u
        assert np.count_nonzero(run.u > 0.3) == np.count_nonzero(u > 0.3)
        assert np.ptp(run.u) == np.ptp(np.fmax(u, 0.3))
        assert [one.shape for one in np.divmod(run.u, 0.1)] == [(6, 7)] * 2
        with pytest.raises(TypeError, match="np.put writes into.*assign"):
            np.put(run.u, [1], 2)
        with pytest.raises(ValueError, match="must not be negative, got -1"):
            next(run.steps(-1))
