# SPDX-License-Identifier: MIT
"""Arrays that are distributed over places, as NumPy and Python see them.

Functions and operators on them are lazy; what is looked at comes as a NumPy array or a number that
every rank has.  What is not computed on devices NumPy computes, of arrays on every rank.
"""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.array.arrays import Arrays
from controllers.array.by_label import bincount
from controllers.array.fitting import at_host, fitted, matched, with_whole_exponent
from controllers.array.operand import Frame, Operand, unit
from controllers.array.operators import Operators
from controllers.array.promotion import apply, converted, is_computed, name_of
from controllers.array.reductions import FUNCTIONS, Reduced, dot
from controllers.array.source import Source
from controllers.array.term import Leaf, Term, anchor, slid
from controllers.array.writing import REFUSED, copy_to, refuse
from controllers.program.composed import composed
from controllers.program.functions import DTYPES

# What changes an array, which is a copy here.
IN_PLACE = ("byteswap", "fill", "itemset", "partition", "put", "resize", "setfield", "setflags",
            "sort")  # fmt: skip
LARGEST = 200       # operations of an expression that are computed at once
_COMPOSED = {np.square, np.clip, np.power, np.positive}
_MORE: dict[Callable[..., Any], Any] = {np.bincount: bincount, np.copyto: copy_to}


class Distributed(Reduced, Operators):
    """An array whose cells lie on places: a field, a slice of one, or what is computed of them."""

    __slots__ = ()

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """What each cell holds."""

    @abstractmethod
    def __getitem__(self, index: object) -> Any: ...

    @abstractmethod
    def _whole(self) -> npt.NDArray[Any]:
        """All of it, on every rank."""

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """All of it, on every rank: `np.asarray(w)`.  Collective."""
        if copy is False:
            raise ValueError(
                f"the cells of {self!r} are on devices, so that an array of them is a copy; leave "
                f"out copy=False"
            )
        whole = self._whole()
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        """What NumPy's functions and, by them, all operators do."""
        out = kwargs.pop("out", None)
        if ufunc is np.matmul and [np.ndim(one) for one in inputs] == [1, 1]:
            found = dot(*inputs)
        elif method != "__call__" or kwargs or not (ufunc in _COMPOSED or is_computed(ufunc)):
            found = getattr(ufunc, method)(*map(at_host, inputs), **kwargs)
        else:
            found = computed(ufunc, inputs)
        if out is None:
            return found
        (target,) = out
        target[...] = found if isinstance(target, Distributed) else at_host(found)
        return target

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """The same for functions that NumPy does not call universal, as np.where."""
        if func in REFUSED and isinstance(args[0], Distributed):
            refuse(func.__name__)
        target = kwargs.get("out")
        if isinstance(target, Distributed):
            target[...] = func(*args, **{n: one for n, one in kwargs.items() if n != "out"})
            return target
        if func in (np.where, np.clip) and len(args) == 3 and not kwargs:
            return computed(func, args)
        known = _MORE.get(func) or FUNCTIONS.get(func)
        if known is not None and isinstance(args[0], Distributed):
            return known(*args, **kwargs)
        return func(*map(at_host, args), **{name: at_host(one) for name, one in kwargs.items()})

    def computed(self, function: Callable[..., Any], one: Any, other: Any) -> Any:
        return _applied(function, (one, other))

    def where(self, mask: Distributed) -> Chosen:
        """The cells where a mask holds, one after another: `u[u > 0]`, `u.max(where=u > 0)`."""
        return Chosen(self, mask)

    def astype(self, dtype: npt.DTypeLike) -> Lazy | npt.NDArray[Any]:
        """The same values in another dtype: integers wrap, floats are rounded or truncated.

        What is beyond the least or the largest integer becomes these, and NaN 0.
        """
        name, operand = name_of(np.dtype(dtype)), self.operand()
        if operand is None:
            return np.asarray(self).astype(dtype)
        if name not in (*DTYPES, "bool"):
            raise ValueError(
                f"a field is converted to one of {', '.join(DTYPES)} or bool, got {name!r}; take "
                f"the array first, by np.asarray"
            )
        return Lazy(self.arrays, converted(operand[0], name), operand[1])

    def __str__(self) -> str:
        """Its values, as NumPy prints them.  Collective, unlike `repr`."""
        return str(np.asarray(self))

    def __getattr__(self, name: str) -> Any:
        """What NumPy's arrays have besides, of the whole on every rank."""
        if name.startswith("_") or name in IN_PLACE or not hasattr(np.ndarray, name):
            has = "np.asarray of it" if hasattr(np.ndarray, name) else "a whole field, as run.u,"
            raise AttributeError(f"a distributed array has no {name!r}; {has} may have")
        return getattr(np.asarray(self), name)


class Chosen(Distributed):
    """The cells of an array where a mask holds, one after another: `u[u > 0].mean()`."""

    __slots__ = ("_array", "_mask")

    def __init__(self, array: Distributed, mask: Distributed) -> None:
        if mask.dtype != np.bool_ or mask.shape != array.shape:
            raise IndexError(
                f"a mask is a comparison of the shape {array.shape}, got {mask.dtype} cells of the "
                f"shape {mask.shape}; compare fields of that shape, as u < 0"
            )
        self._array, self._mask = array, mask

    @property
    def arrays(self) -> Arrays:
        return self._array.arrays

    @property
    def shape(self) -> tuple[int, ...]:
        return (int(self._mask.sum()),)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._array.dtype

    def operand(self) -> None:
        return None

    def chosen(self) -> tuple[Term, Frame, Term | None] | None:
        one, mask = self._array.operand(), self._mask.operand()
        if one is None or mask is None or one[1] != mask[1]:
            return None
        return (*one, mask[0])

    def __getitem__(self, index: object) -> Any:
        return np.asarray(self)[at_host(index)]

    def __repr__(self) -> str:
        return f"<cells of {self._array!r} where a mask holds>"

    def _whole(self) -> npt.NDArray[Any]:
        cells: npt.NDArray[Any] = np.asarray(self._array)[np.asarray(self._mask)]
        return cells


class Lazy(Distributed):
    """What is computed of distributed arrays, once it is assigned or looked at.

    It has the values of when it was written down, whatever is assigned to the fields later.
    """

    __slots__ = "__weakref__", "_array", "_home", "_is_lost", "arrays", "frame", "term"
    arrays: Arrays

    def __init__(self, arrays: Arrays, term: Term, frame: Frame) -> None:
        self.arrays, self.term, self.frame = arrays, term, frame
        self._array: npt.NDArray[Any] | None = None     # while it is on the host
        self._is_lost = False
        arrays.living.add(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.frame.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.term.kind.dtype)

    def operand(self) -> Operand | None:
        if self._array is None and not self._is_lost:       # mostly
            return self.term, self.frame
        if self._array is not None and self.arrays.is_closed:
            return None
        if self._array is not None:
            name, start = self._home
            like = Leaf(self.arrays.fields[name], start)
            self.term = self.arrays.held_array(self._array, self.frame, like)
            self._array = None
        self._check()
        return self.term, self.frame

    def _check(self) -> None:
        if self._is_lost:
            raise RuntimeError(
                "an expression could not be computed before a field that it reads has changed, or "
                "the computation has ended; make and use expressions on all ranks alike"
            )

    def reads(self, sources: Set[Source], views: bool) -> bool:
        """Whether it is to be computed before these change."""
        return self._array is None and not self.term.sources.isdisjoint(sources)

    def hold(self) -> Term:
        """Compute it now, into tiles of its own."""
        if any(one.changes for one in self.term.sources):
            self.term = self.arrays.held(self.term, self.frame)
        return self.term

    def bring(self) -> None:
        """Compute it now, and keep it on the host until it is used."""
        if self._array is None:
            found = anchor(self.term)
            assert found is not None, "an expression of fields"
            self._home = found[0].home, found[1]
            self._array = self.arrays.values(self.term, self.frame)

    outlive = bring

    def lose(self) -> None:
        """It cannot be computed any more."""
        self._is_lost = True

    def __getitem__(self, index: object) -> Any:
        """Some of it: lazy too, but for single values, steps and masks, which are looked at."""
        index = with_mask(self, index)
        if isinstance(index, Distributed):
            return Chosen(self, index)
        found = unit(self.frame.section(index))
        operand = self.operand()
        if found is None or operand is None or all(found[1].dropped):
            return np.asarray(self)[at_host(index)]
        start, frame = found
        return Lazy(self.arrays, slid(operand[0], start), frame)

    def _whole(self) -> npt.NDArray[Any]:
        if self._array is not None:
            return np.array(self._array)
        self._check()
        return self.arrays.read(self.term, self.frame)

    def __repr__(self) -> str:
        cells = " x ".join(map(str, self.shape)) or "1"
        return f"<an expression: {cells} cells of {self.dtype}>"


def with_mask(array: Distributed, index: object) -> object:
    """An index, where it is a mask of the host one that is distributed as the array is."""
    if isinstance(index, np.ndarray) and index.dtype == np.bool_ and index.shape == array.shape:
        return computed(np.logical_or, (computed(np.less, (array, array)), index))
    return index


def computed(function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """What a function of NumPy's makes of distributed arrays, other arrays and numbers."""
    if function in _COMPOSED:
        made = composed(function, with_whole_exponent(function, inputs))
        if isinstance(made, Distributed) and not isinstance(made, Lazy):    # +u is another array
            operand = made.operand()
            return np.asarray(made) if operand is None else Lazy(made.arrays, *operand)
        if made is not None:
            return made
    return _applied(function, inputs)


def _applied(function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """The same of a function that devices have."""
    found = matched(inputs) or fitted(function, inputs)
    if isinstance(found, list):
        return function(*found)
    arrays, terms, frame = found
    lazy = Lazy(arrays, apply(function, terms, arrays.math), frame)
    if lazy.term.size > LARGEST:
        lazy.hold()
    return lazy
