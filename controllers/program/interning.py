# SPDX-License-Identifier: MIT
"""Interning: equal objects are one object, for as long as somebody holds it."""
from __future__ import annotations

from collections.abc import Hashable
from threading import RLock
from typing import Generic, TypeVar
from weakref import ReferenceType

N = TypeVar("N")


class Reference(ReferenceType[N]):
    """A weak reference to an object, with its key."""

    __slots__ = ("key",)
    key: Hashable


class Known(dict[Hashable, Reference[N]], Generic[N]):
    """The objects of one kind that are alive, by key.

    As weakref.WeakValueDictionary, but several threads get one object of a key; and it does less in
    Python, which counts where a pattern has thousands of terms.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = RLock()    # one may be dropped while another is kept
        self._dropped = self._drop

    def keep(self, key: Hashable, new: N) -> N:
        """`new`, or the one that another thread made of the same key meanwhile."""
        reference = Reference(new, self._dropped)
        reference.key = key
        kept = self.setdefault(key, reference)  # in one step
        return new if kept is reference else self._replace(reference, new)

    def _replace(self, reference: Reference[N], new: N) -> N:
        with self._lock:
            known = self.get(reference.key)
            found = None if known is None else known()
            if found is None:   # it is being dropped
                self[reference.key] = reference
            return new if found is None else found

    def _drop(self, reference: Reference[N]) -> None:
        with self._lock:
            if self.get(reference.key) is reference:
                del self[reference.key]
