# SPDX-License-Identifier: MIT
"""Refusals: what a number or an array can do and a traced value cannot, and what to write instead.

Values and structs inherit them.
"""
from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from numpy.lib.mixins import NDArrayOperatorsMixin


class Refusals(NDArrayOperatorsMixin):
    """What Python and NumPy ask of an object, answered by an error that says what to write."""

    __slots__ = ()
    what: ClassVar[str]     # the object, for people

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self.what} has no truth value while a step is traced, so `if`, `while`, `and`, "
            f"`or`, `not`, `in`, min(), max() and a < b < c cannot ask for one; choose by "
            f"np.where(condition, a, b) or np.minimum(a, b), combine conditions by & | ~"
        )

    def __float__(self, *digits: Any) -> NoReturn:
        raise TypeError(
            f"{self.what} is no single number while a step is traced, so float(), int(), round() "
            f"and the functions of `math` cannot take it; use NumPy's, such as np.sqrt"
        )

    __int__ = __complex__ = __round__ = __trunc__ = __floor__ = __ceil__ = __float__

    def __index__(self) -> NoReturn:
        raise TypeError(
            f"{self.what} is no whole number while a step is traced, so range() and indices "
            f"cannot take it; offsets are constants, as in u[0, 1], and a choice is np.where"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(
            f"{self.what} cannot be looped over: a step says what happens to one cell; its "
            f"neighbours are u[0, 1] and the like"
        )

    __len__ = __contains__ = __reversed__ = __iter__

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"{self.what} has no values while a step is traced, so it cannot become an array, be "
            f"printed or plotted; look at it after a run"
        )

    def __setitem__(self, offset: Any, value: Any) -> NoReturn:
        raise TypeError(
            "a step assigns to no cell: it returns the new values by name, return dict(u=...)"
        )

    def __delitem__(self, offset: Any) -> NoReturn:
        self[offset] = None

    def __call__(self, *offset: Any) -> NoReturn:
        raise TypeError(
            f"{self.what} is no function: its neighbours are in brackets, as in u[0, 1]"
        )

    def __format__(self, form: str) -> str:
        if form:
            self.__array__()    # which says why there are no digits
        return repr(self)

    def __copy__(self, *memo: Any) -> Any:
        return self     # it never changes

    __deepcopy__ = __copy__
