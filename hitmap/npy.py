# SPDX-License-Identifier: MIT
"""Arrays in .npy files, read and written by parts: no rank ever holds the whole.

A part is read through a mapping of the file.  It is written by calls that touch its own bytes
and no others, so that ranks of several hosts can write one file on a shared file system.
"""
from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hitmap.agreement import agree, on_all_ranks
from hitmap.comm import Communicator
from hitmap.conversion import convert
from hitmap.files import check_target, open_regular, put, target_of
from hitmap.npy_header import read_header
from hitmap.part import problem
from hitmap.shape import Shape
from hitmap.strided import Geometry
from hitmap.temporary import Unfinished, temporary_name
from hitmap.write_back import PIECE_NBYTES, WriteBack

_format: Any = np.lib.format    # without types in older releases of NumPy
_N_SAMPLES, _SAMPLE_NBYTES = 128, 4096
_DIGEST_NBYTES = 8


def open_npy(path: str | os.PathLike[str]) -> npt.NDArray[Any]:
    """The array of a .npy file, mapped read-only.

    OSError if there is no such file, ValueError if it holds no array, less than its header says,
    or Python objects.
    """
    with open_regular(path) as file:
        extent, is_fortran, dtype = read_header(file)
        first = file.tell()
        n_bytes = os.fstat(file.fileno()).st_size - first
    needed = math.prod(extent) * dtype.itemsize
    if needed > n_bytes:
        raise ValueError(
            f"is cut off or damaged: its header says {extent} cells of {dtype}, {needed} bytes, "
            f"and {n_bytes} follow"
        )
    order: Literal["F", "C"] = "F" if is_fortran else "C"
    if needed == 0:
        return np.empty(extent, dtype, order)
    return np.memmap(path, dtype, "r", first, extent, order)


def is_mapped(array: object) -> bool:
    """Whether an array, or what it is a part of, lies in a file.

    >>> is_mapped(np.zeros(3)[1:])
    False
    """
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def fingerprint(path: str | os.PathLike[str]) -> str:
    """The size of a file and a hash of some of it: unlike for files that are not the same.

    All of a file of up to 512 KiB is looked at, of others the two ends and places between.
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_NBYTES)
    with open_regular(path) as file:
        n_bytes = os.fstat(file.fileno()).st_size
        last = max(0, n_bytes - _SAMPLE_NBYTES)
        for number in range(_N_SAMPLES):
            file.seek(last * number // (_N_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_NBYTES))
    return f"{n_bytes} bytes, hash {digest.hexdigest()}"


def read_part(
    path: str | os.PathLike[str], box: Shape, dtype: npt.DTypeLike | None = None
) -> npt.NDArray[Any]:
    """The cells of `box` of the array in a .npy file, whose first cell is the origin.

    A new array [*box.extent] in C order, of the file's dtype if None is given, else converted.
    """
    whole = open_npy(path)
    part = np.empty(box.extent, whole.dtype if dtype is None else dtype)
    read_into(whole, box, part)
    return part


def read_into(whole: npt.NDArray[Any], box: Shape, part: npt.NDArray[Any]) -> None:
    """Copy the cells of `box` of an opened array to `part`, [*box.extent], converted."""
    if box.n_axes != whole.ndim or box not in Shape.of_extent(whole.shape):
        raise ValueError(f"box {box} is not in an array of {whole.shape} cells")
    convert(whole[box.slices((0,) * whole.ndim)], part, box.lower)


class NpyWriter:
    """A .npy file that all ranks write together, each of them the boxes that it has.

    The cells must cover `domain`, each written once.  Until the end the file has a temporary
    name in the same folder; it gets its own when all cells are there on all ranks.  After a
    failure on any rank there is no new file, and all ranks raise.

    >>> from hitmap import SerialCommunicator
    >>> path, domain = getfixture("tmp_path") / "a.npy", Shape.of_extent((2, 3))
    >>> with NpyWriter(path, domain, "f4", SerialCommunicator()) as file:
    ...     file.write(Shape((0, 0), (2, 1)), np.zeros((2, 1), "f4"))
    ...     file.write(Shape((0, 1), (2, 3)), np.ones((2, 2), "f4"))
    >>> np.load(path).tolist()
    [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        domain: Shape,
        dtype: npt.DTypeLike,
        comm: Communicator,
    ) -> None:
        self.path = Path(path)
        self.domain = domain
        self.dtype = np.dtype(dtype)
        self.comm = comm
        if self.dtype.hasobject:
            raise ValueError(f"{path}: only plain numbers or structs are written, not {dtype}")
        self._temporary = self.path
        self._unfinished: Unfinished | None = None
        self._first = 0     # byte of the first cell
        self._file = -1
        self._write_back = WriteBack()
        self._n_cells = 0

    def __enter__(self) -> NpyWriter:
        """Collective."""
        agree(self.comm, "npy file: path, domain and dtype", (self.path, self.domain, self.dtype))
        for step in (self._create, self._open):
            error: OSError | None = None
            try:
                step()
            except OSError as own:
                error = own
            self._temporary, self._first = self.comm.bcast((self._temporary, self._first))
            failure = self._failure(error)
            if failure is not None:
                self._close()
                self._release()
                raise on_all_ranks(OSError(failure)) from error
            if self._unfinished is None:
                self._unfinished = Unfinished(self._temporary)
        return self

    def write(self, box: Shape, cells: npt.NDArray[Any]) -> None:
        """Put `cells`, [*box.extent], in their place in the file.  Not collective."""
        wrong = problem(cells, box, f"{self.path}: cells", self.dtype)
        if wrong is not None or box not in self.domain:
            raise ValueError(wrong or f"{self.path}: box {box} is not in {self.domain}")
        flat = np.ascontiguousarray(cells).reshape(-1)
        first = 0
        for position, n_cells in _runs(box, self.domain):
            run = flat[first : first + n_cells].view(np.uint8).data
            self._write_all(run, self._first + position * self.dtype.itemsize)
            first += n_cells
        self._n_cells += box.n_cells

    def _write_all(self, data: memoryview, position: int) -> None:
        """A call may write less than it is given, as on a disk that is almost full."""
        while data:
            n_bytes = os.pwrite(self._file, data[:PIECE_NBYTES], position)
            self._write_back.wrote(self._file, position, n_bytes)
            data, position = data[n_bytes:], position + n_bytes

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Collective.  OSError on all ranks, except those that leave with an error of theirs."""
        try:
            if error is None:
                os.fsync(self._file)    # what this rank has written, and its host keeps
            self._close()
        except OSError as late:     # where a network file system says that a disk is full
            error = error or late
        failure = self._failure(error)
        if failure is None:
            error, failure = None, self._failure(self._rename())
        self._release()
        if failure is not None and (error is None or isinstance(error, OSError)):
            raise on_all_ranks(OSError(failure)) from error

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def _release(self) -> None:
        """There is no temporary file any more."""
        if self._unfinished is not None:
            self._unfinished.close()

    def _create(self) -> None:
        """Rank 0 makes the file with its header, as long as it will be."""
        if self.comm.rank != 0:
            return
        check_target(self.path)
        self._temporary = temporary_name(target_of(self.path))
        header = {
            "descr": _format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": self.domain.extent,
        }
        with open(self._temporary, "wb") as file:
            _format.write_array_header_1_0(file, header)
            self._first = file.tell()
            file.truncate(self._first + self.domain.n_cells * self.dtype.itemsize)

    def _open(self) -> None:
        self._file = os.open(self._temporary, os.O_WRONLY)

    def _rename(self) -> OSError | None:
        """Give the file its name if all cells are there; what is wrong, on rank 0.  Collective."""
        n_cells = sum(self.comm.allgather(self._n_cells))
        if self.comm.rank != 0:
            return None
        if n_cells != self.domain.n_cells:
            return OSError(f"{n_cells} cells were given of {self.domain.n_cells}")
        try:
            put(self._temporary, target_of(self.path))
        except OSError as error:
            return error
        return None

    def _failure(self, error: BaseException | None) -> str | None:
        """What is wrong on any rank; the temporary file is removed then.  Collective."""
        texts = self.comm.allgather(None if error is None else _text(error))
        if all(text is None for text in texts):
            return None
        if self.comm.rank == 0 and self._temporary != self.path:
            self._temporary.unlink(missing_ok=True)
        named = [
            f"rank {rank}: {text}" if self.comm.size > 1 else text
            for rank, text in enumerate(texts)
            if text is not None
        ]
        return f"{self.path} was not written: {'; '.join(named)}"


def _text(error: BaseException) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{type(error).__name__}: {error}"


def _runs(box: Shape, domain: Shape) -> Iterator[tuple[int, int]]:
    """Runs of consecutive cells of a file over `domain` that make up `box`: position and length.

    >>> list(_runs(Shape((1, 0), (3, 2)), Shape.of_extent((4, 5))))
    [(5, 2), (10, 2)]
    >>> list(_runs(Shape((1, 0), (3, 5)), Shape.of_extent((4, 5))))
    [(5, 10)]
    """
    if box.empty:
        return
    where = Geometry.dense(domain).strided(box)
    axis = box.n_axes - 1
    while axis > 0 and box.extent[axis] == domain.extent[axis]:
        axis -= 1
    n_cells = box.n_cells
    outer = []
    for count, pitch in zip(box.extent[:axis], where.pitches[:axis], strict=True):
        outer.append(range(0, count * pitch, pitch))
        n_cells //= count
    for steps in product(*outer):
        yield where.first + sum(steps), n_cells
