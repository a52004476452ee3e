# SPDX-License-Identifier: MIT
"""Values that are given for fields, on their way to the places of this rank."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.engine import Engine
from controllers.fields.cells import dtype_of
from controllers.fields.datasets import open_variable, part_of
from controllers.settings.domain import place_of
from controllers.settings.initial import Initial, is_dataset
from hitmap.agreement import agree_on_call, on_all_ranks, raise_together
from hitmap.comm import Communicator
from hitmap.npy import fingerprint, is_mapped, open_npy
from hitmap.scatter import scatter
from hitmap.shape import Shape

# The values of the cells of a box that a place owns, by field.
PlaceValues = Callable[[int, Shape], Mapping[str, npt.ArrayLike]]


def given_values(initial: Initial, engine: Engine, comm: Communicator) -> PlaceValues:
    """Where the values of each place come from; an array is rank 0's.  Collective."""
    if initial.kind == "array":
        return _of_array(initial, engine, comm)
    layout = engine.plan.layout_of(initial.fields[0])
    if initial.kind == "function":
        where = place_of(engine.plan.program, initial.fields[0], layout.domain.extent)
        return lambda place, box: initial.at(where, box)
    if initial.kind == "parts":
        return lambda place, box: dict.fromkeys(initial.fields, part_of(initial.value, box))
    if initial.kind == "file" and is_dataset(initial.value):
        return _of_dataset(initial, engine, comm)
    if initial.kind == "file":
        whole = opened_together(initial.value, layout.domain.extent, comm)
        return lambda place, box: dict.fromkeys(
            initial.fields, whole[box.slices((0,) * box.n_axes)]
        )
    return lambda place, box: dict.fromkeys(initial.fields, initial.value)


def _of_array(initial: Initial, engine: Engine, comm: Communicator) -> PlaceValues:
    layout = engine.plan.layout_of(initial.fields[0])
    if comm.size == 1 and (is_mapped(initial.value) or _needs_no_copy(initial, engine)):
        return lambda place, box: dict.fromkeys(
            initial.fields, initial.value[box.slices((0,) * box.n_axes)]
        )
    ranks = [location.rank for location in engine.plan.locations]
    whole = initial.value if comm.rank == 0 else None
    try:
        parts = {
            field: scatter(whole, layout, ranks, comm, 0, dtype_of(engine, field))
            for field in initial.fields
        }
    except ValueError as error:     # which all ranks have
        raise on_all_ranks(ValueError(f"{initial.name}: {error}")) from None
    return lambda place, box: {
        field: parts[field][place][box.slices(layout.owned[place].lower)] for field in parts
    }


def _needs_no_copy(initial: Initial, engine: Engine) -> bool:
    """Whether all values fit as they are, and none lies in the cells that are to be set."""
    hosts = [tile.host for tile in engine.tiles.values() if tile.host is not None]
    is_alike = all(initial.value.dtype == dtype_of(engine, field) for field in initial.fields)
    return is_alike and not any(np.may_share_memory(initial.value, host) for host in hosts)


def _of_dataset(initial: Initial, engine: Engine, comm: Communicator) -> PlaceValues:
    """Each field is the variable of its name, of which each rank reads its parts."""
    found: dict[str, Any] = {}
    said: list[str] = []
    problem = None
    try:
        for field in initial.fields:
            extent = engine.plan.layout_of(field).domain.extent
            where = place_of(engine.plan.program, field, extent)
            found[field], what = open_variable(initial.value, field, where)
            said.append(what)
    except (OSError, ValueError) as error:
        problem = of_file(initial.value, error)
    raise_together(comm, problem)
    agree_on_call(comm, f"the reading of {initial.value}", {"the content": "; ".join(said)})
    return lambda place, box: {field: part_of(array, box) for field, array in found.items()}


def opened_together(
    path: str | os.PathLike[str], extent: tuple[int, ...], comm: Communicator
) -> npt.NDArray[Any]:
    """The array of a file, the same one on all ranks; ValueError on all of them.  Collective."""
    problem, whole = None, np.empty(0)
    try:
        whole = open_npy(path)
        if whole.shape != extent:
            raise ValueError(f"has {whole.shape} cells, the field {extent}")
    except (OSError, ValueError) as error:
        problem = of_file(path, error)
    raise_together(comm, problem)
    if comm.size > 1:
        agree_on_call(comm, f"the reading of {path}", {"the content": fingerprint(path)})
    return whole


def of_file(path: str | os.PathLike[str], error: Exception) -> str:
    """What is wrong with a file."""
    text = error.strerror if isinstance(error, OSError) else None
    return f"{os.fspath(path)}: {text or error}"
