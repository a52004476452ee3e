# SPDX-License-Identifier: MIT
"""What `Computation` and its neighbours take, checked before anything is done.

Only what an argument is, not what it says: values are checked where they are used.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.device.selection import check_selectors
from controllers.language.weights import Stencil
from controllers.program.program import DTYPES, Program
from hitmap.agreement import on_all_ranks, raise_together
from hitmap.argument import (
    function,
    instance,
    number,
    one_of,
    sequence,
    sizes_of,
    whole,
    wholes,
    wrong,
)
from hitmap.comm import Communicator

_Check: TypeAlias = Callable[[object, str], object]


def refuse_together(comm: Communicator, check: Callable[[], object]) -> None:
    """Raise what `check` raises, and on ranks where it does not, with whatever they do next.

    That is an agreement with all ranks, in a ValueError of which it ends.
    """
    try:
        check()
    except (TypeError, ValueError) as error:
        if comm.size > 1:
            with suppress(ValueError):
                raise_together(comm, str(error))
        raise on_all_ranks(error) from None


def check_program(program: object) -> Program:
    """`program`, if it is one; TypeError otherwise."""
    if isinstance(program, Stencil):
        remedy = 'make one of it: stencil.program("float32")'
        raise wrong("program", "a Program", program, remedy)
    return instance(program, Program, "program", 'write Stencil.of(...).program("float32")')


def check_communicator(comm: object) -> None:
    """TypeError unless `comm` is None or has what a communicator of MPI has."""
    wanted = ("rank", "size", "allgather", "Allgather", "bcast", "Dup")
    if comm is not None and not all(hasattr(comm, name) for name in wanted):
        raise wrong("comm", "a communicator of mpi4py, or None", comm, "write MPI.COMM_WORLD")


def check_options(**options: object) -> None:
    """TypeError or ValueError where one of these options of `Computation` cannot be one."""
    for name, value in options.items():
        _OPTIONS[name](value, name)


def dtype_name(dtype: npt.DTypeLike) -> str:
    """The name of a dtype of fields; TypeError or ValueError where it is none."""
    try:
        name = "" if dtype is None else str(np.dtype(dtype).name)
    except TypeError:
        name = ""
    if not name:
        expected = f"one of {', '.join(DTYPES)}"
        raise wrong("dtype", expected, dtype, 'write it in quotes, such as "float32"')
    one_of(name, DTYPES, "the dtype")
    return name


def _one_or_several(value: object, what: str) -> None:
    if isinstance(value, (int, float, np.number)):
        whole(value, what)
    else:
        wholes(value, what)


def _weights(value: object, what: str) -> None:
    for weight in sequence(value, what, "numbers, one per place"):
        number(weight, what)


def _words(value: object, what: str) -> None:
    words = [value] if isinstance(value, str) else sequence(value, what, "words")
    for word in words:
        instance(word, str, what, "write fixed or periodic")


def _is_flag(value: object, what: str) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise wrong(what, "True or False", value, "write one of the two")


def _cap(value: object, what: str) -> None:
    if not isinstance(value, str):
        whole(value, what)


def _seconds(value: object, what: str) -> None:
    if not isinstance(value, str):
        number(value, what)


def _kernel(value: object, what: str) -> None:
    if not (isinstance(value, str) or hasattr(value, "variants")):
        raise wrong(what, "a Kernel, or the name of one", value, "write kernel=Kernel.of(...)")


def _or_none(check: _Check) -> _Check:
    return lambda value, what: None if value is None else check(value, what)


_OPTIONS: Mapping[str, _Check] = {
    "program": lambda value, what: check_program(value),
    "sizes": lambda value, what: sizes_of(value),
    "partition": _or_none(lambda value, what: instance(value, str, what, "write it in quotes")),
    "weights": _or_none(_weights),
    "align": _one_or_several,
    "block": _or_none(_one_or_several),
    "boundary": _words,
    "devices": check_selectors,
    "places_per_controller": whole,
    "kernel": _or_none(_kernel),
    "steps_per_launch": _or_none(whole),
    "zero_copy": _is_flag,
    "memory_cap": _or_none(_cap),
    "trace": _is_flag,
    "watchdog": _or_none(_seconds),
    "tune": number,
    "init": _or_none(function),
    "output": _or_none(function),
}
