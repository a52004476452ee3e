# SPDX-License-Identifier: MIT
"""The fields of a computation by their names: `run["u"]`, and `run.u` where that is free."""
from __future__ import annotations

from abc import abstractmethod

from controllers.program.program import Program
from controllers.run.field_access import FieldAccess
from controllers.run.one_field import OneField


class NamedFields(FieldAccess):
    """All fields, and each of them by its name; methods and other attributes come first."""

    @property
    @abstractmethod
    def program(self) -> Program:
        """What is computed."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(field.name for field in self.program.fields)

    def __getitem__(self, field: str) -> OneField:
        """One field by its name, much like an array, to read, set, save or load."""
        return self._named(field)

    def __getattr__(self, name: str) -> OneField:
        """The same, for names that mean nothing else here."""
        if name.startswith("_") or name not in self.fields:
            known = "" if name.startswith("_") else f"; the fields are {', '.join(self.fields)}"
            raise AttributeError(f"a computation has no {name!r}{known}")
        return self[name]

    def __setattr__(self, name: str, value: object) -> None:
        if "_assembly" in self.__dict__ and name in self.fields and not hasattr(type(self), name):
            raise AttributeError(
                f"{name!r} is a field, whose cells are set by run.{name}[...] = values or "
                f"run.{name}.set(values)"
            )
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.fields]

    def _named(self, field: str | None) -> OneField:
        if field is None:
            field = self._one("gather")
        if field not in self.fields:
            raise KeyError(f"there is no field {field!r}; there are {', '.join(self.fields)}")
        return OneField(self, field)

