# SPDX-License-Identifier: MIT
"""Sums and counts of rows by their labels, the same on every rank and on any layout.

Each rank adds the rows that it has, on the host; a sum is the exact one, rounded once to float64.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.array.local_rows import SideBySide, stated
from controllers.array.reductions import Reduced
from controllers.program import exact_sum
from hitmap.agreement import on_all_ranks, raise_together
from hitmap.argument import whole

_MOST = 1 << 24     # labels times columns, whose sums every rank holds


def sum_by(values: Any, labels: Any, n_labels: int) -> npt.NDArray[np.float64]:
    """The sums of the rows that have the label 0, 1 ..., [n_labels][...], on every rank.

    values: [rows][...].  labels: [rows], whole numbers; ValueError on all ranks where one is not in
    0 <= label < n_labels.  Both may be distributed, or NumPy's arrays that all ranks have.  Sums
    are exact, rounded once to float64.  Collective.
    """
    shape, dtype = _shape_of(values, labels)[1:], np.dtype(values.dtype).name
    n_labels, n_columns = whole(n_labels, "n_labels", 0), int(np.prod(shape, dtype=np.int64))
    if n_labels * n_columns > _MOST:
        raise on_all_ranks(ValueError(
            f"sum_by: every rank holds the sums, at most {_MOST} of them, got {n_labels} labels of "
            f"{n_columns} columns; use fewer"
        ))  # fmt: skip
    side = _beginning("sum_by", values, labels, n_labels)
    n_groups, problem = n_labels * n_columns, None
    words = np.zeros((n_groups, exact_sum.N_FLAGS + exact_sum.n_digits(dtype)), np.int64)
    for rows, its in side.parts():
        problem = problem or _problem(its, n_labels)
        if problem is None:
            groups = its.astype(np.intp)[:, None] * n_columns + np.arange(n_columns)
            words += exact_sum.words_by(rows.reshape(-1), groups.reshape(-1), n_groups, dtype)
    everyone = _everyone(side, words, problem)
    found = [exact_sum.value(exact_sum.normal(one), dtype) for one in np.sum(everyone, axis=0)]
    return np.array(found, np.float64).reshape(n_labels, *shape)


def bincount(labels: Any, weights: Any = None, minlength: int = 0) -> npt.NDArray[Any]:
    """What `np.bincount` gives, on every rank; sums of weights are exact ones.  Collective."""
    counts, problem = np.zeros(whole(minlength, "minlength", 0), np.intp), None
    _shape_of(labels if weights is None else weights, labels)
    side = _beginning("bincount", labels, labels, minlength)
    for its, _ in side.parts():
        problem = problem or _problem(its, _MOST)
        if problem is None:
            more = np.bincount(its, minlength=counts.size)
            more[: counts.size] += counts
            counts = more
    everyone = _everyone(side, counts, problem)
    n = max(one.size for one in everyone)
    if weights is not None:
        return sum_by(weights, labels, n)
    padded = [np.pad(one, (0, n - one.size)) for one in everyone]
    return np.asarray(np.sum(padded, axis=0, dtype=np.intp))


def _shape_of(values: Any, labels: Any) -> tuple[int, ...]:
    """That of the values; TypeError or ValueError where the labels do not fit."""
    shape, of_labels = np.shape(values), np.shape(labels)
    if len(of_labels) != 1 or not shape or shape[0] != of_labels[0]:
        raise on_all_ranks(ValueError(
            f"there is one label for each row of the values, got values of the shape {shape} and "
            f"labels of {of_labels}; give a line of labels"
        ))  # fmt: skip
    if np.dtype(labels.dtype).kind not in "iu":
        raise on_all_ranks(TypeError(
            f"labels are whole numbers, got {labels.dtype}; convert them, by astype"
        ))  # fmt: skip
    return tuple(shape)


def _beginning(verb: str, values: Any, labels: Any, facts: object) -> SideBySide:
    """The rows of both on this rank, once all ranks have said that they make this call."""
    first = next((one for one in (values, labels) if isinstance(one, Reduced)), None)
    if first is not None:
        first.arrays.owner.begin(verb, lambda: {
            "arguments": [stated(values), stated(labels)], "more": repr(facts)
        })  # fmt: skip
    return SideBySide([values, labels])


def _problem(labels: npt.NDArray[Any], n_labels: int) -> str | None:
    """What is wrong with labels, if anything is."""
    if not labels.size or (labels.min() >= 0 and labels.max() < n_labels):
        return None
    odd = labels.min() if labels.min() < 0 else labels.max()
    return f"labels are from 0 to {n_labels - 1}, got {odd}; give more labels, or others"


def _everyone(
    side: SideBySide, mine: npt.NDArray[Any], problem: str | None
) -> list[npt.NDArray[Any]]:
    """What all ranks have found; ValueError on all of them where one has a problem."""
    if side.arrays is None:
        if problem is not None:
            raise on_all_ranks(ValueError(problem))
        return [mine]
    comm = side.arrays.comm
    raise_together(comm, problem)
    return list(comm.allgather(mine)) if comm.size > 1 else [mine]
