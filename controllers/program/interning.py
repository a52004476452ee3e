# SPDX-License-Identifier: MIT
"""Interning: equal objects are one object, for as long as somebody holds it."""
from __future__ import annotations

from collections.abc import Hashable
from threading import RLock
from typing import Generic, TypeVar
from weakref import KeyedRef

N = TypeVar("N")


class Known(Generic[N]):
    """The objects of one kind that are alive, by key.

    As weakref.WeakValueDictionary, but several threads get one object of a key; and it does less in
    Python, which counts where a pattern has thousands of terms.
    """

    def __init__(self) -> None:
        self._references: dict[Hashable, KeyedRef[Hashable, N]] = {}
        self._lock = RLock()    # one may be dropped while another one is kept

    def get(self, key: Hashable) -> N | None:
        """The object of a key; None where there is none."""
        reference = self._references.get(key)
        return None if reference is None else reference()

    def keep(self, key: Hashable, new: N) -> N:
        """`new`, or the one that another thread made of the same key meanwhile."""
        reference = KeyedRef(new, self._drop, key)
        kept = self._references.setdefault(key, reference)  # in one step
        return new if kept is reference else self._replace(reference, new)

    def _replace(self, reference: KeyedRef[Hashable, N], new: N) -> N:
        with self._lock:
            found = self.get(reference.key)
            if found is None:   # it is being dropped
                self._references[reference.key] = reference
            return new if found is None else found

    def _drop(self, reference: KeyedRef[Hashable, N]) -> None:
        with self._lock:
            if self._references.get(reference.key) is reference:
                del self._references[reference.key]
