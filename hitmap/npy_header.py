# SPDX-License-Identifier: MIT
"""The header of a .npy file, read as what it is: text from elsewhere, maybe damaged or hostile."""
from __future__ import annotations

import operator
import warnings
from typing import Any, BinaryIO, NamedTuple

import numpy as np

_format: Any = np.lib.format    # without types in older releases of NumPy
_READERS = {
    (1, 0): _format.read_array_header_1_0,
    (2, 0): _format.read_array_header_2_0,  # 3.0 is for structs with names beyond ASCII alone
}
_MAX_NBYTES = 1 << 16    # of a header: what version 1 can hold
_MAX_REASON = 100   # characters of what NumPy says of a damaged header


class Header(NamedTuple):
    """What a .npy file says of its array."""

    extent: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]


def read_header(file: BinaryIO) -> Header:
    """Leaves `file` at the first cell; ValueError if there is no array of numbers or structs."""
    begin = file.read(len(_format.MAGIC_PREFIX))
    if begin != _format.MAGIC_PREFIX:
        hint = ", as a .npz file, which holds several arrays" if begin.startswith(b"PK") else ""
        raise ValueError(f"is no .npy file, it begins with {begin!r}{hint}")
    file.seek(0)
    try:
        with warnings.catch_warnings():     # headers that Python 2 wrote are good
            warnings.simplefilter("ignore")
            header = _parsed(file)
    except OSError:
        raise
    except Exception as error:  # NumPy and Python's parser, which it calls, raise all sorts
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"has a damaged header: {reason[:_MAX_REASON]}") from None
    if header.dtype.hasobject:
        raise ValueError(
            "holds pickled Python objects, which are never loaded; save numbers, such as "
            "array.astype(float)"
        )
    if not header.extent:
        raise ValueError("holds a single number, not an array")
    return header


def _parsed(file: BinaryIO) -> Header:
    version = _format.read_magic(file)
    if version not in _READERS:
        raise ValueError(f"version {version} of the format is not known")
    begin = file.tell()
    n_bytes = int.from_bytes(file.read(2 if version == (1, 0) else 4), "little")
    if n_bytes > _MAX_NBYTES:   # NumPy would read it all
        raise ValueError(f"it claims {n_bytes} bytes, the limit is {_MAX_NBYTES}")
    file.seek(begin)
    extent, is_fortran, dtype = _READERS[version](file)
    extent = tuple(operator.index(n) for n in extent)
    if not all(0 <= n < 2**63 for n in extent):
        raise ValueError(f"no array has the extents {extent}")
    return Header(extent, bool(is_fortran), dtype)
